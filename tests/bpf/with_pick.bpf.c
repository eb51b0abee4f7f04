// SPDX-License-Identifier: GPL-2.0
/* The pick alone, linked with the product's own: one pick a run, counted by backend, and checked against the table that
 * stood there. */
#include "../../bpf/pick.bpf.h"

#define PICK_IDS 32768

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PICK_IDS);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, __u64);
} pick_seen SEC(".maps");

__u32 pick_service = 0;
__u32 pick_half = 0; /* tables of even version hold the ids up to it, those of odd version the ids above */
__u32 pick_top = 0; /* and no table holds any above this */
__u64 pick_outside = 0; /* picks that named a backend which the table did not hold */
__u64 pick_settled = 0; /* picks with the same table before and after */
__u64 pick_none = 0;
__u64 pick_torn = 0; /* the control's */

SEC("xdp")
int pick_count(struct xdp_md *ctx)
{
	__u32 id = pick_backend(pick_service, bpf_get_prandom_u32());
	__u64 *n = bpf_map_lookup_elem(&pick_seen, &id);

	if (n)
		(*n)++;
	return XDP_PASS;
}

SEC("xdp")
int pick_check(struct xdp_md *ctx)
{
	struct sy_service *s = bpf_map_lookup_elem(&services, &pick_service);
	__u64 before, after;
	__u32 id;

	if (!s)
		return XDP_ABORTED;
	before = READ_ONCE(s->table);
	barrier();
	id = pick_backend(pick_service, bpf_get_prandom_u32());
	barrier();
	after = READ_ONCE(s->table);
	if (!id)
		pick_none++;
	else if (id > pick_top)
		pick_outside++;
	if (before != after)
		return XDP_PASS;
	pick_settled++;
	if (id && (SY_TABLE_VER(before) & 1) != (id > pick_half))
		pick_outside++;
	return XDP_PASS;
}

/* The control: reads the word once. It must be caught naming members of another table, or the switching proves nothing. */
SEC("xdp")
int pick_careless(struct xdp_md *ctx)
{
	struct sy_service *s = bpf_map_lookup_elem(&services, &pick_service);
	__u32 zero = 0, n, at, id;
	struct sy_table_area *t = bpf_map_lookup_elem(&tables, &zero);
	__u64 word;

	if (!s || !t)
		return XDP_ABORTED;
	word = READ_ONCE(s->table);
	n = SY_TABLE_LEN(word);
	if (!n)
		return XDP_PASS;
	at = bpf_get_prandom_u32() % n;
	for (int i = 0; i < 20; i++)
		at += bpf_get_prandom_u32() & 0; /* dawdle, so that it is caught for certain */
	id = READ_ONCE(t->w[(SY_TABLE_OFF(word) * (SY_REGION_ALIGN / 4) + 2 * at + 1) & (SY_TABLE_WORDS - 1)]);
	if (id > pick_top || (SY_TABLE_VER(word) & 1) != (id > pick_half))
		pick_torn++;
	return XDP_PASS;
}
