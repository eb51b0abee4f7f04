/* SPDX-License-Identifier: MIT */
/* Waiting on an event loop for a state, bounded: a test polls for what it expects, it never sleeps for it. */
#pragma once
#include <event2/event.h>
#include "unit.h"
#include "base/clock.h"

#define LONGEST_NS (30 * NS_PER_S)

/* For a persistent timer that keeps event_base_loop from blocking past the bound. */
static inline void on_heartbeat(evutil_socket_t fd, short what, void *user)
{
	(void)fd;
	(void)what;
	(void)user;
}

/* Run sc->loop until the condition holds. */
#define until(sc, condition)                                                                                           \
	do {                                                                                                           \
		uint64_t _end = clock_monotonic_ns() + LONGEST_NS;                                                     \
		while (!(condition)) {                                                                                 \
			assert_true(clock_monotonic_ns() < _end);                                                      \
			event_base_loop((sc)->loop, EVLOOP_ONCE);                                                      \
		}                                                                                                      \
	} while (0)
