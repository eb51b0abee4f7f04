/* SPDX-License-Identifier: MIT */
/* Selections to maps: backend ids and generations, endpoints, eviction by one store, table regions and the one switch.
 * Knows the whole desired state; writes only what differs. */
#pragma once
#include "../base/addr.h"
#include "../policy/selector.h"
#include "load.h"

struct publish;

/* Reads back what is pinned (ids, generations, live flows, names), so that a restart changes nothing. NULL: no memory.
 */
struct publish *publish_new(struct maps *maps);
void publish_free(struct publish *p);

struct service_key {
	const char *registry, *ns, *group, *name;
};
struct service_settings {
	const struct endpoint *listen; /* IPv4, TCP */
	size_t n_listen;
	enum sy_mode mode;
	enum sy_algorithm algorithm;
	enum sy_on_empty on_empty;
	uint64_t timeout_ns[SY_N_TIMEOUTS];
	uint64_t drain_deadline_ns;
};

/* Find or make the service's record and its listeners; listeners no longer wanted go. 0 and the id; -ENOSPC: 16,384
 * services; -EEXIST: a listener belongs to another service. A service without a table yet answers by on_empty. */
int publish_service(struct publish *p, const struct service_key *k, const struct service_settings *s, uint32_t *ret_id);
/* Listeners first, then backends drain as gone, then the record. */
void publish_service_remove(struct publish *p, uint32_t id);
/* Services found in pinned maps that publish_service has not been called for since publish_new: remove them. */
void publish_remove_unclaimed(struct publish *p);

struct publish_stats {
	uint64_t apply_ns; /* from received_ns to the last store that a packet can see; 0 when nothing was written */
	unsigned n_evicted, n_new, n_gone, n_changed; /* backends */
	unsigned n_no_path; /* eligible, but kept out of the table until there is a way to them */
	bool table_written;
};
/* Make the maps say what the selection says: evictions and drains first, one store each, then the table, then texts.
 * gone: state and reason of backends no longer listed (draining or evicted, gone). received_ns: CLOCK_MONOTONIC or 0.
 * now_ns: CLOCK_REALTIME. An unchanged selection writes nothing. 0; -ENOSPC: no ids or table room left (what fits
 * stays). */
int publish_selection(struct publish *p, uint32_t service, const struct selection *sel, enum sy_state gone_state,
		      enum sy_source source, uint64_t received_ns, uint64_t now_ns, struct publish_stats *ret);
void publish_source(struct publish *p, uint32_t service, enum sy_source source, uint64_t now_ns);

/* Periodic (a few times a second): drain deadlines, ids of ended backends given back, regions freed. */
void publish_tick(struct publish *p, uint64_t now_realtime_ns);

/* Operator: state of one backend at once (one store); remembered by the caller's rules for later selections.
 * -ENOENT: no such backend. */
int publish_override(struct publish *p, uint32_t service, const struct endpoint *e, enum override o, uint64_t now_ns);
/* Overrides found in pinned maps after adoption: calls back for each backend with reason operator. */
void publish_for_each_override(const struct publish *p, uint32_t service,
			       void (*cb)(void *ctx, const struct endpoint *e, enum override o), void *ctx);
/* Called by neigh.h's owner: every backend in use, so that its next hop can be resolved. */
void publish_for_each_backend(const struct publish *p, void (*cb)(void *ctx, uint32_t id, const struct sy_backend *b),
			      void *ctx);
/* Called when a backend comes into use or is given back, so that next hops and pools can be set before it is published.
 */
struct publish_hooks {
	/* Fill b->nh (0: programs look it up) and b->pool. 0, or -ENOENT: no pool, reason no-path. */
	int (*prepare)(void *ctx, struct sy_backend *b);
	void *ctx;
};
void publish_set_hooks(struct publish *p, const struct publish_hooks *h);
