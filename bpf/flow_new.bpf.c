// SPDX-License-Identifier: GPL-2.0
/* A new flow: a source port towards the backend, its return line, its forward line.
 *
 *   source address 0: the client's own port, 16 of a walk, 256 of the backend's cursor; address 1: ...; then all once more with
 *   the ports kept back and those of closed flows. The claim of the return line is the claim of the port. Then the forward line:
 *   NEW, and SYN makes it exist. */
#include "flow_write.bpf.h"

#define CLAIM_TRIES 6
#define WALK_TRIES 16
#define CURSOR_TRIES 256
#define PORT_ROUNDS 2400 /* of PORT_STEPS: every candidate of every address twice, and some lost races */
#define PORT_STEPS 4
#define FULL_TRIES 32 /* so many places in a row all taken by live flows: the table is full, not the ports used up */
#define WALK_STRIDE 97 /* odd, and no factor of likely pool sizes */

INLINE struct sy_cpu *this_cpu(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&cpu_state, &zero);
}

/* 0: never, as long as the map is there */
INLINE __u64 fresh_id(void)
{
	struct sy_cpu *cpu = this_cpu();
	__u64 n = cpu ? __sync_fetch_and_add(&cpu->ids, 1) + 1 : 0;

	return ((__u64)(bpf_get_smp_processor_id() + 1) << 52) | ((n << SY_ID_SHIFT) & 0xfffffffffff00ULL);
}

/* ---- source ports: the claim of the return line is the claim of the port ---- */

/* The next candidate of one source address: the client's own port, then a walk with an odd stride from this CPU's slice, then
 * the backend's cursor. With timewait only the cursor: its order stands for the age of ports kept back. 0: not this try. */
INLINE __u32 port_candidate(const struct sy_pool *pool, const struct flow_scratch *s)
{
	__u32 n = pool->n_ports, at, own = bpf_ntohs((__u16)s->new.key.ports), try = s->walk.try;
	__u32 backend = s->new.backend;
	struct sy_load *load;
	struct sy_cpu *cpu;

	if (!n)
		return 0;
	if (try > WALK_TRIES) {
		load = bpf_map_lookup_elem(&loads, &backend);
		at = load ? __sync_fetch_and_add(&load->cursor, 1) : 0;
	} else if (s->claim.timewait) {
		return 0;
	} else if (!try) {
		/* clang knows that it has 16 bits and drops the mask; kernel 6.1 knows nothing after a byte swap and refuses */
		opaque(own);
		return (pool->member[(own >> 6) & (SY_MAX_POOL_PORTS / 64 - 1)] >> (own & 63)) & 1 ? own : 0;
	} else {
		cpu = this_cpu();
		if (!cpu)
			return 0;
		cpu->port_walk += WALK_STRIDE;
		at = cpu->port_walk + bpf_get_smp_processor_id() * (n / (sy_const.n_cpus ? sy_const.n_cpus : 1));
	}
	return pool->port[(at % n) & (SY_MAX_POOL_PORTS - 1)];
}

/* One port. CLAIM_AGAIN: try the next; CLAIM_TAKEN: there is none left, every address has been walked and, after that, the
 * ports kept back. */
INLINE int try_port(struct flow_scratch *s, const struct sy_pool *pool)
{
	__u32 port;
	int err;

	if (!s->walk.port && s->walk.try > WALK_TRIES + CURSOR_TRIES) {
		s->walk.try = 0;
		s->walk.addr++;
	}
	if (s->walk.addr >= pool->n_addrs) {
		if (s->claim.timewait || !pool->n_addrs)
			return CLAIM_TAKEN;
		s->claim.timewait = 1;
		s->walk.addr = 0;
	}
	port = s->walk.port;
	if (!port) {
		port = port_candidate(pool, s);
		s->walk.try++;
		s->walk.n_again = 0;
		if (!port)
			return CLAIM_AGAIN;
	}
	s->claim.line.daddr = pool->addr[s->walk.addr & (SY_MAX_POOL_ADDRS - 1)];
	s->claim.line.dport = bpf_htons(port);
	s->claim.hash = flow_hash((const struct flow_key *)&s->claim.line.saddr);
	err = flow_claim(&s->claim);
	if (err == CLAIM_TAKEN && s->claim.timewait && flow_free_port(&s->claim))
		err = flow_claim(&s->claim);
	if (err == CLAIM_OK)
		return CLAIM_OK;
	if (err == CLAIM_COLLISION)
		s->claim.id = fresh_id();
	s->walk.port = err == CLAIM_AGAIN && s->walk.n_again++ < CLAIM_TRIES ? port : 0;
	s->walk.n_full = err == CLAIM_FULL ? s->walk.n_full + 1 : 0;
	count(SY_C_PORT_TRIES);
	return s->walk.n_full > FULL_TRIES ? CLAIM_FULL : CLAIM_AGAIN;
}

/* A few of them: the verifier walks each turn of the caller's loop, but this function once. */
__attribute__((noinline)) int flow_port(struct flow_scratch *s)
{
	struct sy_pool *pool;
	int err = CLAIM_AGAIN;
	__u32 key;

	if (!s)
		return CLAIM_FULL;
	key = s->walk.pool; /* kernel 6.1 refuses a key that lies in an argument's memory: "R2 type=mem expected=fp" */
	pool = bpf_map_lookup_elem(&pools, &key);
	if (!pool)
		return CLAIM_FULL;
	for (int i = 0; i < PORT_STEPS && err == CLAIM_AGAIN; i++)
		err = try_port(s, pool);
	return err;
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
	l->aux = 0; /* the way back is looked up, and kept, by the first packet that takes it: a SYN flood asks for nothing */
	s->claim.state = SY_USED;
	s->claim.timewait = 0;
	s->walk.pool = b->pool;
	s->walk.addr = 0;
	s->walk.try = 0;
	s->walk.port = 0;
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
	if (CAS(&f->word, c->id | SY_NEW, c->id | SY_SYN) != (c->id | SY_NEW)) {
		/* stopped for seconds in between, and the sweeper took it for a dead claimer's */
		CAS(&r->word, c->id | SY_USED, 0);
		return FLOW_NEW_COLLISION;
	}
	if (sy_test.mutant == MUTANT_LATE_MATE) {
		race();
		WRITE_ONCE(r->mate, c->place);
	}
	return FLOW_NEW_OK;
}

__attribute__((noinline)) int flow_new(struct flow_scratch *s)
{
	struct sy_backend *b;
	struct sy_line *r;
	int err = CLAIM_AGAIN;
	__u32 key;

	if (!s)
		return FLOW_NEW_ERROR;
	key = s->new.backend;
	b = bpf_map_lookup_elem(&backends, &key);
	if (!b)
		return FLOW_NEW_ERROR;
	s->claim.id = fresh_id();
	return_line(s, b);
	for (int i = 0; i < PORT_ROUNDS && err == CLAIM_AGAIN; i++)
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
