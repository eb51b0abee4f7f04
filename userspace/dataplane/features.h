/* SPDX-License-Identifier: MIT */
/* What this kernel has beyond the oldest one that is needed. */
#pragma once
#include <stdbool.h>

struct features {
	bool tcx;	/* 6.6: TC programs as links */
	bool bpf_loop;	/* 5.17 */
	bool bpf_timer; /* 5.15: ends flows with the agent dead */
};

void features_probe(struct features *ret);
