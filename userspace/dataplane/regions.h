/* SPDX-License-Identifier: MIT */
/* Room for tables in the one memory-mapped area, in units of SY_REGION_ALIGN bytes. A region that leaves use stays as
 * it is for REGION_REST_NS, since a packet may still be reading it. Pure: time (any monotonic clock) is an argument;
 * private. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REGION_REST_NS 1000000ULL

struct region_resting {
	uint64_t until_ns;
	uint32_t off, n;
};

struct regions {
	uint64_t *used;			/* owned bitmap of units, resting ones included */
	struct region_resting *resting; /* owned ring, oldest first */
	uint32_t n_units, n_used;
	uint32_t cursor; /* where the next search begins */
	uint32_t head, n_resting, ring;
};

int regions_init(struct regions *r, uint32_t n_units, uint32_t ring); /* 0 or -ENOMEM */
void regions_done(struct regions *r);
/* 0 and the offset of n adjoining units; -EAGAIN: try again once the resting ones are due; -ENOSPC. */
int regions_take(struct regions *r, uint32_t n, uint64_t now_ns, uint32_t *ret_off);
/* Take these very units. false: some are taken or out of range. */
bool regions_claim(struct regions *r, uint32_t off, uint32_t n);
/* No longer in use from now on. false: the ring is full, try again once the oldest is due (at most REGION_REST_NS). */
bool regions_retire(struct regions *r, uint32_t off, uint32_t n, uint64_t now_ns);
/* Free at once what was never in use. */
void regions_release(struct regions *r, uint32_t off, uint32_t n);
