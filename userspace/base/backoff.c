// SPDX-License-Identifier: MIT
#include "backoff.h"
#include <limits.h>

uint64_t backoff_next(struct backoff *b, uint32_t random)
{
	uint64_t delay = b->min_ns, half;

	for (unsigned i = 0; i < b->n_failures && delay && delay < b->max_ns; i++)
		delay = delay > b->max_ns / 2 ? b->max_ns : delay * 2;
	if (delay > b->max_ns)
		delay = b->max_ns;
	if (b->n_failures < UINT_MAX)
		b->n_failures++;
	/* half of it is certain, so that a server just restarted is never hit at once; half spreads the clients */
	half = delay / 2;
	return delay - half + (uint64_t)(((unsigned __int128)half * random) >> 32);
}

void backoff_reset(struct backoff *b)
{
	b->n_failures = 0;
}
