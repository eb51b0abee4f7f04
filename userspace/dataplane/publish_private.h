/* SPDX-License-Identifier: MIT */
/* What the files of publish share. Private to dataplane.
 *
 * The records in the maps are the state; what is kept here beside them is how to find them. A backend's record goes
 *   free -> listed -> gone (flows may still end) -> free
 * and each return to free raises its generation. */
#pragma once
#include "keyed_ids.h"
#include "publish.h"
#include "regions.h"

/* How long a backend that is no longer listed stays in dumps, with its counts, once its last flow has ended. */
#define PUBLISH_GONE_NS (600ULL * 1000000000ULL)

struct backend_local {
	uint64_t text;	  /* hash of what of its backend_info may change, 0: none */
	uint32_t place;	  /* in its service's ids */
	uint32_t leaving; /* place + 1 in publish.leaving, 0: not there */
	uint32_t round;	  /* of the last selection that listed it */
};

struct service_local {
	struct sy_service_info info;
	uint32_t id;
	uint32_t next; /* id + 1 of the next one with the same hash, 0 ends */
	bool claimed;  /* the configuration wants it */
	bool removed;  /* only its last backends are waited for */
	bool dirty;    /* the table is not known to be what the records say */
	uint64_t drain_deadline_ns;
	struct sy_listener_key *listeners; /* owned */
	size_t n_listeners;
	uint32_t *ids; /* owned; its backends, gone ones included */
	size_t n_ids, room_ids;
	uint32_t off, n_units; /* its table's region */
};

struct publish {
	struct maps *maps; /* borrowed */
	struct publish_hooks hooks;
	struct keyed_ids backends, endpoints;
	uint32_t *endpoint_refs;     /* owned, by endpoint id */
	struct backend_local *local; /* owned, by backend id */
	uint32_t *leaving;	     /* owned: backends that drain or are gone, in no order */
	uint32_t n_leaving;
	struct ids service_ids;
	struct service_local **services; /* owned, by id */
	uint32_t *service_heads;	 /* owned: chains by hash of the name, id + 1 */
	struct regions regions;
	uint32_t round;
	bool timeouts_changed;
};

/* ---- publish_backend.c ---- */
static inline bool backend_in_use(const struct sy_backend *b)
{
	return b->family || (b->flags & SY_B_LISTED);
}
/* The one store that packets obey, with what follows from it. */
void backend_set_word(struct publish *p, uint32_t id, enum sy_state state, enum sy_reason reason, uint64_t now_ns);
/* A record for key, unreachable until backend_set_word. 0, -ENOSPC or -ENOMEM. */
int backend_make(struct publish *p, struct service_local *s, const struct id_key *key, double weight, uint32_t *ret_id);
/* Its generation goes up and its counts go to the service. Only without active flows. */
void backend_release(struct publish *p, uint32_t id);
bool backend_adopt(struct publish *p, struct service_local *s, const struct id_key *key, uint32_t id);
/* No longer listed. */
void backend_set_gone(struct publish *p, uint32_t id, enum sy_state state, uint64_t now_ns);
/* Give back what is gone, has no active flow, and was seen long enough (or at once when hurry). */
void backend_reclaim(struct publish *p, uint64_t now_ns, bool hurry);
/* Keep publish.leaving true to the record. */
void backend_note_leaving(struct publish *p, uint32_t id);

/* ---- publish_service.c ---- */
/* Make what is kept beside the record. NULL: no memory. */
struct service_local *service_local_new(struct publish *p, uint32_t id, const struct sy_service_info *info);
void service_local_free(struct service_local *s);
/* Free a removed service whose last backend is gone. */
void service_finish(struct publish *p, struct service_local *s);
/* Switch the table word to an empty one and let the region rest. */
void service_clear_table(struct publish *p, struct service_local *s);
void service_rest_region(struct publish *p, struct service_local *s);
void service_least_timeout(struct publish *p);

/* ---- publish_adopt.c ---- */
int publish_adopt(struct publish *p);
