// SPDX-License-Identifier: GPL-2.0
/* Picking a backend: one look at the guide, mostly one bound, and the table word read before and after.
 *
 *   r ─top bits─▶ guide[b] .. guide[b + 1]   the members whose bounds lie in that bucket
 *                 └─ first whose bound is >= r
 * The word changed meanwhile: the region may hold anything by now, pick again. A member that was evicted a moment ago:
 * draw again, then scan to the next live one. */
#include "count.bpf.h"
#include "pick.bpf.h"

#define PICK_DRAWS 4
#define SCAN_STEP 128 /* members looked at by one call, when every draw met an evicted one */
#define WORD_MASK (SY_TABLE_WORDS - 1)

INLINE __u32 table_u16(const struct sy_table_area *t, __u32 base, __u32 i)
{
	const __u16 *half = (const __u16 *)t->w;

	return READ_ONCE(half[(base * 2 + i) & (SY_TABLE_WORDS * 2 - 1)]);
}

/* The member for r in the region that the word names. A function of its own, as pick_is_live, for the verifier: it looks at it
 * once, not from each caller and in each turn of a loop. */
__attribute__((noinline)) __u32 pick_search(__u64 word, __u32 r)
{
	__u32 zero = 0, base = SY_TABLE_OFF(word) * (SY_REGION_ALIGN / 4), n = SY_TABLE_LEN(word);
	__u32 bucket = r >> ((32 - SY_TABLE_BITS(word)) & 31), guide = base + 2 * n;
	struct sy_table_area *t = bpf_map_lookup_elem(&tables, &zero);
	__u64 low, high, less;

	if (!t)
		return 0;
	low = table_u16(t, guide, bucket);
	high = table_u16(t, guide, bucket + 1);
	/* one bound without a branch: mostly that is all there is */
	less = (__u64)READ_ONCE(t->w[(base + 2 * low) & WORD_MASK]) - r;
	opaque(less);
	less >>= 63;
	low += less;
	if (!less)
		return low;
	for (int i = 0; i < 15 && low < high; i++) {
		__u64 mid = (low + high) >> 1;

		if (READ_ONCE(t->w[(base + 2 * mid) & WORD_MASK]) < r)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

__attribute__((noinline)) int pick_is_live(__u32 id, __u32 service)
{
	struct sy_backend *b = bpf_map_lookup_elem(&backends, &id);
	__u64 word;

	if (!b || READ_ONCE(b->service) != service)
		return 0;
	word = READ_ONCE(b->word);
	return backend_state(b, word, SY_WORD_GEN(word)) == SY_UP;
}

/* One draw. 0: empty table; ~0: draw again. */
__attribute__((noinline)) __u32 pick_once(__u32 service, __u32 r)
{
	__u32 zero = 0, n, id, base;
	struct sy_service *s = bpf_map_lookup_elem(&services, &service);
	struct sy_table_area *t = bpf_map_lookup_elem(&tables, &zero);
	__u64 word;

	if (!s || !t)
		return 0;
	word = READ_ONCE(s->table);
	barrier();
	n = SY_TABLE_LEN(word);
	if (!n)
		return 0;
	base = SY_TABLE_OFF(word) * (SY_REGION_ALIGN / 4);
	id = READ_ONCE(t->w[(base + 2 * pick_search(word, r) + 1) & WORD_MASK]);
	barrier();
	if (READ_ONCE(s->table) != word)
		return ~0U;
	return pick_is_live(id, service) ? id : ~0U;
}

/* Of the members from the at-th on, the first of SCAN_STEP that is live. */
__attribute__((noinline)) __u32 pick_scan_some(__u32 service, __u64 word, __u32 at)
{
	__u32 zero = 0, n = SY_TABLE_LEN(word), base = SY_TABLE_OFF(word) * (SY_REGION_ALIGN / 4);
	struct sy_table_area *t = bpf_map_lookup_elem(&tables, &zero);

	if (!t || !n)
		return 0;
	for (__u32 i = 0; i < SCAN_STEP; i++) {
		__u32 id = READ_ONCE(t->w[(base + 2 * ((at + i) % n) + 1) & WORD_MASK]);

		if (pick_is_live(id, service))
			return id;
	}
	return 0;
}

/* From the member for r on, round the whole table, the first that is live and of this service: right even while the table is
 * switched. */
__attribute__((noinline)) __u32 pick_scan(__u32 service, __u32 r)
{
	struct sy_service *s = bpf_map_lookup_elem(&services, &service);
	__u32 n, at, id = 0;
	__u64 word;

	if (!s)
		return 0;
	word = READ_ONCE(s->table);
	n = SY_TABLE_LEN(word);
	at = pick_search(word, r);
	for (__u32 i = 0; i < SY_MAX_MEMBERS && i < n && !id; i += SCAN_STEP)
		id = pick_scan_some(service, word, at + i);
	return id;
}

__attribute__((noinline)) __u32 pick_backend(__u32 service, __u32 r)
{
	for (int i = 0; i < PICK_DRAWS; i++) {
		__u32 id = pick_once(service, r);

		if (id != ~0U)
			return id;
		count(SY_C_PICK_AGAIN);
		r = bpf_get_prandom_u32();
	}
	return pick_scan(service, r);
}
