/* SPDX-License-Identifier: GPL-2.0 */
/* Where a packet leaves: resolved before any side effect.
 *
 *   1. the word that the backend record or the return line holds, while its epoch is current and the agent alive;
 *   2. this CPU's cache by destination, while its epoch is current and it is younger than a second;
 *   3. the kernel's routing table.
 * So a route change is followed at once with the agent alive, and within a second with it dead. */
#pragma once
#include "count.bpf.h"
#include "hook.bpf.h"

struct hop {
	__u32 ifindex; /* 0: no route */
	__u16 flags; /* SY_IF_* | SY_NH_RESOLVED */
	__u16 kept; /* it is the word that was held */
	__u64 macs; /* destination and the first two bytes of the source, as they begin a frame */
	__u32 macs_rest; /* the other four */
	__u32 zero;
};

#define MAC_MASK 0xffffffffffffULL

INLINE __u64 mac_load(const __u8 *mac)
{
	const __u16 *m = (const __u16 *)mac;

	return (__u64)m[0] | ((__u64)m[1] << 16) | ((__u64)m[2] << 32);
}

INLINE void hop_set_macs(struct hop *h, __u64 dmac, __u64 smac)
{
	h->macs = (dmac & MAC_MASK) | (smac << 48);
	h->macs_rest = smac >> 16;
}

/* Both addresses of a frame, in two stores. */
INLINE void hop_write_macs(void *eth, const struct hop *h)
{
	*(volatile __u64 *)eth = h->macs;
	*(volatile __u32 *)(eth + 8) = h->macs_rest;
}

INLINE void mac_store(void *at, __u64 mac)
{
	__u16 *m = at;

	m[0] = mac;
	m[1] = mac >> 16;
	m[2] = mac >> 32;
}

/* An interface's record by its index: at most four looks. */
INLINE struct sy_iface *iface_find(__u32 ifindex, __u32 *ret_slot)
{
#pragma unroll
	for (int i = 0; i < 4; i++) {
		__u32 slot = (ifindex + i) & (SY_MAX_IFACES - 1);
		struct sy_iface *f = bpf_map_lookup_elem(&ifaces, &slot);

		if (slot && f && f->ifindex == ifindex) {
			*ret_slot = slot;
			return f;
		}
	}
	return 0;
}

INLINE void hop_from_cache(const struct sy_nh *c, struct hop *h)
{
	h->ifindex = c->ifindex;
	h->flags = c->flags;
	h->kept = 0;
	hop_set_macs(h, mac_load(c->dmac), mac_load(c->smac));
}

/* Ask the kernel and remember the answer for this CPU; c->ifindex 0 when there is no route. */
NOINLINE void hop_look_up(hook_ctx *ctx, __be32 daddr, __be32 saddr, __u32 epoch, struct sy_nh *c)
{
	struct bpf_fib_lookup fib = {
		.family = 2 /* AF_INET */, .ifindex = hook_ifindex(ctx), .ipv4_src = saddr, .ipv4_dst = daddr
	};
	struct sy_iface *f;
	__u32 slot;
	long err;

	err = bpf_fib_lookup(ctx, &fib, sizeof(fib), 0);
	count(SY_C_FIB_LOOKUPS);
	c->daddr = daddr;
	c->epoch = epoch;
	c->stamp = bpf_jiffies64();
	c->ifindex = 0;
	c->flags = 0;
	/* FRAG_NEEDED: too large for the way out, which is the device's to say (the way itself is found) */
	if (err != BPF_FIB_LKUP_RET_SUCCESS && err != BPF_FIB_LKUP_RET_NO_NEIGH && err != BPF_FIB_LKUP_RET_FRAG_NEEDED)
		return;
	c->ifindex = fib.ifindex;
	if (err != BPF_FIB_LKUP_RET_NO_NEIGH) {
		__builtin_memcpy(c->dmac, fib.dmac, ETH_ALEN);
		__builtin_memcpy(c->smac, fib.smac, ETH_ALEN);
		/* a neighbour that is still being asked for may come with an empty address */
		if (mac_load(c->dmac))
			c->flags = SY_NH_RESOLVED;
	}
	f = iface_find(fib.ifindex, &slot);
	if (f)
		c->flags |= f->flags;
}

INLINE __u32 nh_hash(__be32 daddr)
{
	return (daddr * 0x9e3779b1U) >> 16 & (SY_NH_CACHE - 1);
}

/* nh: the word held for it, or 0. */
INLINE void hop_find(hook_ctx *ctx, __u64 nh, __be32 daddr, __be32 saddr, __u32 now, struct hop *h)
{
	__u32 zero = 0, slot = SY_NH_SLOT(nh), epoch, at;
	struct sy_config *cfg = bpf_map_lookup_elem(&config, &zero);
	struct sy_nh *c;
	__u64 mac;

	if (!cfg)
		goto none;
	epoch = READ_ONCE(cfg->epoch);
	if (slot && SY_NH_EPOCH(nh) == (epoch & 0xff) && now - READ_ONCE(cfg->beat_jiffies) < sy_const.hz) {
		struct sy_iface *f = bpf_map_lookup_elem(&ifaces, &slot);

		if (f && f->ifindex) {
			mac = *(const volatile __u64 *)f;
			h->ifindex = f->ifindex;
			h->flags = mac >> 48 | SY_NH_RESOLVED;
			h->kept = 1;
			hop_set_macs(h, nh, mac & MAC_MASK);
			return;
		}
	}
	at = nh_hash(daddr);
	c = bpf_map_lookup_elem(&nh_cache, &at);
	if (!c)
		goto none;
	if (c->daddr != daddr || c->epoch != epoch || now - c->stamp >= sy_const.hz || !(c->flags & SY_NH_RESOLVED))
		hop_look_up(ctx, daddr, saddr, epoch, c);
	hop_from_cache(c, h);
	return;
none:
	__builtin_memset(h, 0, sizeof(*h));
}

/* The word to keep for a hop: 0 when its interface has no slot or its MAC is not known. */
INLINE __u64 hop_word(const struct hop *h)
{
	__u32 zero = 0, slot = 0;
	struct sy_config *cfg = bpf_map_lookup_elem(&config, &zero);

	if (!cfg || !(h->flags & SY_NH_RESOLVED) || !iface_find(h->ifindex, &slot))
		return 0;
	return (h->macs & MAC_MASK) | ((__u64)slot << 48) | ((__u64)(READ_ONCE(cfg->epoch) & 0xff) << 56);
}
