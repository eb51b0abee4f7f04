/* SPDX-License-Identifier: MIT */
/* Source address pools: which addresses, and which of their ports may be given out. Private to dataplane. */
#pragma once
#include "load.h"

struct pools {
	struct sy_pool *map;		       /* borrowed, SY_MAX_POOLS */
	bool in_use[SY_MAX_POOLS];	       /* by this agent; others are left from an earlier one */
	bool own[SY_MAX_POOLS];		       /* of an address that the host uses itself */
	uint16_t first, last;		       /* configured range */
	uint64_t busy[SY_MAX_POOL_PORTS / 64]; /* ports the host keeps for itself */
};

void pools_init(struct pools *p, struct sy_pool *map, uint16_t first, uint16_t last);
/* Read the host's ephemeral range and the ports of its TCP listeners, in the caller's network namespace, and take them
 * out of the pools of its own addresses. */
void pools_refresh(struct pools *p);
/* The pool of these very addresses, made when there is none; own: the host sources from them itself. 0 or -ENOSPC. */
int pools_find(struct pools *p, const __be32 *addrs, unsigned n, bool own, uint32_t *ret);

/* Pure: the ports of [first, last] that are not busy, ascending, and as a bitmap; returns how many. busy NULL: none. */
uint32_t pools_ports(uint16_t first, uint16_t last, const uint64_t *busy, uint16_t *ports, uint64_t *member);
