/* SPDX-License-Identifier: MIT */
/* Exponential back-off with jitter. Pure: randomness is an argument. */
#pragma once
#include <stdint.h>

struct backoff {
	uint64_t min_ns, max_ns;
	unsigned n_failures;
};
/* Delay before the next try: min << failures, at most max, of which the upper half is scaled by random (32 bits). */
uint64_t backoff_next(struct backoff *b, uint32_t random);
void backoff_reset(struct backoff *b);
