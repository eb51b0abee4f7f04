/* SPDX-License-Identifier: (GPL-2.0 OR MIT) */
/* Counters of things that are not packets' verdicts, and kinds of events. X(NAME, "name", "one line for people").
 * The numbers are part of the pinned layout: add at the end. */
#pragma once

#define SY_COUNTERS(X)                                                                                                 \
	X(HALF_OPEN_TAKEN, "half-open-taken", "half-open flows displaced by newer ones")                               \
	X(CLOSED_TAKEN, "closed-taken", "closed, reset or evicted flows whose place was taken")                        \
	X(TIMEWAIT_TAKEN, "timewait-taken", "source ports re-given within 60 s for want of another")                   \
	X(EXPIRED, "expired", "flows ended by the sweeper")                                                            \
	X(TIMEWAIT_EXPIRED, "timewait-expired", "source ports freed by the sweeper after 60 s")                        \
	X(ORPHANS_FREED, "orphans-freed", "lines left half done by a claimer that died, freed by the sweeper")         \
	X(UNREAPED, "unreaped", "flows that spoke again while the sweeper was about to end them")                      \
	X(CAS_LOST, "cas-lost", "compare-and-swap lost to another CPU")                                                \
	X(CLAIM_WITHDRAWN, "claim-withdrawn", "claims withdrawn since another CPU claimed the same key")               \
	X(PORT_TRIES, "port-tries", "source ports tried beyond the first")                                             \
	X(PICK_AGAIN, "pick-again", "picks repeated since the table changed or the backend was out")                   \
	X(FIB_LOOKUPS, "fib-lookups", "next hops looked up in the kernel's routing table")                             \
	X(EVENTS_LOST, "events-lost", "events that found the buffer full")

enum sy_counter {
#define X(NAME, name, text) SY_C_##NAME,
	SY_COUNTERS(X)
#undef X
	SY_N_COUNTERS
};

#define SY_EVENTS(X)                                                                                                   \
	X(PORTS_EXHAUSTED, "ports-exhausted", "no source port left towards a backend")                                 \
	X(TABLE_FULL, "table-full", "no place for another flow")                                                       \
	X(NO_BACKEND, "no-backend", "a service has no eligible backend")

enum sy_event_kind {
#define X(NAME, name, text) SY_E_##NAME,
	SY_EVENTS(X)
#undef X
	SY_N_EVENTS
};
