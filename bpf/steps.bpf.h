/* SPDX-License-Identifier: GPL-2.0 */
/* What is done with a packet, the same on every hook: one straight list, both directions.
 *
 *   parse → flow lookup by the packet's own 5-tuple ─ hit ─▶ backend's generation and state → next hop → change → send
 *                └ miss ─▶ gate → listener → SYN: pick → next hop → claim → send
 *                                            else: RST
 *
 * What a hook brings is in hook.bpf.h.
 * HAND_OVER is returned before any side effect and leaves no trace: whatever finishes the packet counts it. */
#pragma once
#include "flow.bpf.h"
#include "nexthop.bpf.h"
#include "pick.bpf.h"
#include "pkt.bpf.h"

#define HAND_OVER (-1)
#define AGAIN (-2) /* another CPU was quicker: look the packet up again */
#define MISS (-3) /* no flow, or one that a SYN replaces */
#define LOOKS 3

/* A sequence number is believed when it is at most so far behind the last one kept, or so far ahead; the last one is kept once
 * a second and whenever it has moved on by a step. */
#define SEQ_BACK (1U << 24)
#define SEQ_AHEAD (1U << 25)
#define SEQ_STEP (1U << 23)

struct rewrite {
	__be32 saddr;
	__be32 daddr;
	__u32 ports; /* sport, dport as on the wire */
};

INLINE int is_plausible(const struct pkt *p, const struct flow_ref *ref)
{
	return p->seq - ref->seq + SEQ_BACK < SEQ_AHEAD + SEQ_BACK;
}

INLINE __u32 change_flags(const struct pkt *p, const struct flow_ref *ref)
{
	return is_plausible(p, ref) ? p->flags | CHANGE_PLAUSIBLE : p->flags;
}

/* A packet was here. Its sequence number is kept only if it is to be believed: during the handshake a SYN's, and at once, later
 * any plausible one but a SYN's or a RST's, which may answer a challenge or be a guess. */
INLINE void keep_seen(const struct pkt *p, const struct flow_ref *ref, int handshake)
{
	__u32 seq = ref->seq;
	struct sy_line *l;

	if (p->now - ref->seen < sy_const.hz && p->seq - ref->seq - SEQ_STEP >= SEQ_AHEAD - SEQ_STEP &&
	    !(handshake && (p->flags & TCP_SYN)))
		return;
	if (handshake) {
		if (p->flags & TCP_SYN)
			seq = p->seq;
	} else if (is_plausible(p, ref) && !(p->flags & (TCP_SYN | TCP_RST))) {
		seq = p->seq;
	}
	l = line_at(ref->index);
	if (l)
		flow_touch(l, p->now, seq);
}

/* The next hop kept in a return line is of an older epoch: put the new one there, unless the line has become another flow's. */
NOINLINE void keep_hop(const struct flow_ref *ref, const struct hop *hop)
{
	struct sy_line *l = line_at(ref->index);
	__u64 nh = hop_word(hop);

	if (!l || !nh || nh == ref->aux || FLOW_ID(READ_ONCE(l->word) ^ ref->word))
		return;
	if (CAS(&l->aux, ref->aux, nh) == ref->aux && FLOW_ID(READ_ONCE(l->word) ^ ref->word))
		CAS(&l->aux, nh, 0);
}

INLINE __u64 change_seqs(const struct pkt *p)
{
	return (__u64)p->seq | ((__u64)p->ack << 32);
}

INLINE int steps_reset(hook_ctx *ctx, struct pkt *p, int verdict)
{
	if (!hook_can_answer(ctx))
		return HAND_OVER;
	p->action = hook_reset(ctx, p);
	return verdict;
}

/* ---- a packet of the backend ---- */

INLINE int steps_return(hook_ctx *ctx, struct pkt *p, struct flow_ref *ref, __u32 state)
{
	struct rewrite rw = { ref->new_saddr, ref->new_daddr, ref->new_ports };
	struct sy_line *f, *r;
	struct hop hop;
	int handshake = 0;
	__u64 word = 0;

	/* established for good: the mate need not be looked at until something changes */
	if (FLOW_STATE(ref->word) == SY_USED || (p->flags & (TCP_FIN | TCP_SYN | TCP_RST)) || state == SY_EVICTED) {
		f = line_at(ref->mate);
		if (!f)
			return SY_V_NOT_OURS; /* its forward line is not there yet */
		word = READ_ONCE(f->word);
		if (FLOW_ID(word ^ ref->word) || !FLOW_LIVE(FLOW_STATE(word)))
			return SY_V_NOT_OURS;
	}
	if (p->ttl <= 1)
		return SY_V_TTL;
	hop_find(ctx, ref->aux, rw.daddr, rw.saddr, p->now, &hop);
	if (!hop.ifindex)
		return SY_V_NO_ROUTE;
	if (state == SY_EVICTED) {
		if (!HOOK_FINISHES)
			return HAND_OVER;
		flow_change(ref->mate | ((__u64)ref->index << 32), word, CHANGE_EVICTED, 0);
		if (p->flags & TCP_RST)
			return SY_V_EVICTED_DROP;
		p->action = hook_reset_both(ctx, p, &rw, &hop);
		return SY_V_EVICTED_BACKEND;
	}
	if (!hook_can_send(ctx, &hop))
		return HAND_OVER;
	if (!hop.kept)
		keep_hop(ref, &hop);
	if (word) {
		handshake = FLOW_STATE(word) == SY_SYN;
		if ((p->flags & (TCP_FIN | TCP_SYN | TCP_RST)) || (word & SY_F_REAPING)) {
			if (!flow_change(ref->mate | ((__u64)ref->index << 32), word,
					 change_flags(p, ref) | CHANGE_BACKEND, change_seqs(p)))
				return SY_V_LOST;
		}
		if (FLOW_STATE(ref->word) == SY_USED && FLOW_STATE(word) == SY_ESTABLISHED && !(word & SY_F_REAPING)) {
			r = line_at(ref->index);
			if (r)
				CAS(&r->word, ref->word, FLOW_ID(ref->word) | SY_USED_ESTABLISHED);
		}
	}
	keep_seen(p, ref, handshake);
	count_packet(ref->backend, p->ip_bytes);
	p->action = hook_send(ctx, p, &rw, &hop);
	return SY_V_RETURN;
}

/* ---- a packet of the client ---- */

/* Draining, and the backend has not said a word while the client kept sending? */
INLINE int is_silent(const struct flow_ref *ref, __u32 now)
{
	struct sy_line *r = line_at(ref->mate);
	__u32 heard;

	if (!r || now - ref->seen < sy_const.hz)
		return 0;
	heard = READ_ONCE(r->seen);
	/* both are kept to the second: unanswered is what the backend has not followed for that long */
	return flow_strike(ref->index, ref->word, (__s32)(ref->seen - heard) >= (__s32)sy_const.hz,
			   (__s32)(now - heard) > 0 ? now - heard : 0);
}

INLINE int steps_evicted(hook_ctx *ctx, struct pkt *p, struct flow_ref *ref, int verdict)
{
	if (p->flags & TCP_RST) {
		verdict = SY_V_EVICTED_DROP;
	} else if (!hook_can_answer(ctx)) {
		return HAND_OVER;
	}
	flow_change(ref->index | ((__u64)ref->mate << 32), ref->word, CHANGE_EVICTED, 0);
	if (verdict != SY_V_EVICTED_DROP)
		p->action = hook_reset(ctx, p);
	return verdict;
}

INLINE int steps_forward(hook_ctx *ctx, struct pkt *p, struct flow_ref *ref, struct sy_backend *b, __u32 state)
{
	struct rewrite rw = { ref->new_saddr, ref->new_daddr, ref->new_ports };
	struct hop hop;

	if (state == SY_EVICTED)
		return steps_evicted(ctx, p, ref, SY_V_EVICTED_CLIENT);
	if (p->ttl <= 1)
		return SY_V_TTL;
	hop_find(ctx, READ_ONCE(b->nh), rw.daddr, rw.saddr, p->now, &hop);
	if (!hop.ifindex)
		return SY_V_NO_ROUTE;
	if (!hook_can_send(ctx, &hop))
		return HAND_OVER;
	if (state == SY_DRAINING) {
		/* a strike is a side effect, and may call for an answer */
		if (!hook_can_answer(ctx))
			return HAND_OVER;
		if (is_silent(ref, p->now))
			return steps_evicted(ctx, p, ref, SY_V_SILENT_RESET);
	}
	if ((ref->word & (0xff & ~SY_STRIKE_MASK)) != SY_ESTABLISHED || (p->flags & (TCP_FIN | TCP_SYN | TCP_RST))) {
		if (!flow_change(ref->index | ((__u64)ref->mate << 32), ref->word, change_flags(p, ref), change_seqs(p)))
			return SY_V_LOST;
	}
	keep_seen(p, ref, FLOW_STATE(ref->word) == SY_SYN);
	count_packet(ref->backend, p->ip_bytes);
	p->action = hook_send(ctx, p, &rw, &hop);
	return SY_V_FORWARD;
}

/* ---- no flow: for a listener? ---- */

INLINE int steps_no_backend(hook_ctx *ctx, struct pkt *p, const struct sy_service *s, __u32 service)
{
	__u32 on_empty = s->on_empty;

	if (on_empty == SY_EMPTY_PASS)
		return SY_V_NO_BACKEND_PASS;
	if (on_empty == SY_EMPTY_RESET && !hook_can_answer(ctx))
		return HAND_OVER;
	count_event(SY_E_NO_BACKEND, service, 0, pkt_saddr(p));
	if (on_empty == SY_EMPTY_DROP)
		return SY_V_NO_BACKEND_DROP;
	return steps_reset(ctx, p, SY_V_NO_BACKEND_RESET);
}

INLINE int steps_refuse(hook_ctx *ctx, struct pkt *p, __u32 service, __u32 backend, int err)
{
	if (err == FLOW_NEW_COLLISION)
		return AGAIN;
	if (err == FLOW_NEW_ERROR)
		return SY_V_ERROR;
	count_event(err == FLOW_NEW_FULL ? SY_E_TABLE_FULL : SY_E_PORTS_EXHAUSTED, service, backend, pkt_saddr(p));
	p->action = hook_reset(ctx, p);
	return err == FLOW_NEW_FULL ? SY_V_TABLE_FULL : SY_V_PORTS_EXHAUSTED;
}

/* A SYN that begins a flow. */
INLINE int steps_new(hook_ctx *ctx, struct pkt *p, __u32 service)
{
	__u32 zero = 0, backend = pick_backend(service, flow_random(p->hash, p->seq));
	struct sy_service *s = bpf_map_lookup_elem(&services, &service);
	struct flow_scratch *scratch_of_cpu = bpf_map_lookup_elem(&scratch, &zero);
	struct sy_backend_count *counter;
	struct flow_new *n;
	struct sy_backend *b;
	struct rewrite rw;
	struct hop hop;
	int err;

	if (!s || !s->used || !scratch_of_cpu)
		return SY_V_ERROR;
	if (!backend)
		return steps_no_backend(ctx, p, s, service);
	b = bpf_map_lookup_elem(&backends, &backend);
	if (!b)
		return SY_V_ERROR;
	if (p->ttl <= 1)
		return SY_V_TTL;
	n = &scratch_of_cpu->new;
	n->key = p->key;
	n->hash = p->hash;
	n->seq = p->seq;
	n->now = p->now;
	n->backend = backend;
	n->backend_gen = SY_WORD_GEN(READ_ONCE(b->word));
	barrier();
	if (READ_ONCE(b->service) != service)
		return AGAIN; /* its id was given back since the pick */
	rw.daddr = b->addr[3];
	hop_find(ctx, READ_ONCE(b->nh), rw.daddr, pkt_daddr(p), p->now, &hop);
	if (!hop.ifindex)
		return SY_V_NO_ROUTE;
	if (!hook_can_send(ctx, &hop) || !hook_can_answer(ctx))
		return HAND_OVER;
	if (p->over_word && !flow_take(p->over_index, p->over_word))
		return AGAIN;
	err = flow_new(scratch_of_cpu);
	if (err)
		return steps_refuse(ctx, p, service, backend, err);
	counter = count_of_backend(backend);
	if (counter)
		counter->picks++;
	count_packet(backend, p->ip_bytes);
	rw.saddr = n->new_saddr;
	rw.ports = n->new_ports;
	p->action = hook_send(ctx, p, &rw, &hop);
	return SY_V_NEW;
}

INLINE int steps_is_vip(const struct pkt *p)
{
	__be32 daddr = pkt_daddr(p);

	return bpf_map_lookup_elem(&vips4, &daddr) != 0;
}

NOINLINE int steps_listener(hook_ctx *ctx, struct pkt *p)
{
	struct sy_listener_key key = { .addr = pkt_daddr(p), .port = (__u16)(p->key.ports >> 16), .proto = IPPROTO_TCP };
	struct sy_listener *l;

	if (!steps_is_vip(p))
		return SY_V_NOT_OURS;
	l = bpf_map_lookup_elem(&listeners4, &key);
	if (!l)
		return SY_V_NOT_OURS;
	if (!hook_is_for_us(ctx))
		return HAND_OVER;
	if (p->flags & TCP_RST)
		return SY_V_UNKNOWN_DROP;
	if ((p->flags & (TCP_SYN | TCP_ACK | TCP_FIN)) != TCP_SYN)
		return steps_reset(ctx, p, SY_V_UNKNOWN_RESET);
	return steps_new(ctx, p, l->service);
}

NOINLINE int steps_hit(hook_ctx *ctx, struct pkt *p)
{
	struct flow_ref ref;
	struct sy_backend *b;
	__u32 state;

	p->over_word = 0;
	if (!flow_find(&p->key, p->hash, &ref))
		return MISS;
	b = bpf_map_lookup_elem(&backends, &ref.backend);
	if (!b)
		return SY_V_ERROR;
	state = backend_state(b, READ_ONCE(b->word), ref.backend_gen);
	if (FLOW_STATE(ref.word) >= SY_USED)
		return steps_return(ctx, p, &ref, state);
	/* a SYN on a flow that is closed, reset or evicted is a new connection; on an established one its backend answers */
	if ((p->flags & (TCP_SYN | TCP_ACK | TCP_RST)) == TCP_SYN &&
	    (FLOW_STATE(ref.word) == SY_CLOSING || (ref.word & SY_F_RESET) || state == SY_EVICTED)) {
		p->over_word = ref.word;
		p->over_index = ref.index;
		return MISS;
	}
	return steps_forward(ctx, p, &ref, b, state);
}

/* The list. Returns a verdict or HAND_OVER; p->action is what the hook is to return for a verdict that sent something. */
INLINE int steps(hook_ctx *ctx, struct pkt *p, enum parsed parsed)
{
	if (parsed == PARSED_OTHER)
		return SY_V_NOT_OURS;
	if (parsed != PARSED_OK) {
		if (!steps_is_vip(p))
			return SY_V_NOT_OURS;
		if (!hook_is_for_us(ctx))
			return HAND_OVER;
		return parsed == PARSED_FRAGMENT ? SY_V_FRAGMENT : SY_V_MALFORMED;
	}
	p->now = bpf_jiffies64();
	p->hash = flow_hash(&p->key);
	for (int i = 0; i < LOOKS; i++) {
		int verdict = steps_hit(ctx, p);

		if (verdict == MISS)
			verdict = steps_listener(ctx, p);
		if (verdict != AGAIN)
			return verdict;
	}
	return SY_V_COLLISION;
}
