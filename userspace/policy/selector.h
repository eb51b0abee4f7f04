/* SPDX-License-Identifier: MIT */
/* From a snapshot and a service's rules to candidates: every listed instance with its state and reason, sorted by
 * address and port, the eligible ones marked. Pure. The order of rules is the truth table on top of selector.c. */
#pragma once
#include "../model/instance.h"
#include "sy_abi.h"

enum override { OVERRIDE_NONE, OVERRIDE_DRAIN, OVERRIDE_EVICT };

struct selector_rules {
	const char *cluster; /* preferred, or NULL */
	bool cluster_fallback_all; /* else none */
	bool family_v4, family_v6; /* served by the listeners */
	bool registry_reset; /* on_evict.registry: reset, else drain */
	/* operator's override of an endpoint, or NULL for none */
	enum override (*override)(const void *ctx, const struct endpoint *e);
	const void *override_ctx;
	/* an instance at a listener of ours would loop: it counts as a bad address; NULL for none */
	bool (*is_listener)(const void *ctx, const struct endpoint *e);
	const void *is_listener_ctx;
};

struct candidate {
	const struct instance *instance; /* borrowed from the snapshot */
	double weight; /* > 0 and finite when eligible */
	enum sy_state state;
	enum sy_reason reason;
	bool eligible; /* goes into the table */
};

struct selection {
	/* owned; by endpoint_compare, a duplicate's winner first; bad addresses last by text */
	struct candidate *candidates;
	size_t n_candidates;
	size_t n_eligible;
	bool cluster_fell_back; /* nobody of the preferred cluster is left, and others are eligible in its place */
	size_t n_duplicates; /* entries that lost to another one with their address and port: evicted, duplicate */
	size_t n_bad; /* entries with a bad address or weight */
};

/* 0 or -ENOMEM. *ret is initialised by it; selection_done frees. */
int selector_run(const struct snapshot *s, const struct selector_rules *rules, struct selection *ret);
void selection_done(struct selection *s);
