// SPDX-License-Identifier: GPL-2.0
/* Flow table, the writing side: claims and takes, by compare-and-swap on a line's word alone. Source ports and new flows are in
 * flow_new.bpf.c, state changes in flow_change.bpf.c.
 *
 *   claim    FREE ──cas──▶ BUSY ──write, exchange──▶ USED (return) / NEW (forward) ──look at all eight──▶
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

static long spin(__u32 i, void *ctx)
{
	bpf_get_prandom_u32();
	return 0;
}

/* Mostly none, sometimes short, now and then long enough for whole packets to pass on another CPU. */
__attribute__((noinline)) int flow_delay(void)
{
	__u32 r = bpf_get_prandom_u32();

	if ((r & 15) <= 3)
		bpf_loop(r & 0x1f0 ? (r >> 9) & 63 : (r >> 9) & 4095, spin, 0, 0);
	return 0;
}

INLINE void free_return(struct sy_line *r, __u64 id, __u32 timewait)
{
	__u64 next = timewait ? id | SY_TIMEWAIT : 0;

	/* twice: the hint may be set between the read and the swap, once */
#pragma unroll
	for (int i = 0; i < 2; i++) {
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
	__u32 age;
	__u32 kind; /* 0 none, 1 half-open, 2 closed or reset, 3 TIMEWAIT */
	__u32 zero;
};

INLINE void consider(const struct sy_line *l, __u32 index, __u32 now, struct victim *v)
{
	__u64 w = READ_ONCE(l->word);
	__u32 state = FLOW_STATE(w), kind = 0, age;

	if (state == SY_TIMEWAIT) {
		kind = 3;
	} else {
		if (state >= SY_USED) {
			const struct sy_line *f;
			__u64 fw;

			index = READ_ONCE(l->mate);
			f = line_at(index);
			if (!f)
				return;
			fw = READ_ONCE(f->word);
			if (FLOW_ID(fw ^ w))
				return;
			w = fw;
			state = FLOW_STATE(w);
			l = f;
		}
		if (FLOW_LIVE(state))
			kind = state == SY_CLOSING || (w & SY_F_RESET) ? 2 : state == SY_SYN;
	}
	age = now - READ_ONCE(l->seen);
	if (kind && (kind > v->kind || (kind == v->kind && age > v->age))) {
		v->kind = kind;
		v->age = age;
		v->index = index;
		v->word = w;
	}
}

/* 1: a place has become free among the claim's eight (or someone else was quicker: look again). 0: all are live. */
__attribute__((noinline)) int flow_make_room(__u32 group1, __u32 group2)
{
	struct victim v = { 0 };
	__u32 now = bpf_jiffies64();

#pragma unroll
	for (int i = 0; i < 8; i++) {
		__u32 index = (i < 4 ? group1 : group2) * SY_LINES_PER_GROUP + (i & 3);
		struct sy_line *l = line_at(index);

		if (l)
			consider(l, index, now, &v);
	}
	if (!v.kind)
		return 0;
	if (v.kind == 3) {
		struct sy_line *l = line_at(v.index);

		count(SY_C_TIMEWAIT_TAKEN);
		return l && CAS(&l->word, v.word, 0) == v.word;
	}
	count(v.kind == 1 ? SY_C_HALF_OPEN_TAKEN : SY_C_CLOSED_TAKEN);
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
	__u32 used; /* bit per line */
};

INLINE int look_first(const struct sy_group *g, __u32 index, const struct flow_claim *c, struct look *look)
{
	__u64 used = 0;

#pragma unroll
	for (int i = 0; i < SY_LINES_PER_GROUP; i++) {
		const struct sy_line *l = &g->line[i];
		__u64 w = READ_ONCE(l->word), nonzero = (w | -w) >> 63;

		barrier();
		opaque(nonzero);
		used |= nonzero << i;
		if (same_key(l, c) && FLOW_STATE(w) > SY_BUSY) {
			if (FLOW_STATE(w) != SY_TIMEWAIT)
				return CLAIM_TAKEN;
			if (!c->timewait)
				return CLAIM_TIMEWAIT;
			look->timewait_word = w;
			look->timewait_index = index + i;
		}
	}
	look->used = used;
	return CLAIM_OK;
}

__attribute__((noinline)) int flow_claim(struct flow_claim *c)
{
	struct look a = { 0 }, b = { 0 };
	struct sy_group *ga, *gb;
	struct sy_line *l;
	__u32 g1, g2, place;
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
	err = look_first(ga, g1 * SY_LINES_PER_GROUP, c, &a);
	if (err)
		return err;
	err = look_first(gb, g2 * SY_LINES_PER_GROUP, c, &b);
	if (err)
		return err;

	if (a.timewait_word | b.timewait_word) {
		/* that very line, never a second one with the key elsewhere */
		old = a.timewait_word ? a.timewait_word : b.timewait_word;
		place = a.timewait_word ? a.timewait_index : b.timewait_index;
		count(SY_C_TIMEWAIT_TAKEN);
	} else {
		__u32 n1 = NIBBLE_COUNT(a.used), n2 = NIBBLE_COUNT(b.used);
		__u32 second = n1 >= 3 && n2 < n1;
		__u32 used = second ? b.used : a.used;

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
	if (sy_test.mutant == MUTANT_LIVE_BEFORE_LOOK && c->state == SY_NEW)
		EXCHANGE(&l->word, c->id | SY_SYN);
	else
		EXCHANGE(&l->word, c->id | c->state);
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
