// SPDX-License-Identifier: GPL-2.0
/* Floor programs: what the steps of a balancer cost by themselves on this machine, with nothing around them. The bench
 * measures ours against them in one run, over the same flow table: where memory happens to lie costs up to twice as much for
 * one table as for another of the same size and age. Groups of four 64-byte lines, two groups by a keyed hash, the word read
 * twice. Shares with the product the ABI header and the driver only. */
#include "../bpf/drive.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 64); /* the product's map is put here at load */
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct sy_group);
} floor_lines SEC(".maps");

struct floor_key {
	__u64 addrs, ports;
};
struct floor_value {
	__be32 saddr, daddr;
	__u32 ports, zero;
};
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1 << 19);
	__type(key, struct floor_key);
	__type(value, struct floor_value);
} floor_hash SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, __be32);
	__type(value, __u32);
} floor_vips SEC(".maps");

const volatile __u32 floor_mask = 0; /* groups - 1 */
const volatile __u32 floor_secret[4] = { 0 };
__u64 floor_ids = 0;
__u64 floor_done = 0; /* iterations that did all of their work */

#define EXCHANGE(p, new) __sync_lock_test_and_set((p), (new))

INLINE __u64 key_hash(const struct floor_key *k)
{
	__u64 a = (__u64)(__u32)((__u32)k->addrs + floor_secret[0]) * (__u32)((__u32)(k->addrs >> 32) + floor_secret[1]);
	__u64 b = (__u64)(__u32)((__u32)k->ports + floor_secret[2]) * (__u32)((__u32)(k->ports >> 32) + floor_secret[3]);
	__u64 h = a + b;

	h ^= h >> 32;
	h *= 0x9e3779b97f4a7c15ULL;
	return h ^ (h >> 29);
}

INLINE __u32 group1(__u64 h)
{
	return (__u32)h & floor_mask;
}

INLINE __u32 group2(__u64 h)
{
	return ((__u32)h ^ ((__u32)(h >> 32) | 1)) & floor_mask;
}

/* The next step's packet, then its key by a parse as a balancer has to. 0, or -1. */
INLINE int next_packet(void *d, void *end, struct floor_key *k)
{
	__u32 i = (__u32)drive_next++ & drive_mask;
	struct drive_step *s = bpf_map_lookup_elem(&drive_ops, &i);

	if (!s || drive_packet(d, end, s->flow, s->gen, s->op) || d + DRIVE_LEN > end)
		return -1;
	if (*(volatile __u16 *)(d + 12) != bpf_htons(ETH_P_IP) || *(volatile __u8 *)(d + 14) != 0x45 ||
	    *(volatile __u8 *)(d + 23) != IPPROTO_TCP || *(volatile __u16 *)(d + 20) & bpf_htons(0x3fff))
		return -1;
	k->addrs = *(volatile __u32 *)(d + 26) | (__u64) * (volatile __u32 *)(d + 30) << 32;
	k->ports = *(volatile __u32 *)(d + 34) | (__u64)IPPROTO_TCP << 32;
	return 0;
}

INLINE void set_macs(void *d)
{
	__u16 *p = d;
	__u16 a = p[0], b = p[1], c = p[2];

	p[0] = p[3];
	p[1] = p[4];
	p[2] = p[5];
	p[3] = a;
	p[4] = b;
	p[5] = c;
}

INLINE __u32 halves(__u32 v)
{
	return (v & 0xffff) + (v >> 16);
}

INLINE __u16 fold(__u32 v)
{
	return halves(halves(v));
}

INLINE void rewrite(void *d, const struct floor_key *k, const struct floor_value *v)
{
	__u32 ip = halves(~(__u32)k->addrs) + halves(~(__u32)(k->addrs >> 32)) + halves(v->saddr) + halves(v->daddr);
	__u32 tcp = ip + halves(~(__u32)k->ports) + halves(v->ports);
	volatile __u16 *ip_sum = d + 24, *tcp_sum = d + 50;

	*ip_sum = ~fold((__u16)~*ip_sum + ip + 0xfeff);
	*tcp_sum = ~fold((__u16)~*tcp_sum + tcp);
	*(volatile __u32 *)(d + 26) = v->saddr;
	*(volatile __u32 *)(d + 30) = v->daddr;
	*(volatile __u32 *)(d + 34) = v->ports;
	*(volatile __u8 *)(d + 22) -= 1;
	set_macs(d);
}

INLINE int line_read(struct sy_line *l, const struct floor_key *k, struct floor_value *v)
{
	__u64 word = READ_ONCE(l->word);

	barrier();
	if (*(volatile __u64 *)&l->saddr != k->addrs || *(volatile __u64 *)&l->sport != k->ports)
		return 0;
	v->saddr = READ_ONCE(l->new_saddr);
	v->daddr = READ_ONCE(l->new_daddr);
	v->ports = *(volatile __u32 *)&l->new_sport;
	barrier();
	return !((word ^ READ_ONCE(l->word)) >> SY_ID_SHIFT) && (word & SY_STATE_MASK) >= SY_SYN;
}

INLINE int line_find(const struct floor_key *k, struct floor_value *v)
{
	__u64 h = key_hash(k);
	__u32 g1 = group1(h), g2 = group2(h);
	struct sy_group *g = bpf_map_lookup_elem(&floor_lines, &g1);

	if (!g)
		return 0;
	if (line_read(&g->line[0], k, v) || line_read(&g->line[1], k, v) || line_read(&g->line[2], k, v) ||
	    line_read(&g->line[3], k, v))
		return 1;
	g = bpf_map_lookup_elem(&floor_lines, &g2);
	return g && (line_read(&g->line[0], k, v) || line_read(&g->line[1], k, v) || line_read(&g->line[2], k, v) ||
		     line_read(&g->line[3], k, v));
}

/* Any line of the group, published and not ours, that has the key? used: which places are taken. */
INLINE int line_look(struct sy_group *g, const struct floor_key *k, __u64 id, __u64 *used)
{
#pragma unroll
	for (int i = 0; i < SY_LINES_PER_GROUP; i++) {
		__u64 w = READ_ONCE(g->line[i].word), taken = (w | -w) >> 63;

		barrier();
		opaque(taken);
		*used |= taken << i;
		if (!((*(volatile __u64 *)&g->line[i].saddr ^ k->addrs) | (*(volatile __u64 *)&g->line[i].sport ^ k->ports)) &&
		    (w & SY_STATE_MASK) > SY_BUSY && w >> SY_ID_SHIFT != id)
			return 1;
	}
	return 0;
}

struct floor_claim {
	struct floor_key key;
	struct floor_value value;
	__u32 state, place;
};

/* Claim a place by the protocol: look, compare-and-swap to BUSY, write, exchange, look again. One attempt; a global
 * function, verified alone, as the product's is: inline it is refused (over a million instructions). 1 when it holds. */
__attribute__((noinline)) int floor_claim(struct floor_claim *c)
{
	__u64 id, used1 = 0, used2 = 0, used, n1, n2, h;
	struct sy_group *a, *b, *g;
	struct floor_key k;
	__u32 g1, g2, place;
	struct sy_line *l;

	if (!c)
		return 0;
	k = c->key;
	h = key_hash(&k);
	id = ++floor_ids;
	g1 = group1(h);
	g2 = group2(h);
	a = bpf_map_lookup_elem(&floor_lines, &g1);
	b = bpf_map_lookup_elem(&floor_lines, &g2);
	if (!a || !b || line_look(a, &k, id, &used1) || line_look(b, &k, id, &used2))
		return 0;
	/* how many of four bits are set, and the first that is not: a nibble each */
	n1 = (0x4332322132212110ULL >> (used1 * 4)) & 7;
	n2 = (0x4332322132212110ULL >> (used2 * 4)) & 7;
	g = n1 >= 3 && n2 < n1 ? b : a;
	used = g == b ? used2 : used1;
	if (used == 15)
		return 0;
	place = (0x4010201030102010ULL >> (used * 4)) & 3;
	l = &g->line[place];
	if (CAS(&l->word, 0, id << SY_ID_SHIFT | SY_BUSY) != 0)
		return 0;
	*(volatile __u64 *)&l->saddr = k.addrs;
	*(volatile __u64 *)&l->sport = k.ports;
	l->new_saddr = c->value.saddr;
	l->new_daddr = c->value.daddr;
	*(volatile __u32 *)&l->new_sport = c->value.ports;
	barrier();
	(void)EXCHANGE(&l->word, id << SY_ID_SHIFT | c->state);
	c->place = (g == b ? g2 : g1) * SY_LINES_PER_GROUP + place;
	if (line_look(a, &k, id, &used1) || line_look(b, &k, id, &used2)) {
		(void)EXCHANGE(&l->word, 0);
		return 0;
	}
	return 1;
}

INLINE struct sy_line *line_at(__u32 index)
{
	__u32 at = index / SY_LINES_PER_GROUP;
	struct sy_group *g = bpf_map_lookup_elem(&floor_lines, &at);

	return g ? &g->line[index % SY_LINES_PER_GROUP] : 0;
}

INLINE void line_release(__u32 index)
{
	struct sy_line *l = line_at(index);

	if (l)
		(void)EXCHANGE(&l->word, 0);
}

/* Both halves of a flow as full-nat makes them: the source port is the client's. */
INLINE void halves_of(const struct floor_key *k, struct floor_key *back, struct floor_value *there, struct floor_value *home)
{
	__be32 client = k->addrs, source = bpf_htonl(DRIVE_SOURCE), backend = bpf_htonl(DRIVE_BACKENDS) ^ (client & 0x3f000000);
	__u32 cport = (__u32)k->ports & 0xffff, bport = bpf_htons(8000);

	back->addrs = backend | (__u64)source << 32;
	back->ports = bport | cport << 16 | (__u64)IPPROTO_TCP << 32;
	*there = (struct floor_value){ source, backend, cport | bport << 16, 0 };
	*home = (struct floor_value){ bpf_htonl(DRIVE_LISTENER), client, bpf_htons(DRIVE_LISTENER_PORT) | cport << 16, 0 };
	/* ports of two clients may meet at one backend: make the return key the client's own, as a port claim would */
	back->addrs ^= (__u64)client << 8;
}

#define FLOOR_XDP(NAME)                                                                                                \
	SEC("xdp") int NAME(struct xdp_md *ctx)
#define FLOOR_PACKET                                                                                                   \
	void *d = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;                                         \
	struct floor_key k;                                                                                            \
	if (next_packet(d, end, &k) || d + DRIVE_LEN > end)                                                            \
		return XDP_ABORTED;

/* the driver alone: what every other program here and the product's wrapper spend before the work begins */
FLOOR_XDP(floor_driver)
{
	void *d = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 i = (__u32)drive_next++ & drive_mask;
	struct drive_step *s = bpf_map_lookup_elem(&drive_ops, &i);

	if (!s || drive_packet(d, end, s->flow, s->gen, s->op))
		return XDP_ABORTED;
	floor_done++;
	return XDP_TX;
}

FLOOR_XDP(floor_parse)
{
	FLOOR_PACKET
	set_macs(d);
	if (!k.addrs)
		return XDP_DROP;
	floor_done++;
	return XDP_TX;
}

FLOOR_XDP(floor_hit_line)
{
	FLOOR_PACKET
	struct floor_value v;

	if (!line_find(&k, &v))
		return XDP_DROP;
	rewrite(d, &k, &v);
	floor_done++;
	return XDP_TX;
}

FLOOR_XDP(floor_hit_hash)
{
	FLOOR_PACKET
	struct floor_value *v = bpf_map_lookup_elem(&floor_hash, &k);

	if (!v)
		return XDP_DROP;
	rewrite(d, &k, v);
	floor_done++;
	return XDP_TX;
}

FLOOR_XDP(floor_miss)
{
	FLOOR_PACKET
	struct floor_value v;
	__be32 daddr;

	k.addrs ^= 1ULL << 63; /* an address that no flow and no listener has */
	daddr = k.addrs >> 32;
	if (line_find(&k, &v) || bpf_map_lookup_elem(&floor_vips, &daddr))
		return XDP_DROP;
	floor_done++;
	return XDP_PASS;
}

/* Claim the return line, then the forward line, and tell each of the other. The return line's index, or -1. */
INLINE int claim_both(const struct floor_key *k, __u32 *forward)
{
	struct floor_claim back = { .state = SY_USED }, there = { .key = *k, .state = SY_SYN };
	struct sy_line *r, *f;

	halves_of(k, &back.key, &there.value, &back.value);
	if (!floor_claim(&back))
		return -1;
	if (!floor_claim(&there)) {
		line_release(back.place);
		return -1;
	}
	r = line_at(back.place);
	f = line_at(there.place);
	if (!r || !f)
		return -1;
	r->mate = there.place;
	f->mate = back.place;
	*forward = there.place;
	return back.place;
}

FLOOR_XDP(floor_claims)
{
	FLOOR_PACKET
	__u32 forward;
	int back = claim_both(&k, &forward);

	if (back < 0)
		return XDP_DROP;
	line_release(forward);
	line_release(back);
	floor_done++;
	return XDP_TX;
}

/* Fill and age the kernel's hash: a flow's two entries, or take them out again. */
FLOOR_XDP(floor_insert)
{
	FLOOR_PACKET
	struct floor_key back;
	struct floor_value there, home;

	halves_of(&k, &back, &there, &home);
	if (bpf_map_update_elem(&floor_hash, &k, &there, BPF_ANY) || bpf_map_update_elem(&floor_hash, &back, &home, BPF_ANY))
		return XDP_DROP;
	floor_done++;
	return XDP_TX;
}

FLOOR_XDP(floor_remove)
{
	FLOOR_PACKET
	struct floor_key back;
	struct floor_value there, home;

	halves_of(&k, &back, &there, &home);
	if (bpf_map_delete_elem(&floor_hash, &k) || bpf_map_delete_elem(&floor_hash, &back))
		return XDP_DROP;
	floor_done++;
	return XDP_TX;
}

/* ---- TC: the same hit, checksums by the helpers, as a packet with a partial checksum needs ---- */
SEC("tc")
int floor_tc_driver(struct __sk_buff *ctx)
{
	void *d = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 i = (__u32)drive_next++ & drive_mask;
	struct drive_step *s = bpf_map_lookup_elem(&drive_ops, &i);

	if (!s || drive_packet(d, end, s->flow, s->gen, s->op))
		return -1;
	floor_done++;
	return 0;
}

SEC("tc")
int floor_tc_hit_line(struct __sk_buff *ctx)
{
	void *d = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct floor_key k;
	struct floor_value v;
	__u32 addrs, ports;

	if (next_packet(d, end, &k) || !line_find(&k, &v))
		return -1;
	addrs = halves(~(__u32)k.addrs) + halves(~(__u32)(k.addrs >> 32)) + halves(v.saddr) + halves(v.daddr);
	ports = halves(~(__u32)k.ports) + halves(v.ports);
	if (bpf_l3_csum_replace(ctx, 24, 0, addrs + 0xfeff, 0) || bpf_l4_csum_replace(ctx, 50, 0, addrs, BPF_F_PSEUDO_HDR) ||
	    bpf_l4_csum_replace(ctx, 50, 0, ports, 0))
		return -1;
	d = (void *)(long)ctx->data;
	end = (void *)(long)ctx->data_end;
	if (d + DRIVE_LEN > end)
		return -1;
	*(volatile __u32 *)(d + 26) = v.saddr;
	*(volatile __u32 *)(d + 30) = v.daddr;
	*(volatile __u32 *)(d + 34) = v.ports;
	*(volatile __u8 *)(d + 22) -= 1;
	set_macs(d);
	floor_done++;
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
