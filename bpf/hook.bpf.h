/* SPDX-License-Identifier: GPL-2.0 */
/* What a hook file has to define for the steps. Before it includes steps.bpf.h: hook_ctx, its context's type, and HOOK_FINISHES,
 * 0 when unresolved next hops, passes and double answers are handed to TC. After it: these. */
#pragma once
#include "base.bpf.h"

struct hop;
struct pkt;
struct rewrite;

/* where the packet came in */
static __u32 hook_ifindex(hook_ctx *ctx);
/* can this hook send there? */
static int hook_can_send(hook_ctx *ctx, const struct hop *h);
/* can it answer out of where the packet came in? */
static int hook_can_answer(hook_ctx *ctx);
/* is the frame addressed to this host? */
static int hook_is_for_us(hook_ctx *ctx);
/* These return the action. Rewrite and send. */
static int hook_send(hook_ctx *ctx, const struct pkt *p, const struct rewrite *rw, const struct hop *h);
/* Make the packet a RST to its sender and send it back. */
static int hook_reset(hook_ctx *ctx, const struct pkt *p);
/* The same, and a RST to the flow's other side; only where HOOK_FINISHES. */
static int hook_reset_both(hook_ctx *ctx, const struct pkt *p, const struct rewrite *rw, const struct hop *h);
