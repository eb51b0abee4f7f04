/* SPDX-License-Identifier: MIT */
/* What the registry lists for a service, as one snapshot. Pure: no I/O, no clock. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "../base/addr.h"
#include "sy_reason.h"

/* Its texts are the snapshot's (snapshot_text), or live longer. */
struct instance {
	const char *address_text; /* "ip:port" as listed, for people */
	struct endpoint endpoint; /* valid unless reject is SY_R_BAD_ADDRESS */
	double weight; /* as listed; meaningless if reject is SY_R_BAD_WEIGHT */
	bool healthy;
	bool enabled;
	const char *cluster; /* never NULL */
	const char *instance_id; /* "" when absent; only a tie-break */
	enum sy_reason reject; /* SY_R_NONE, SY_R_BAD_ADDRESS or SY_R_BAD_WEIGHT: what is wrong with the entry itself */
};

struct snapshot {
	char *group; /* owned */
	char *name; /* owned, without group */
	struct instance *instances; /* owned array, in the registry's order */
	size_t n_instances;
	bool protection; /* reachProtectionThreshold */
	struct text_block *texts; /* owned: all instances' texts, since thousands one by one take longer than the rest */
};

struct snapshot *snapshot_new(const char *group, const char *name);
void snapshot_free(struct snapshot *s); /* NULL is fine */
struct snapshot *snapshot_copy(const struct snapshot *s);
/* Append a zeroed instance (cluster "", instance_id ""); borrowed pointer valid until the next append; NULL: no memory. */
struct instance *snapshot_append(struct snapshot *s);
/* A copy of the first size bytes of text, terminated, which lives as long as the snapshot. NULL: no memory. */
const char *snapshot_text(struct snapshot *s, const char *text, size_t size);
/* Same content in any order? (endpoint, weight, healthy, enabled, cluster, reject, protection; not instance_id) */
bool snapshot_equal(const struct snapshot *a, const struct snapshot *b);
