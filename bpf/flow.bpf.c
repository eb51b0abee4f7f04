// SPDX-License-Identifier: GPL-2.0
/* Flow table, the writing side: claims and takes, by compare-and-swap on a line's word alone. Source ports and new flows are in
 * flow_new.bpf.c, state changes in flow_change.bpf.c.
 *
 *   claim    FREE ──cas──▶ BUSY ──write, cas──▶ USED (return) / NEW (forward) ──look at all eight──▶
 *            another line with the key? withdraw : the return line is ours / NEW ──cas──▶ SYN: the flow exists
 *   change   forward word: SYN → ESTABLISHED → CLIENT_CLOSED or BACKEND_CLOSED → CLOSING; flags RESET, REAPING
 *   take     forward word ──cas──▶ BUSY: the one who wins frees the return line, then the forward line
 *
 * Return line first (its claim is the claim of the source port). Every attempt that has published takes a fresh id. BUSY never
 * goes back to live. NEW is its owner's alone. After publishing, packets write nothing plainly but seen and seq.
 *
 * Global functions that make one attempt each, with small loops around them, since the verifier then looks at each once:
 * everything inlined is over a million instructions, and so is a loop around the whole state machine (kernel 6.18). */
#include "flow_write.bpf.h"

/* popcount and first zero bit of a nibble, as tables in a constant */
#define NIBBLE_COUNT(m) ((__u32)(0x4332322132212110ULL >> ((m) * 4)) & 7)
#define NIBBLE_FREE(m) ((__u32)(0x4010201030102010ULL >> ((m) * 4)) & 3)

/* Mostly none, sometimes short, now and then long enough for whole packets to pass on another CPU. */
__attribute__((noinline)) int flow_delay(void)
{
	__u32 r = bpf_get_prandom_u32(), n = r & 0x1f0 ? (r >> 9) & 63 : (r >> 9) & 4095;

	if ((r & 15) > 3)
		return 0;
	for (__u32 i = 0; i < 4096 && i < n; i++)
		bpf_get_prandom_u32();
	return 0;
}

INLINE void free_return(struct sy_line *r, __u64 id, __u32 timewait)
{
	__u64 next = timewait ? id | SY_TIMEWAIT : 0;

	/* the hint may be set, and cleared by the sweeper, between the read and the swap */
#pragma unroll
	for (int i = 0; i < 4; i++) {
		__u64 w = READ_ONCE(r->word);

		if (FLOW_ID(w) != id || FLOW_STATE(w) < SY_USED || FLOW_STATE(w) > SY_USED_ESTABLISHED)
			return;
		if (CAS(&r->word, w, next) == w)
			return;
	}
}

__attribute__((noinline)) int flow_take(__u32 forward, __u64 word)
{
	struct sy_line *f = line_at(forward), *r;
	struct sy_load *load;
	__u64 id = FLOW_ID(word);
	__u32 backend;

	if (!f)
		return 0;
	if (CAS(&f->word, word, id | SY_BUSY) != word) {
		count(SY_C_CAS_LOST);
		return 0;
	}
	race();
	backend = READ_ONCE(f->backend);
	r = line_at(READ_ONCE(f->mate));
	if (r)
		free_return(r, id, FLOW_STATE(word) == SY_CLOSING && (word & SY_F_BACKEND_FIRST));
	race();
	CAS(&f->word, id | SY_BUSY, 0);
	load = bpf_map_lookup_elem(&loads, &backend);
	if (load && is_counted(word))
		__sync_fetch_and_sub(&load->active, 1);
	return 1;
}

/* ---- making room: of the eight lines the one that is missed least ---- */

struct victim {
	__u64 word; /* of the line or forward line to be taken */
	__u32 index;
	__u32 rank; /* 0 none, else kind in the high bits, age in the low: the highest is missed least */
};
#define RANK_HALF_OPEN (1U << 30)
#define RANK_CLOSED (2U << 30)
#define RANK_TIMEWAIT (3U << 30)
#define RANK_AGE ((1U << 30) - 1)

INLINE void consider(const struct sy_line *l, __u32 index, __u32 now, struct victim *v)
{
	__u64 w = READ_ONCE(l->word);
	__u32 state = FLOW_STATE(w), rank = 0, age;

	if (state == SY_TIMEWAIT) {
		rank = RANK_TIMEWAIT;
	} else {
		if (state >= SY_USED) {
			__u64 fw;

			index = READ_ONCE(l->mate);
			l = line_at(index);
			if (!l)
				return;
			fw = READ_ONCE(l->word);
			if (FLOW_ID(fw ^ w))
				return;
			w = fw;
			state = FLOW_STATE(w);
		}
		if (state == SY_CLOSING)
			rank = RANK_CLOSED;
		else if (state == SY_SYN)
			rank = RANK_HALF_OPEN;
	}
	if (!rank)
		return;
	age = now - READ_ONCE(l->seen);
	if (age <= RANK_AGE) /* else another CPU's jiffies were ahead: age 0 */
		rank |= age;
	if (rank > v->rank) {
		v->rank = rank;
		v->index = index;
		v->word = w;
	}
}

/* 1: a place has become free among the claim's eight (or someone else was quicker: look again). 0: all are live. */
__attribute__((noinline)) int flow_make_room(__u32 group1, __u32 group2)
{
	struct victim v = { 0 };
	__u32 now = bpf_jiffies64();
	struct sy_line *l;

#pragma unroll
	for (int i = 0; i < 8; i++) {
		__u32 index = (i < 4 ? group1 : group2) * SY_LINES_PER_GROUP + (i & 3);

		l = line_at(index);
		if (l)
			consider(l, index, now, &v);
	}
	if (!v.rank)
		return 0;
	if (v.rank >= RANK_TIMEWAIT) {
		count(SY_C_TIMEWAIT_TAKEN);
		l = line_at(v.index);
		return l && CAS(&l->word, v.word, 0) == v.word;
	}
	count(v.rank < RANK_CLOSED ? SY_C_HALF_OPEN_TAKEN : SY_C_CLOSED_TAKEN);
	return flow_take(v.index, v.word);
}

/* ---- claiming a place ---- */

INLINE int same_key(const struct sy_line *l, const struct flow_claim *c)
{
	return !((line_addrs(l) ^ line_addrs(&c->line)) | (line_ports(l) ^ line_ports(&c->line)));
}

INLINE void write_body(struct sy_line *l, const struct sy_line *from)
{
	volatile __u64 *to = (volatile __u64 *)l;
	const __u64 *body = (const __u64 *)from;

#pragma unroll
	for (int i = 1; i < 8; i++)
		to[i] = body[i];
}

/* Another published line with the key? NEW counts, whatever its mate; only BUSY and FREE are skipped. */
INLINE int seen_twice(const struct sy_group *g, const struct flow_claim *c)
{
	int found = 0;

#pragma unroll
	for (int i = 0; i < SY_LINES_PER_GROUP; i++) {
		const struct sy_line *l = &g->line[i];
		__u64 w = READ_ONCE(l->word);

		barrier();
		if (FLOW_STATE(w) > SY_BUSY && FLOW_ID(w) != c->id && same_key(l, c))
			found = 1;
	}
	return found;
}

struct look {
	__u64 timewait_word;
	__u32 timewait_index;
	__u32 used; /* bit per line of both groups */
};

INLINE int look_first(const struct sy_group *g, __u32 index, const struct flow_claim *c, struct look *look)
{
	__u64 used = 0;

#pragma unroll
	for (int i = 0; i < SY_LINES_PER_GROUP; i++) {
		const struct sy_line *l = &g->line[i];
		__u64 w = READ_ONCE(l->word), nonzero = w | -w;

		barrier();
		opaque(nonzero);
		used |= (nonzero >> 63) << i;
		if (same_key(l, c) && FLOW_STATE(w) > SY_BUSY) {
			if (FLOW_STATE(w) != SY_TIMEWAIT)
				return CLAIM_TAKEN;
			if (!c->timewait)
				return CLAIM_TIMEWAIT;
			look->timewait_word = w;
			look->timewait_index = index + i;
		}
	}
	look->used = look->used << 4 | used;
	return CLAIM_OK;
}

__attribute__((noinline)) int flow_claim(struct flow_claim *c)
{
	struct look look = { 0 };
	struct sy_group *ga, *gb;
	struct sy_line *l;
	__u32 g1, g2, place, live;
	__u64 old = 0;
	int err;

	if (!c)
		return CLAIM_FULL;
	g1 = flow_group1(c->hash);
	g2 = flow_group2(c->hash);
	ga = bpf_map_lookup_elem(&lines, &g1);
	gb = bpf_map_lookup_elem(&lines, &g2);
	if (!ga || !gb)
		return CLAIM_FULL;
	err = look_first(ga, g1 * SY_LINES_PER_GROUP, c, &look);
	if (err)
		return err;
	err = look_first(gb, g2 * SY_LINES_PER_GROUP, c, &look);
	if (err)
		return err;

	if (look.timewait_word) {
		/* that very line, never a second one with the key elsewhere */
		old = look.timewait_word;
		place = look.timewait_index;
		count(SY_C_TIMEWAIT_TAKEN);
	} else {
		__u32 used1 = look.used >> 4, used2 = look.used & 15;
		__u32 n1 = NIBBLE_COUNT(used1), second = n1 >= 3 && NIBBLE_COUNT(used2) < n1;
		__u32 used = second ? used2 : used1;

		if (used == 15)
			return flow_make_room(g1, g2) ? CLAIM_AGAIN : CLAIM_FULL;
		place = (second ? g2 : g1) * SY_LINES_PER_GROUP + NIBBLE_FREE(used);
	}
	l = line_at(place);
	if (!l)
		return CLAIM_FULL;
	race();
	if (CAS(&l->word, old, c->id | SY_BUSY) != old) {
		count(SY_C_CAS_LOST);
		return CLAIM_AGAIN;
	}
	write_body(l, &c->line);
	if (c->state == SY_NEW && sy_test.mutant != MUTANT_LATE_MATE) {
		struct sy_line *r = line_at(c->line.mate);

		if (r)
			WRITE_ONCE(r->mate, place);
	}
	barrier();
	race();
	/* a full barrier: published before the second look. A swap, since after seconds of standstill it may be gone. */
	live = sy_test.mutant == MUTANT_LIVE_BEFORE_LOOK && c->state == SY_NEW ? SY_SYN : c->state;
	if (CAS(&l->word, c->id | SY_BUSY, c->id | live) != (c->id | SY_BUSY))
		return CLAIM_COLLISION;
	race();
	c->place = place;
	if (sy_test.mutant == MUTANT_NO_SECOND_LOOK)
		return CLAIM_OK;
	if (!(seen_twice(ga, c) | seen_twice(gb, c)))
		return CLAIM_OK;
	race();
	count(SY_C_CLAIM_WITHDRAWN);
	if (sy_test.mutant == MUTANT_LIVE_BEFORE_LOOK && c->state == SY_NEW)
		WRITE_ONCE(l->word, 0);
	else
		CAS(&l->word, c->id | c->state, 0);
	return CLAIM_COLLISION;
}

/* The claim's key is a port that a closed flow still has: ends that flow. 1: claim again. */
__attribute__((noinline)) int flow_free_port(const struct flow_claim *c)
{
	if (!c)
		return 0;
	for (int i = 0; i < 2 * SY_LINES_PER_GROUP; i++) {
		__u32 group = i < SY_LINES_PER_GROUP ? flow_group1(c->hash) : flow_group2(c->hash), index;
		struct sy_line *l = line_at(group * SY_LINES_PER_GROUP + (i & (SY_LINES_PER_GROUP - 1))), *f;
		__u64 w, fw;

		if (!l || !same_key(l, c))
			continue;
		w = READ_ONCE(l->word);
		if (FLOW_STATE(w) != SY_USED && FLOW_STATE(w) != SY_USED_ESTABLISHED)
			continue;
		index = READ_ONCE(l->mate);
		f = line_at(index);
		if (!f)
			return 0;
		fw = READ_ONCE(f->word);
		if (FLOW_ID(fw ^ w) || FLOW_STATE(fw) != SY_CLOSING)
			return 0;
		count(SY_C_CLOSED_TAKEN);
		return flow_take(index, fw);
	}
	return 0;
}
