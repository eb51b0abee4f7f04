// SPDX-License-Identifier: GPL-2.0
/* The TC hook, ingress: finishes everything. Checksums of TCP go through the helper, which knows whether the sum is complete or
 * still to be finished by the device; a next hop that is not resolved is left to the kernel by bpf_redirect_neigh. */
#include <linux/pkt_cls.h>
#include "reset.bpf.h"

typedef struct __sk_buff hook_ctx;
#define HOOK_FINISHES 1
#include "steps.bpf.h"

#define HEADERS_LEN (ETH_LEN + 60 + TCP_LEN) /* with every IP option */
#define TCP_CHECK_AT 16 /* offset of the checksum in the TCP header */

INLINE __u32 hook_ifindex(hook_ctx *ctx)
{
	return ctx->ifindex;
}

INLINE int hook_can_send(hook_ctx *ctx, const struct hop *h)
{
	return 1;
}

INLINE int hook_can_answer(hook_ctx *ctx)
{
	return 1;
}

/* The frames of others have been sorted out by their packet type. */
INLINE int hook_is_for_us(hook_ctx *ctx)
{
	return 1;
}

INLINE int tc_out(hook_ctx *ctx, const struct hop *h)
{
	return h->flags & SY_NH_RESOLVED ? bpf_redirect(h->ifindex, 0) : bpf_redirect_neigh(h->ifindex, 0, 0, 0);
}

INLINE int hook_send(hook_ctx *ctx, const struct pkt *p, const struct rewrite *rw, const struct hop *h)
{
	__u32 addrs = csum_diff(pkt_saddr(p), rw->saddr) + csum_diff(pkt_daddr(p), rw->daddr), l4 = p->l4;
	__u32 ports = csum_diff((__u32)p->key.ports, rw->ports);
	void *data, *data_end;
	struct iphdr *ip;

	if (l4 > ETH_LEN + 60)
		return TC_ACT_SHOT;
	if (bpf_l4_csum_replace(ctx, l4 + TCP_CHECK_AT, 0, addrs, BPF_F_PSEUDO_HDR) ||
	    bpf_l4_csum_replace(ctx, l4 + TCP_CHECK_AT, 0, ports, 0))
		return TC_ACT_SHOT;
	data = (void *)(long)ctx->data;
	data_end = (void *)(long)ctx->data_end;
	ip = data + ETH_LEN;
	if ((void *)(ip + 1) > data_end || data + l4 + 4 > data_end)
		return TC_ACT_SHOT;
	ip->check = csum_apply(ip->check, addrs + (__u16)~bpf_htons(0x0100));
	ip->ttl = p->ttl - 1;
	*(volatile __be32 *)&ip->saddr = rw->saddr;
	*(volatile __be32 *)&ip->daddr = rw->daddr;
	*(volatile __u32 *)(data + l4) = rw->ports;
	if (h->flags & SY_NH_RESOLVED)
		hop_write_macs(data, h);
	return tc_out(ctx, h);
}

/* Make the frame, already RESET_LEN long, the RST r. A sum that the device is to finish must hold the pseudo header alone:
 * whether it is such a frame shows in the helper leaving a plain change undone. */
INLINE int tc_write_reset(hook_ctx *ctx, const struct reset *r)
{
	struct {
		struct iphdr ip;
		struct tcphdr tcp;
	} h;
	__u16 check, zero = 0, probe = 0;

	reset_build(r, &h.ip, &h.tcp);
	check = h.tcp.check;
	/* the sum over the whole frame, where the device gave one, is kept right: the probe is taken back unsummed */
	if (bpf_skb_store_bytes(ctx, ETH_LEN + IP_LEN + TCP_CHECK_AT, &zero, 2, BPF_F_RECOMPUTE_CSUM) ||
	    bpf_l4_csum_replace(ctx, ETH_LEN + IP_LEN + TCP_CHECK_AT, 0, 0x1234, 2) ||
	    bpf_skb_load_bytes(ctx, ETH_LEN + IP_LEN + TCP_CHECK_AT, &probe, 2) ||
	    bpf_skb_store_bytes(ctx, ETH_LEN + IP_LEN + TCP_CHECK_AT, &zero, 2, 0))
		return -1;
	if (!probe)
		check = csum_fold(reset_pseudo(r));
	h.tcp.check = check;
	return bpf_skb_store_bytes(ctx, ETH_LEN, &h, sizeof(h), BPF_F_RECOMPUTE_CSUM) ? -1 : 0;
}

INLINE int tc_swap_macs(hook_ctx *ctx)
{
	void *data = (void *)(long)ctx->data, *data_end = (void *)(long)ctx->data_end;
	__u64 to, from;

	if (data + ETH_LEN > data_end)
		return -1;
	to = mac_load(data + ETH_ALEN);
	from = mac_load(data);
	mac_store(data, to);
	mac_store(data + ETH_ALEN, from);
	return 0;
}

NOINLINE int hook_reset(hook_ctx *ctx, const struct pkt *p)
{
	struct reset r;

	reset_to_sender(p, &r);
	/* with IP options a sum to be finished would start at the wrong place: such a frame is dropped, its sender sends again */
	if (bpf_skb_change_tail(ctx, RESET_LEN, 0) || tc_write_reset(ctx, &r) || tc_swap_macs(ctx))
		return TC_ACT_SHOT;
	return bpf_redirect(ctx->ifindex, 0);
}

/* A packet of an evicted backend: a RST back to it, and one to the client at the backend's own sequence number. */
NOINLINE int hook_reset_both(hook_ctx *ctx, const struct pkt *p, const struct rewrite *rw, const struct hop *h)
{
	struct reset r;
	void *data, *data_end;

	if (p->flags & TCP_ACK) {
		reset_to_sender(p, &r);
		if (bpf_skb_change_tail(ctx, RESET_LEN, 0) || tc_write_reset(ctx, &r) || tc_swap_macs(ctx))
			return TC_ACT_SHOT;
		bpf_clone_redirect(ctx, ctx->ifindex, 0);
	} else if (bpf_skb_change_tail(ctx, RESET_LEN, 0)) {
		return TC_ACT_SHOT;
	}
	r.saddr = rw->saddr;
	r.daddr = rw->daddr;
	r.ports = rw->ports;
	r.seq = p->seq;
	r.ack = 0;
	r.flags = TCP_RST;
	if (tc_write_reset(ctx, &r))
		return TC_ACT_SHOT;
	data = (void *)(long)ctx->data;
	data_end = (void *)(long)ctx->data_end;
	if (data + ETH_LEN > data_end)
		return TC_ACT_SHOT;
	if (h->flags & SY_NH_RESOLVED)
		hop_write_macs(data, h);
	return tc_out(ctx, h);
}

INLINE int tc_action(int verdict, int action)
{
	if (verdict == SY_V_NOT_OURS || verdict == SY_V_FRAGMENT || verdict == SY_V_NO_BACKEND_PASS)
		return TC_ACT_UNSPEC;
	return action;
}

/* The whole hook, inline: the bench calls it from a program that drives it. */
INLINE int tc_packet(struct __sk_buff *ctx)
{
	int verdict;
	void *data, *data_end;
	struct pkt p = { .action = TC_ACT_SHOT };

	/* a tag that the device stripped: the frame is of another network */
	if (ctx->vlan_present || ctx->pkt_type != 0 /* PACKET_HOST */) {
		count_verdict(SY_V_NOT_OURS);
		return TC_ACT_UNSPEC;
	}
	data = (void *)(long)ctx->data;
	data_end = (void *)(long)ctx->data_end;
	if (data + HEADERS_LEN > data_end && (__u32)(data_end - data) < ctx->len) {
		bpf_skb_pull_data(ctx, HEADERS_LEN < ctx->len ? HEADERS_LEN : ctx->len);
		data = (void *)(long)ctx->data;
		data_end = (void *)(long)ctx->data_end;
	}
	verdict = steps(ctx, &p, pkt_parse(&p, data, data_end, ctx->len));
	count_verdict(verdict);
	return tc_action(verdict, p.action);
}

SEC("tc")
int steelyard_tc(struct __sk_buff *ctx)
{
	return tc_packet(ctx);
}
