// SPDX-License-Identifier: GPL-2.0
/* Flow table, the writing side: claims, takes and state changes, by compare-and-swap on a line's word alone.
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
#include "flow.bpf.h"

#define CLAIM_TRIES 6
#define CHANGE_TRIES 4
#define WALK_TRIES 16
#define CURSOR_TRIES 256
#define PORT_TRIES 4096 /* candidates of all addresses */
#define WALK_STRIDE 97 /* odd, and no factor of likely pool sizes */
#define SILENT_STRIKES 3
#define SILENT_S 10

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

/* A point where another CPU may come between: the stress test widens it. */
INLINE void race(void)
{
	if (sy_test.delay)
		flow_delay();
}

INLINE __u64 fresh_id(struct sy_cpu *cpu)
{
	__u64 n = __sync_fetch_and_add(&cpu->ids, 1) + 1;

	return ((__u64)(bpf_get_smp_processor_id() + 1) << 52) | ((n << SY_ID_SHIFT) & 0xfffffffffff00ULL);
}

INLINE int is_counted(__u64 word)
{
	return !(word & SY_F_RESET) && (__u32)(FLOW_STATE(word) - SY_ESTABLISHED) <= SY_BACKEND_CLOSED - SY_ESTABLISHED;
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

/* ---- source ports: the claim of the return line is the claim of the port ---- */

/* The next candidate of one source address: the client's own port, then a walk with an odd stride from this CPU's slice, then
 * the backend's cursor. With timewait only the cursor: its order stands for the age of ports kept back. 0: not this try. */
INLINE __u32 port_candidate(const struct sy_pool *pool, struct sy_cpu *cpu, const struct flow_scratch *s)
{
	__u32 n = pool->n_ports, at, own = bpf_ntohs((__u16)s->new.key.ports), try = s->walk.try;
	__u32 backend = s->new.backend;
	struct sy_load *load;

	if (!n)
		return 0;
	if (try > WALK_TRIES) {
		load = bpf_map_lookup_elem(&loads, &backend);
		at = load ? __sync_fetch_and_add(&load->cursor, 1) : 0;
	} else if (s->claim.timewait) {
		return 0;
	} else if (!try) {
		return (pool->member[(own >> 6) & (SY_MAX_POOL_PORTS / 64 - 1)] >> (own & 63)) & 1 ? own : 0;
	} else {
		cpu->port_walk += WALK_STRIDE;
		at = cpu->port_walk + bpf_get_smp_processor_id() * (n / (sy_const.n_cpus ? sy_const.n_cpus : 1));
	}
	return pool->port[(at % n) & (SY_MAX_POOL_PORTS - 1)];
}

/* One port. CLAIM_AGAIN: try the next; CLAIM_TAKEN: there is none left, every address has been walked and, after that, the
 * ports kept back. */
__attribute__((noinline)) int flow_port(struct flow_scratch *s)
{
	struct sy_pool *pool;
	struct sy_cpu *cpu;
	struct flow_key k;
	__u32 zero = 0, port;
	int err;

	if (!s)
		return CLAIM_FULL;
	pool = bpf_map_lookup_elem(&pools, &s->walk.pool);
	cpu = bpf_map_lookup_elem(&cpu_state, &zero);
	if (!pool || !cpu)
		return CLAIM_FULL;
	if (s->walk.try > WALK_TRIES + CURSOR_TRIES) {
		s->walk.try = 0;
		s->walk.addr++;
	}
	if (s->walk.addr >= pool->n_addrs) {
		if (s->claim.timewait || !pool->n_addrs)
			return s->walk.n_full > CURSOR_TRIES / 2 ? CLAIM_FULL : CLAIM_TAKEN;
		s->claim.timewait = 1;
		s->walk.addr = 0;
	}
	port = port_candidate(pool, cpu, s);
	s->walk.try++;
	if (!port)
		return CLAIM_AGAIN;
	s->claim.line.daddr = pool->addr[s->walk.addr & (SY_MAX_POOL_ADDRS - 1)];
	s->claim.line.dport = bpf_htons(port);
	k.addrs = line_addrs(&s->claim.line);
	k.ports = line_ports(&s->claim.line);
	s->claim.hash = flow_hash(&k);
	err = flow_claim(&s->claim);
	if (err == CLAIM_OK)
		return CLAIM_OK;
	if (err == CLAIM_COLLISION)
		s->claim.id = fresh_id(cpu);
	s->walk.n_full += err == CLAIM_FULL;
	count(SY_C_PORT_TRIES);
	return CLAIM_AGAIN;
}

/* ---- a new flow ---- */

INLINE void return_line(struct flow_scratch *s, const struct sy_backend *b)
{
	struct sy_line *l = &s->claim.line;
	struct flow_new *n = &s->new;

	l->saddr = b->addr[3];
	*(__u64 *)&l->sport = (__u64)b->port | ((__u64)IPPROTO_TCP << 32);
	l->new_saddr = (__u32)(n->key.addrs >> 32);
	l->new_daddr = (__u32)n->key.addrs;
	l->new_sport = (__u16)(n->key.ports >> 16);
	l->new_dport = (__u16)n->key.ports;
	l->mate = ~0U;
	l->seen = n->now;
	l->seq = 0;
	l->backend = n->backend;
	l->backend_gen = n->backend_gen;
	l->aux = n->nh;
	s->claim.state = SY_USED;
	s->claim.timewait = 0;
	s->walk.pool = b->pool;
	s->walk.addr = 0;
	s->walk.try = 0;
	s->walk.n_full = 0;
}

INLINE void forward_line(struct flow_scratch *s, const struct sy_backend *b)
{
	struct sy_line *l = &s->claim.line;
	__be32 source = l->daddr;
	__be16 port = l->dport;

	l->mate = s->claim.place;
	*(__u64 *)&l->saddr = s->new.key.addrs;
	*(__u64 *)&l->sport = s->new.key.ports;
	l->new_saddr = source;
	l->new_daddr = b->addr[3];
	l->new_sport = port;
	l->new_dport = b->port;
	l->seq = s->new.seq;
	l->aux = SY_ISN_TAG(s->claim.id >> SY_ID_SHIFT);
	s->claim.hash = s->new.hash;
	s->claim.state = SY_NEW;
	s->claim.timewait = 0;
	s->new.new_saddr = source;
	s->new.new_ports = (__u32)port | ((__u32)b->port << 16);
}

/* NEW becomes SYN, and only that makes the flow exist. */
INLINE int publish_flow(struct flow_claim *c, struct sy_line *r)
{
	struct sy_line *f = line_at(c->place);

	if (!f)
		return FLOW_NEW_ERROR;
	if (sy_test.mutant == MUTANT_LIVE_BEFORE_LOOK)
		return FLOW_NEW_OK;
	CAS(&f->word, c->id | SY_NEW, c->id | SY_SYN);
	if (sy_test.mutant == MUTANT_LATE_MATE) {
		race();
		WRITE_ONCE(r->mate, c->place);
	}
	return FLOW_NEW_OK;
}

__attribute__((noinline)) int flow_new(struct flow_scratch *s)
{
	struct sy_backend *b;
	struct sy_cpu *cpu;
	struct sy_line *r;
	__u32 zero = 0;
	int err = CLAIM_AGAIN;

	if (!s)
		return FLOW_NEW_ERROR;
	b = bpf_map_lookup_elem(&backends, &s->new.backend);
	cpu = bpf_map_lookup_elem(&cpu_state, &zero);
	if (!b || !cpu)
		return FLOW_NEW_ERROR;
	s->claim.id = fresh_id(cpu);
	return_line(s, b);
	for (int i = 0; i < PORT_TRIES && err == CLAIM_AGAIN; i++)
		err = flow_port(s);
	if (err)
		return err == CLAIM_FULL ? FLOW_NEW_FULL : FLOW_NEW_NO_PORT;

	r = line_at(s->claim.place);
	forward_line(s, b);
	race();
	err = CLAIM_AGAIN;
	for (int i = 0; i < CLAIM_TRIES && err == CLAIM_AGAIN; i++)
		err = flow_claim(&s->claim);
	if (!r)
		return FLOW_NEW_ERROR;
	if (!err) {
		race();
		return publish_flow(&s->claim, r);
	}
	CAS(&r->word, s->claim.id | SY_USED, 0);
	return err == CLAIM_FULL ? FLOW_NEW_FULL : FLOW_NEW_COLLISION;
}

/* ---- state changes ---- */

/* The backend's SYN-ACK: remember its ISN, under the flow's own tag, so that a late one cannot set another flow's. */
INLINE void set_isn(struct sy_line *f, __u64 id, __u32 seq, __u32 ack)
{
	__u64 tag = SY_ISN_TAG(id >> SY_ID_SHIFT), old = READ_ONCE(f->aux), next = tag | SY_ISN_SET | seq;

	if ((old ^ tag) >> 33 || old == next || READ_ONCE(f->seq) + 1 != ack)
		return;
	CAS(&f->aux, old, next);
}

/* A client's packet acknowledges the backend's ISN + 1 or more: data first or a lost ACK do as well. */
INLINE int acknowledges(const struct sy_line *f, __u64 id, __u32 ack)
{
	__u64 aux = READ_ONCE(f->aux);

	return !((aux ^ (SY_ISN_TAG(id >> SY_ID_SHIFT) | SY_ISN_SET)) >> 32) && (__s32)(ack - (__u32)aux - 1) >= 0;
}

INLINE __u64 changed_by_reset(const struct sy_line *f, __u64 word, __u32 what, __u32 ack)
{
	if (FLOW_STATE(word) != SY_SYN)
		return what & CHANGE_PLAUSIBLE ? word | SY_F_RESET : word;
	/* a client's RST during the handshake passes through and the record stays: that resolves a backend's TIME_WAIT.
	 * Only the backend's own refusal, acknowledging the client's ISN, ends a half-open flow. */
	if ((what & CHANGE_BACKEND) && READ_ONCE(f->seq) + 1 == ack)
		return word | SY_F_RESET;
	return word;
}

INLINE __u64 changed_by_client(const struct sy_line *f, __u64 word, __u32 what, __u32 ack)
{
	__u32 state = FLOW_STATE(word);

	if (state == SY_SYN && (what & (TCP_ACK | TCP_SYN)) == TCP_ACK && acknowledges(f, FLOW_ID(word), ack))
		state = SY_ESTABLISHED;
	if ((what & TCP_FIN) && (what & CHANGE_PLAUSIBLE)) {
		if (state == SY_ESTABLISHED) {
			state = SY_CLIENT_CLOSED;
		} else if (state == SY_BACKEND_CLOSED) {
			state = SY_CLOSING;
			word = (word & ~SY_STRIKE_MASK) | SY_F_BACKEND_FIRST;
		}
	}
	if (!(what & TCP_SYN))
		word &= ~SY_F_RESET; /* it lives after all */
	return (word & ~SY_STATE_MASK) | state;
}

INLINE __u64 changed_by_backend(__u64 word, __u32 what)
{
	__u32 state = FLOW_STATE(word);

	if ((what & TCP_FIN) && (what & CHANGE_PLAUSIBLE)) {
		if (state == SY_ESTABLISHED) {
			state = SY_BACKEND_CLOSED;
		} else if (state == SY_CLIENT_CLOSED) {
			state = SY_CLOSING;
			word &= ~SY_STRIKE_MASK;
		}
	}
	return (word & ~SY_STATE_MASK) | state;
}

/* One try. 0: the flow is gone; 1: done; else the newer word, to try again with. */
__attribute__((noinline)) __u64 flow_change_once(__u64 lines_at, __u64 word, __u32 what, __u64 seqs)
{
	struct sy_line *f = line_at((__u32)lines_at);
	__u32 ack = seqs >> 32, backend;
	__u64 next = word & ~SY_F_REAPING, old;
	struct sy_backend_count *counter;
	struct sy_load *load;

	if (!f)
		return 0;
	backend = READ_ONCE(f->backend);
	load = bpf_map_lookup_elem(&loads, &backend);
	if (!load)
		return 0;
	if (what & CHANGE_EVICTED) {
		next |= SY_F_RESET;
	} else if (what & TCP_RST) {
		next = changed_by_reset(f, next, what, ack);
	} else if (!(what & CHANGE_BACKEND)) {
		next = changed_by_client(f, next, what, ack);
	} else {
		if ((what & (TCP_SYN | TCP_ACK)) == (TCP_SYN | TCP_ACK) && FLOW_STATE(word) == SY_SYN)
			set_isn(f, FLOW_ID(word), (__u32)seqs, ack);
		next = changed_by_backend(next, what);
	}
	if (next == word)
		return 1;
	/* counted up before the swap and undone when it is lost: never too low for a flow that is there */
	if (is_counted(next) && !is_counted(word))
		__sync_fetch_and_add(&load->active, 1);
	race();
	old = CAS(&f->word, word, next);
	if (old != word) {
		if (is_counted(next) && !is_counted(word))
			__sync_fetch_and_sub(&load->active, 1);
		count(SY_C_CAS_LOST);
		return !FLOW_ID(old ^ word) && FLOW_LIVE(FLOW_STATE(old)) ? old : 0;
	}
	if (is_counted(word) && !is_counted(next))
		__sync_fetch_and_sub(&load->active, 1);
	if (word & SY_F_REAPING)
		count(SY_C_UNREAPED);
	if (FLOW_STATE(word) == SY_SYN) {
		if (FLOW_STATE(next) != SY_SYN) {
			counter = count_of_backend(backend);
			if (counter)
				__sync_fetch_and_add(&counter->connections, 1);
		} else if ((next & ~word & SY_F_RESET) && (what & TCP_RST)) {
			__sync_fetch_and_add(&load->refused, 1);
		}
	}
	return 1;
}

__attribute__((noinline)) __u64 flow_change(__u64 lines_at, __u64 word, __u32 what, __u64 seqs)
{
	for (int i = 0; i < CHANGE_TRIES; i++) {
		__u64 r = flow_change_once(lines_at, word, what, seqs);

		if (r < 2)
			return r;
		word = r;
	}
	return 1;
}

__attribute__((noinline)) int flow_strike(__u32 forward, __u64 word, __u32 silent)
{
	struct sy_line *f = line_at(forward);
	__u32 strikes = (word & SY_STRIKE_MASK) >> SY_STRIKE_SHIFT;
	__u64 next;

	if (!f || FLOW_STATE(word) == SY_CLOSING)
		return 0;
	if (silent < sy_const.hz)
		strikes = 0;
	else if (strikes < SILENT_STRIKES)
		strikes++;
	next = (word & ~(SY_STRIKE_MASK | SY_F_REAPING)) | ((__u64)strikes << SY_STRIKE_SHIFT);
	if (next != word)
		CAS(&f->word, word, next);
	return strikes == SILENT_STRIKES && silent >= SILENT_S * sy_const.hz;
}
