// SPDX-License-Identifier: GPL-2.0
/* The XDP hook. What it cannot finish (no neighbour, an interface that takes no XDP frames, two answers at once) and what is
 * not ours it passes, untouched and uncounted, to the TC program on the same interface. */
#include "reset.bpf.h"

typedef struct xdp_md hook_ctx;
#define HOOK_FINISHES 0
#include "steps.bpf.h"

INLINE __u32 hook_ifindex(hook_ctx *ctx)
{
	return ctx->ingress_ifindex;
}

INLINE int hook_can_send(hook_ctx *ctx, const struct hop *h)
{
	return (h->flags & (SY_NH_RESOLVED | SY_IF_XDP_XMIT)) == (SY_NH_RESOLVED | SY_IF_XDP_XMIT);
}

INLINE int hook_can_answer(hook_ctx *ctx)
{
	__u32 slot;
	struct sy_iface *f = iface_find(ctx->ingress_ifindex, &slot);

	return f && (f->flags & SY_IF_XDP_XMIT);
}

INLINE int hook_is_for_us(hook_ctx *ctx)
{
	void *data = (void *)(long)ctx->data, *data_end = (void *)(long)ctx->data_end;
	__u32 slot;
	struct sy_iface *f = iface_find(ctx->ingress_ifindex, &slot);

	return f && data + ETH_LEN <= data_end && mac_load(data) == mac_load(f->mac);
}

INLINE int xdp_out(hook_ctx *ctx, __u32 ifindex, __u32 flags)
{
	if (ifindex == ctx->ingress_ifindex && !(flags & SY_IF_REDIRECT))
		return XDP_TX;
	return bpf_redirect(ifindex, 0);
}

INLINE int hook_send(hook_ctx *ctx, const struct pkt *p, const struct rewrite *rw, const struct hop *h)
{
	void *data = (void *)(long)ctx->data, *data_end = (void *)(long)ctx->data_end;
	struct iphdr *ip = data + ETH_LEN;
	struct tcphdr *tcp;
	__u32 addrs, ports;

	if (p->l4 > ETH_LEN + 60)
		return XDP_DROP;
	tcp = data + p->l4;
	if ((void *)(tcp + 1) > data_end || (void *)(ip + 1) > data_end)
		return XDP_DROP;
	addrs = csum_diff(pkt_saddr(p), rw->saddr) + csum_diff(pkt_daddr(p), rw->daddr);
	ports = csum_diff((__u32)p->key.ports, rw->ports);
	/* the time to live goes down by one: as a 16-bit word it shares with the protocol, by 1 in its first byte */
	ip->check = csum_apply(ip->check, addrs + (__u16)~bpf_htons(0x0100));
	ip->ttl = p->ttl - 1;
	tcp->check = csum_apply(tcp->check, addrs + ports);
	*(volatile __be32 *)&ip->saddr = rw->saddr;
	*(volatile __be32 *)&ip->daddr = rw->daddr;
	*(volatile __u32 *)&tcp->source = rw->ports;
	hop_write_macs(data, h);
	return xdp_out(ctx, h->ifindex, h->flags);
}

NOINLINE int hook_reset(hook_ctx *ctx, const struct pkt *p)
{
	void *data, *data_end = (void *)(long)ctx->data_end;
	struct reset r;
	struct sy_iface *f;
	__u64 from, to;
	__u32 slot;
	int spare;

	reset_to_sender(p, &r);
	spare = (int)(ctx->data_end - ctx->data) - RESET_LEN;
	if (bpf_xdp_adjust_tail(ctx, -spare))
		return XDP_DROP;
	data = (void *)(long)ctx->data;
	data_end = (void *)(long)ctx->data_end;
	if (data + RESET_LEN > data_end)
		return XDP_DROP;
	to = mac_load(data + ETH_ALEN);
	from = mac_load(data);
	mac_store(data, to);
	mac_store(data + ETH_ALEN, from);
	reset_build(&r, data + ETH_LEN, data + ETH_LEN + IP_LEN);
	f = iface_find(ctx->ingress_ifindex, &slot);
	return xdp_out(ctx, ctx->ingress_ifindex, f ? f->flags : 0);
}

INLINE int hook_reset_both(hook_ctx *ctx, const struct pkt *p, const struct rewrite *rw, const struct hop *h)
{
	return XDP_PASS; /* not reached: HOOK_FINISHES is 0 */
}

/* The whole hook, inline: tests and the bench call it from programs that drive it. */
INLINE int xdp_packet(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *data_end = (void *)(long)ctx->data_end;
	int verdict;
	struct pkt p = { .action = XDP_DROP };

	verdict = steps(ctx, &p, pkt_parse(&p, data, data_end, data_end - data));
	if (verdict == HAND_OVER || verdict == SY_V_NOT_OURS || verdict == SY_V_FRAGMENT || verdict == SY_V_NO_BACKEND_PASS)
		return XDP_PASS;
	count_verdict(verdict);
	return p.action;
}

SEC("xdp")
int steelyard_xdp(struct xdp_md *ctx)
{
	return xdp_packet(ctx);
}
