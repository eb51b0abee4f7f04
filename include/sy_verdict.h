/* SPDX-License-Identifier: (GPL-2.0 OR MIT) */
/* Verdicts: what a program did with a packet and why. One list for counters, events, the CLI and the tests.
 *
 * X(NAME, "name", KIND, "one line for people")
 * KIND: SENT the packet went on rewritten, RESET it was answered with a RST, DROP, PASS it was left to the host.
 * The numbers are part of the pinned layout: add at the end of the list, never in the middle. */
#pragma once

#define SY_VERDICTS(X)                                                                                                 \
	X(NOT_OURS, "not-ours", PASS, "no flow and no listener: passed untouched")                                     \
	X(FORWARD, "forward", SENT, "packet of a live flow, client to backend")                                        \
	X(RETURN, "return", SENT, "packet of a live flow, backend to client")                                          \
	X(NEW, "new", SENT, "first packet of a new flow, backend picked and sent on")                                  \
	X(NO_BACKEND_RESET, "no-backend-reset", RESET, "no eligible backend, on_empty: reset")                         \
	X(NO_BACKEND_DROP, "no-backend-drop", DROP, "no eligible backend, on_empty: drop")                             \
	X(NO_BACKEND_PASS, "no-backend-pass", PASS, "no eligible backend, on_empty: pass")                             \
	X(UNKNOWN_RESET, "unknown-reset", RESET, "mid-flow packet to a listener, no such flow")                        \
	X(UNKNOWN_DROP, "unknown-drop", DROP, "RST to a listener, no such flow: a RST is never answered")              \
	X(EVICTED_CLIENT, "evicted-client", RESET, "packet of the client, its backend is evicted")                     \
	X(EVICTED_BACKEND, "evicted-backend", RESET, "packet of an evicted backend: RST to the client and to it")      \
	X(EVICTED_DROP, "evicted-drop", DROP, "RST of a flow whose backend is evicted: a RST is never answered")       \
	X(SILENT_RESET, "silent-reset", RESET, "draining backend silent while the client kept sending")                \
	X(PORTS_EXHAUSTED, "ports-exhausted", RESET, "no source port left towards the picked backend")                 \
	X(TABLE_FULL, "table-full", RESET, "no place for another flow")                                                \
	X(COLLISION, "collision", DROP, "two CPUs claimed the same key twice: the client sends again")                 \
	X(LOST, "lost", DROP, "the flow ended while its packet was under way")                                         \
	X(TTL, "ttl-expired", DROP, "time to live used up")                                                            \
	X(MALFORMED, "malformed", DROP, "addressed to a listener, but headers are cut short or wrong")                 \
	X(FRAGMENT, "fragment", PASS, "fragment addressed to a listener: left to the host")                            \
	X(NO_ROUTE, "no-route", DROP, "no route to where the packet has to go")                                        \
	X(ERROR, "error", DROP, "a record that must exist does not: a fault of ours")

enum sy_verdict {
#define X(NAME, name, kind, text) SY_V_##NAME,
	SY_VERDICTS(X)
#undef X
	SY_N_VERDICTS
};
