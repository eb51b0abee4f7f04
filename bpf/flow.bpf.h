/* SPDX-License-Identifier: GPL-2.0 */
/* Flow table, the reading side: hash, places, finding a line. The writing side is in flow.bpf.c.
 *
 *  key ──hash──▶ group A ─┬─ line line line line        a flow = forward line  client  → listener
 *            └─▶ group B ─┴─ line line line line               + return line   backend → source address
 *                                                       mate of each = index of the other
 * A line's word carries {id, state}. Reading: word, key, rewrite, word again; the id must not have changed. The forward
 * word alone is the flow's state: a return line that is USED counts only while its mate's word has its id and is live. */
#pragma once
#include "count.bpf.h"

/* What find hands out: the rewrite as it stood between two reads of the word. */
struct flow_ref {
	__u64 word; /* this line's */
	__u64 aux;
	__u32 index; /* this line's */
	__u32 mate;
	__be32 new_saddr;
	__be32 new_daddr;
	__u32 new_ports; /* sport, dport as on the wire */
	__u32 backend;
	__u32 backend_gen;
	__u32 seen;
	__u32 seq;
};

struct flow_key {
	__u64 addrs; /* saddr, daddr as on the wire */
	__u64 ports; /* sport, dport, proto, zeros as on the wire */
};

#define FLOW_STATE(word) ((__u32)(word) & SY_STATE_MASK)
#define FLOW_ID(word) ((word) & ~0xffULL)
#define FLOW_LIVE(state) ((__u32)((state) - SY_SYN) <= SY_CLOSING - SY_SYN)

INLINE struct sy_line *line_at(__u32 index)
{
	__u32 g = index / SY_LINES_PER_GROUP;
	struct sy_group *group = bpf_map_lookup_elem(&lines, &g);

	return group ? &group->line[index % SY_LINES_PER_GROUP] : 0;
}

/* Keyed: two 32x32-bit products of sums with secret words, then a multiply to spread them. */
INLINE __u64 flow_hash(const struct flow_key *k)
{
	__u64 a = (__u64)(__u32)((__u32)k->addrs + sy_const.secret[0]) *
		  (__u32)((__u32)(k->addrs >> 32) + sy_const.secret[1]);
	__u64 b = (__u64)(__u32)((__u32)k->ports + sy_const.secret[2]) *
		  (__u32)((__u32)(k->ports >> 32) + sy_const.secret[3]);
	__u64 h = a + b;

	h ^= h >> 32;
	h *= 0x9e3779b97f4a7c15ULL;
	return h ^ (h >> 29);
}

/* 32 bits that are as good as random but the same for every look at one SYN: XDP may hand it to TC, which must not draw afresh, or
 * a backend that XDP cannot reach would get more than its share; and both CPUs that see it twice pick alike. */
INLINE __u32 flow_random(__u64 hash, __u32 isn)
{
	__u64 r = hash + (((__u64)isn << 32) | sy_const.secret[4]);

	r ^= r >> 31;
	r *= 0xbf58476d1ce4e5b9ULL;
	r ^= ((__u64)sy_const.secret[5] << 32) | sy_const.secret[6];
	r ^= r >> 29;
	r *= 0x94d049bb133111ebULL;
	return r >> 32;
}

INLINE __u32 flow_group1(__u64 hash)
{
	return (__u32)hash & sy_const.group_mask;
}

INLINE __u32 flow_group2(__u64 hash)
{
	return ((__u32)hash ^ ((__u32)(hash >> 32) | 1)) & sy_const.group_mask;
}

INLINE __u64 line_addrs(const struct sy_line *l)
{
	return *(const volatile __u64 *)&l->saddr;
}

INLINE __u64 line_ports(const struct sy_line *l)
{
	return *(const volatile __u64 *)&l->sport;
}

INLINE int flow_read(const struct sy_line *l, __u32 index, const struct flow_key *k, struct flow_ref *ref)
{
	__u64 before = READ_ONCE(l->word), after, seen;

	barrier();
	if (line_addrs(l) != k->addrs || line_ports(l) != k->ports)
		return 0;
	ref->new_saddr = READ_ONCE(l->new_saddr);
	ref->new_daddr = READ_ONCE(l->new_daddr);
	ref->new_ports = *(const volatile __u32 *)&l->new_sport;
	ref->mate = READ_ONCE(l->mate);
	seen = *(const volatile __u64 *)&l->seen;
	ref->seen = (__u32)seen;
	ref->seq = (__u32)(seen >> 32);
	ref->backend = READ_ONCE(l->backend);
	ref->backend_gen = READ_ONCE(l->backend_gen);
	ref->aux = READ_ONCE(l->aux);
	barrier();
	after = READ_ONCE(l->word);
	if (FLOW_ID(before ^ after) || (__u32)(FLOW_STATE(after) - SY_SYN) > SY_USED_ESTABLISHED - SY_SYN ||
	    (__u32)(FLOW_STATE(before) - SY_SYN) > SY_USED_ESTABLISHED - SY_SYN)
		return 0;
	ref->word = after;
	ref->index = index;
	return 1;
}

/* The line that has the key and is not absent. A return line's mate is not looked at here. */
INLINE int flow_find(const struct flow_key *k, __u64 hash, struct flow_ref *ref)
{
	__u32 g1 = flow_group1(hash), g2 = flow_group2(hash);
	struct sy_group *g = bpf_map_lookup_elem(&lines, &g1);

	if (!g)
		return 0;
	if (flow_read(&g->line[0], g1 * 4, k, ref) || flow_read(&g->line[1], g1 * 4 + 1, k, ref) ||
	    flow_read(&g->line[2], g1 * 4 + 2, k, ref) || flow_read(&g->line[3], g1 * 4 + 3, k, ref))
		return 1;
	g = bpf_map_lookup_elem(&lines, &g2);
	if (!g)
		return 0;
	return flow_read(&g->line[0], g2 * 4, k, ref) || flow_read(&g->line[1], g2 * 4 + 1, k, ref) ||
	       flow_read(&g->line[2], g2 * 4 + 2, k, ref) || flow_read(&g->line[3], g2 * 4 + 3, k, ref);
}

/* A packet was here: at most once a second, both halves of one aligned word. Harmless in a wrong line. */
INLINE void flow_touch(struct sy_line *l, __u32 now, __u32 seq)
{
	*(volatile __u64 *)&l->seen = (__u64)now | ((__u64)seq << 32);
}

/* ---- the writing side, flow.bpf.c: global functions, each verified alone ---- */

/* flow_change, told about the packet in one word: TCP flags in bits 7..0, and these. */
#define CHANGE_BACKEND 0x100 /* the packet is the backend's */
#define CHANGE_PLAUSIBLE 0x200 /* its sequence number is near the last one seen */
#define CHANGE_EVICTED 0x400 /* its backend is evicted: set RESET */
#define TCP_FIN 0x01
#define TCP_SYN 0x02
#define TCP_RST 0x04
#define TCP_ACK 0x10

/* Apply a packet to the forward word. lines_at: forward index in the low, return index in the high half; word: the forward
 * word seen. seqs: sequence in the low, acknowledgement in the high half. 0: the flow is gone. */
__u64 flow_change(__u64 lines_at, __u64 word, __u32 what, __u64 seqs);
/* End a flow: compare-and-swap its forward word from the one seen to BUSY, free both lines. 1: this caller ended it. */
int flow_take(__u32 forward, __u64 word);
/* The client of a draining backend sent again, a second or more after it last did. unanswered: the backend has not been heard
 * since then; silent: jiffies since it was. 1: enough, reset the flow. */
int flow_strike(__u32 forward, __u64 word, __u32 unanswered, __u32 silent);

enum flow_new_error { FLOW_NEW_OK = 0, FLOW_NEW_COLLISION = -1, FLOW_NEW_FULL = -2, FLOW_NEW_NO_PORT = -3, FLOW_NEW_ERROR = -4 };

/* What a new flow is made from and with. Too large for the stack of a chain of seven functions (512 bytes in all), so each CPU
 * has one in a map; BPF programs of a CPU do not interrupt each other. */
struct flow_new {
	struct flow_key key; /* in: the client's packet */
	__u64 hash;
	__u32 backend;
	__u32 backend_gen;
	__u32 seq; /* client's ISN */
	__u32 now;
	__be32 new_saddr; /* out: the rewrite of the client's packets */
	__u32 new_ports;
};

/* One claim of a place for a line that is to have the given state. */
struct flow_claim {
	struct sy_line line; /* everything but the word */
	__u64 hash;
	__u64 id; /* fresh, shifted */
	__u32 state; /* SY_USED or SY_NEW */
	__u32 timewait; /* may take a TIMEWAIT line with the key */
	__u32 place; /* out: line index */
	__u32 zero;
};

struct port_walk {
	__u32 pool;
	__u32 addr; /* index of the source address tried */
	__u32 try; /* how many candidates of it have been tried */
	__u32 port; /* to be tried once more: a place was being made for it, or the race for it was lost; 0: none */
	__u32 n_again; /* how often that one has been tried */
	__u32 n_full; /* candidates in a row for which the table had no place */
};

struct flow_scratch {
	struct flow_new new;
	struct flow_claim claim;
	struct port_walk walk;
};
SY_MAP(scratch, PERCPU_ARRAY, __u32, struct flow_scratch, 1, 0);

/* Make the flow s->new: source port, return line, forward line. Nothing is left behind on failure. */
int flow_new(struct flow_scratch *s);

enum claim_error {
	CLAIM_OK = 0,
	CLAIM_TAKEN = -1, /* a live line has the key */
	CLAIM_FULL = -2, /* all eight places are live flows' */
	CLAIM_COLLISION = -3, /* another CPU claimed the same key at the same time: withdrawn */
	CLAIM_AGAIN = -4, /* lost a race for the place */
	CLAIM_TIMEWAIT = -5, /* the port is kept back */
};
/* One attempt. */
int flow_claim(struct flow_claim *c);
/* After CLAIM_TAKEN by a closed flow: end that flow. 1: claim again. */
int flow_free_port(const struct flow_claim *c);
