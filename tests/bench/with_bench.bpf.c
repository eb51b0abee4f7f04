// SPDX-License-Identifier: GPL-2.0
/* The product's XDP hook, driven packet by packet for the bench: the same inline text as the program that is attached. */
#define steelyard_xdp bench_plain
#include "../../bpf/xdp.bpf.c"
#undef steelyard_xdp
#include "../bpf/drive.bpf.h"

__u32 bench_service = 0;
__u64 bench_done = 0; /* iterations that did all of their work, where no verdict counts them */

INLINE struct drive_step *next_step(void *d, void *end)
{
	__u32 i = (__u32)drive_next++ & drive_mask;
	struct drive_step *s = bpf_map_lookup_elem(&drive_ops, &i);

	return !s || drive_packet(d, end, s->flow, s->gen, s->op) ? 0 : s;
}

SEC("xdp")
int bench_xdp(struct xdp_md *ctx)
{
	if (!next_step((void *)(long)ctx->data, (void *)(long)ctx->data_end))
		return XDP_ABORTED;
	return xdp_packet(ctx);
}

/* The same, and remember where the client's packet went. */
SEC("xdp")
int bench_learn(struct xdp_md *ctx)
{
	struct drive_step *s = next_step((void *)(long)ctx->data, (void *)(long)ctx->data_end);
	int action;

	if (!s)
		return XDP_ABORTED;
	action = xdp_packet(ctx);
	if (action == XDP_TX || action == XDP_REDIRECT)
		drive_look((void *)(long)ctx->data, (void *)(long)ctx->data_end, s->flow, s->gen, s->op);
	return action;
}

/* A packet to an address that no flow and no listener has. */
SEC("xdp")
int bench_others(struct xdp_md *ctx)
{
	void *d = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	int action;

	if (!next_step(d, end) || d + DRIVE_LEN > end)
		return XDP_ABORTED;
	*(volatile __u8 *)(d + 33) |= 0x80;
	action = xdp_packet(ctx);
	bench_done += action == XDP_PASS;
	return action;
}

/* End the flow of the step's client, so that it can begin again. */
SEC("xdp")
int bench_end(struct xdp_md *ctx)
{
	void *d = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct flow_ref ref;
	struct pkt p;

	if (!next_step(d, end) || pkt_parse(&p, d, end, end - d) != PARSED_OK)
		return XDP_ABORTED;
	if (!flow_find(&p.key, flow_hash(&p.key), &ref) || !flow_take(ref.index, ref.word))
		return XDP_DROP;
	bench_done++;
	return XDP_TX;
}

SEC("xdp")
int bench_pick(struct xdp_md *ctx)
{
	bench_done += pick_backend(bench_service, bpf_get_prandom_u32()) != 0;
	return XDP_PASS;
}

SEC("xdp")
int bench_no_pick(struct xdp_md *ctx)
{
	bench_done += bpf_get_prandom_u32() != bench_service;
	return XDP_PASS;
}
