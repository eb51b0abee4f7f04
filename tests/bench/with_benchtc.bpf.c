// SPDX-License-Identifier: GPL-2.0
/* The product's TC hook, driven packet by packet for the bench. */
#define steelyard_tc benchtc_plain
#include "../../bpf/tc.bpf.c"
#undef steelyard_tc
#include "../bpf/drive.bpf.h"

INLINE struct drive_step *next_step(void *d, void *end)
{
	__u32 i = (__u32)drive_next++ & drive_mask;
	struct drive_step *s = bpf_map_lookup_elem(&drive_ops, &i);

	return !s || drive_packet(d, end, s->flow, s->gen, s->op) ? 0 : s;
}

SEC("tc")
int benchtc_run(struct __sk_buff *ctx)
{
	if (!next_step((void *)(long)ctx->data, (void *)(long)ctx->data_end))
		return TC_ACT_SHOT;
	return tc_packet(ctx);
}

/* The same, and remember where the client's packet went. */
SEC("tc")
int benchtc_learn(struct __sk_buff *ctx)
{
	struct drive_step *s = next_step((void *)(long)ctx->data, (void *)(long)ctx->data_end);
	int action;

	if (!s)
		return TC_ACT_SHOT;
	action = tc_packet(ctx);
	if (action == TC_ACT_REDIRECT)
		drive_look((void *)(long)ctx->data, (void *)(long)ctx->data_end, s->flow, s->gen, s->op);
	return action;
}
