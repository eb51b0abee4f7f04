/* SPDX-License-Identifier: MIT */
/* One configured service on its way from the registry to the maps: snapshot, hold, selector, publish. */
#pragma once
#include <event2/event.h>
#include "../dataplane/publish.h"
#include "../model/hold.h"
#include "config.h"

struct override_entry {
	struct endpoint endpoint;
	enum override override;
};

struct service {
	char *registry, *ns, *group, *name;  /* owned: what it is known by */
	char *text;			     /* "GROUP@@name"; owned */
	const struct config_service *config; /* borrowed from the configuration in force */
	const struct listeners *listeners;   /* of all services; borrowed */
	struct publish *publish;	     /* borrowed */
	uint32_t id;			     /* in the maps */
	bool published;			     /* it has a record in the maps */
	bool answered; /* the registry's word has come since the agent started; before, hold.applied is what was pinned
			*/
	struct hold hold;
	struct event *merge_timer, *hold_timer;
	bool pending;			  /* merge_timer will publish */
	uint64_t received_ns;		  /* of the oldest change that is not published yet */
	uint64_t last_ns;		  /* last publication */
	struct override_entry *overrides; /* owned, by endpoint_compare */
	size_t n_overrides;
	size_t n_eligible, n_listed, n_duplicates, n_bad, n_loops, n_no_path;
	bool fell_back;
};

/* Every listener of the configuration, so that no instance may be one of them. */
struct listeners {
	struct endpoint *endpoints; /* owned, by endpoint_compare */
	size_t n;
};
int listeners_make(const struct config *c, struct listeners *ret);
void listeners_done(struct listeners *l);

/* Not in the maps yet: service_settings does that. NULL: no memory. */
struct service *service_new(struct event_base *loop, struct publish *publish, const struct config *c,
			    const struct config_service *cs);
/* Leaves the maps as they are. NULL is fine. */
void service_free(struct service *s);
/* Order by registry, namespace, group, name. */
int service_compare(const struct service *a, const struct service *b);

/* Put the record and the listeners of s->config into the maps; only those (if given) that are in keep. As
 * publish_service. */
int service_settings(struct service *s, const struct endpoint *keep, size_t n_keep);
/* What an earlier agent pinned counts as applied until the registry answers, for the hold rule. Takes ownership. */
void service_seed(struct service *s, struct snapshot *pinned);
/* Remember without touching the maps: read back from them. */
int service_remember(struct service *s, const struct endpoint *e, enum override o);
/* Takes ownership. */
void service_push(struct service *s, struct snapshot *snapshot, uint64_t received_ns);
/* Select and publish again by what is applied now: settings, overrides or paths have changed. */
void service_refresh(struct service *s);
/* 0; -ENOENT: no such backend; -ENOMEM. */
int service_override(struct service *s, const struct endpoint *e, enum override o);
