/* SPDX-License-Identifier: MIT */
/* The hold rule: a push by which listed instances disappear to none (from 1 or more), or to fewer than half (from 4 or
 * more), is held for hold_ns and then applied as the registry stands then. Further pushes meanwhile do not restart the
 * clock; one above the line ends it. hold_ns 0: never hold. Marks (weight 0, unhealthy, disabled) are no disappearance.
 * Pure: time is an argument (any monotonic clock). */
#pragma once
#include "instance.h"

struct hold {
	uint64_t hold_ns;
	struct snapshot *applied; /* owned; last one let through, NULL before the first */
	struct snapshot *held; /* owned; newest one kept back, or NULL */
	struct snapshot *replaced; /* owned; what applied took the place of, until hold_tidy, or NULL */
	uint64_t until_ns; /* when held is to be applied; 0 when nothing is held */
	uint64_t n_holds; /* holds begun so far */
};

void hold_init(struct hold *h, uint64_t hold_ns);
void hold_done(struct hold *h);
/* Takes ownership of s; let nothing borrow from what was applied before.
 * Returns the snapshot to apply now (borrowed, == h->applied), or NULL when it is held. */
const struct snapshot *hold_push(struct hold *h, struct snapshot *s, uint64_t now_ns);
/* Call at or after until_ns. Returns the snapshot to apply now (borrowed) or NULL when nothing is due. */
const struct snapshot *hold_expire(struct hold *h, uint64_t now_ns);
/* Free what was applied before: thousands of texts, so it is left for when the change is in the maps. A push that comes
 * first does it too. */
void hold_tidy(struct hold *h);
