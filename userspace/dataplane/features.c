/* SPDX-License-Identifier: MIT */
#include "features.h"
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <net/if.h>
#include "sy_abi.h"

/* BPF_TCX_INGRESS of the kernel's uapi, newer than the headers that are built with */
#define TCX_INGRESS 46

static bool has_tcx(void)
{
	unsigned lo = if_nametoindex("lo");
	__u32 n = 0;

	/* a kernel without it knows no such attach type: -EINVAL */
	return lo && bpf_prog_query((int)lo, (enum bpf_attach_type)TCX_INGRESS, 0, NULL, NULL, &n) == 0;
}

void features_probe(struct features *ret)
{
	ret->tcx = has_tcx();
	ret->bpf_loop = libbpf_probe_bpf_helper(BPF_PROG_TYPE_SCHED_CLS, BPF_FUNC_loop, NULL) == 1;
	ret->bpf_timer = libbpf_probe_bpf_helper(BPF_PROG_TYPE_SCHED_CLS, BPF_FUNC_timer_init, NULL) == 1;
}
