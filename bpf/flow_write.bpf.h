/* SPDX-License-Identifier: GPL-2.0 */
/* What the files of the writing side share. */
#pragma once
#include "flow.bpf.h"

int flow_delay(void);

/* A point where another CPU may come between: the stress test widens it. */
INLINE void race(void)
{
	if (sy_test.delay)
		flow_delay();
}

INLINE int is_counted(__u64 word)
{
	return !(word & SY_F_RESET) && (__u32)(FLOW_STATE(word) - SY_ESTABLISHED) <= SY_BACKEND_CLOSED - SY_ESTABLISHED;
}
