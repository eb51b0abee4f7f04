/* SPDX-License-Identifier: MIT */
/* The wiring: registries to services to maps, interfaces, next hops and events, on one loop. Everything that a
 * configuration says is brought about here, at the start and at a reload alike. */
#pragma once
#include "../dataplane/events.h"
#include "../dataplane/features.h"
#include "../dataplane/neigh.h"
#include "../registry/registry.h"
#include "ports.h"
#include "service.h"

struct source {
	struct pipeline *pipeline;
	const struct config_registry *config; /* borrowed from the configuration in force */
	char *name;			      /* owned */
	struct registry *registry;	      /* owned */
	enum registry_state told;	      /* last state that was logged */
};

struct pipeline {
	struct event_base *loop; /* borrowed, as is load */
	struct load *load;
	struct maps *maps;
	struct config *config; /* owned; in force */
	struct publish *publish;
	struct neigh *neigh;
	struct events *events;
	struct event *neigh_event, *events_event, *tick_event;
	struct ports ports;
	struct source **sources; /* owned */
	size_t n_sources;
	struct service **services; /* owned, by service_compare */
	size_t n_services;
	struct listeners listeners;
	struct features features;
	unsigned n_ticks;
	uint64_t started_ns; /* CLOCK_MONOTONIC */
	struct log_limit limits[SY_N_EVENTS];
};

/* Takes ownership of c. NULL with errno and a sentence in why. Interfaces that are missing are waited for. */
struct pipeline *pipeline_new(struct event_base *loop, struct load *load, struct config *c, char *why, size_t why_size);
/* Leaves everything in the kernel as it is. */
void pipeline_free(struct pipeline *p);
/* Bring about another configuration. Takes ownership of c whether or not it is taken. 0; -EPERM: a restart-only key
 * differs; -errno: nothing was changed; the sentence is in why. */
int pipeline_reload(struct pipeline *p, struct config *c, char *why, size_t why_size);
struct service *pipeline_find_service(const struct pipeline *p, uint32_t id); /* NULL: not configured */
