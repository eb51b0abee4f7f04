/* SPDX-License-Identifier: (GPL-2.0 OR MIT) */
/* Reasons: why a backend is not simply up. X(NAME, "name", "one line for people").
 * The numbers are part of the pinned layout: add at the end. */
#pragma once

#define SY_REASONS(X)                                                                                                  \
	X(NONE, "", "up")                                                                                              \
	X(SLOW_START, "slow-start", "up, its weight still ramps")                                                      \
	X(WEIGHT_0, "weight-0", "the registry gives it weight 0")                                                      \
	X(DISABLED, "disabled", "switched off in the registry")                                                        \
	X(UNHEALTHY, "unhealthy", "the registry marks it unhealthy")                                                   \
	X(GONE, "gone", "no longer listed by the registry")                                                            \
	X(OTHER_CLUSTER, "other-cluster", "not in the preferred cluster")                                              \
	X(OTHER_FAMILY, "other-family", "address family not served by the listener")                                   \
	X(CHECK_FAILED, "check-failed", "our own check failed")                                                        \
	X(PASSIVE, "passive", "refused or left unanswered too many connections")                                       \
	X(OPERATOR, "operator", "drained or evicted by the operator")                                                  \
	X(BAD_WEIGHT, "bad-weight", "weight is not a finite number of 0 or more")                                      \
	X(DUPLICATE, "duplicate", "another entry with the same address and port won")                                  \
	X(BAD_ADDRESS, "bad-address", "not an IP address and port that can be served")                                 \
	X(NO_PATH, "no-path", "no route, or no room for its record")

enum sy_reason {
#define X(NAME, name, text) SY_R_##NAME,
	SY_REASONS(X)
#undef X
	SY_N_REASONS
};
