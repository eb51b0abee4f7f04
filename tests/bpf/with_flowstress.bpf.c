// SPDX-License-Identifier: GPL-2.0
/* The whole XDP path on random packets of random flows, from any CPU: what the stress test of the flow table runs. Linked with
 * the product's objects; the hook's own file is included under another program name, so that the steps are the same text. */
#define steelyard_xdp flowstress_plain
#include "../../bpf/xdp.bpf.c"
#undef steelyard_xdp
#include "drive.bpf.h"

__u32 stress_flows = 0; /* flows to choose from: few make CPUs meet, many fill the table */
__u32 stress_acts = 0; /* below 64: one in 64 operations is the agent's; else none */
__u32 stress_backends = 0; /* how many it acts on, less one; a power of two less one */
__u64 stress_operations = 0;

/* What the agent does, as often as packets come, so that it falls into every gap: evict, re-admit, give an id to a newcomer. */
INLINE int agent_acts(__u32 r)
{
	__u32 id = 1 + (r & stress_backends);
	struct sy_backend *b = bpf_map_lookup_elem(&backends, &id);
	__u64 word;

	if (!b)
		return XDP_ABORTED;
	word = READ_ONCE(b->word);
	if (SY_WORD_STATE(word) == SY_UP)
		word = SY_BACKEND_WORD(SY_WORD_GEN(word), r & 4 ? SY_EVICTED : SY_DRAINING, SY_R_CHECK_FAILED);
	else
		word = SY_BACKEND_WORD(SY_WORD_GEN(word) + !(r & 0x70), SY_UP, SY_R_NONE);
	WRITE_ONCE(b->word, word);
	return XDP_PASS;
}

/* Of 64: 20 SYN, 14 SYN-ACK, 13 client data, 4 backend data, 5 and 5 FIN, 1 and 2 RST. */
INLINE __u32 random_op(__u32 q)
{
	return q < 20 ? DRIVE_SYN : q < 34 ? DRIVE_SYNACK : q < 47 ? DRIVE_ACK : q < 51 ? DRIVE_DATA :
	       q < 56 ? DRIVE_FIN_CLIENT : q < 61 ? DRIVE_FIN_BACKEND : q < 62 ? DRIVE_RST_CLIENT : DRIVE_RST_BACKEND;
}

SEC("xdp")
int flowstress_random(struct xdp_md *ctx)
{
	void *d = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 r = bpf_get_prandom_u32(), op = random_op(r & 63), flow;
	struct pkt p = { .action = XDP_DROP };
	int verdict;

	if ((r >> 26) == stress_acts)
		return agent_acts(r);
	flow = (r >> 6 & 0xfffff) % (stress_flows ? stress_flows : 1);
	if (drive_packet(d, end, flow, 0, op))
		return XDP_ABORTED;
	__sync_fetch_and_add(&stress_operations, 1);
	verdict = steps(ctx, &p, pkt_parse(&p, d, end, end - d));
	if (verdict != HAND_OVER)
		count_verdict(verdict);
	if (verdict == SY_V_FORWARD || verdict == SY_V_RETURN || verdict == SY_V_NEW)
		drive_look((void *)(long)ctx->data, (void *)(long)ctx->data_end, flow, 0, op);
	return p.action;
}
