/* SPDX-License-Identifier: MIT */
/* Interfaces, next hops and source addresses by netlink (libmnl): fills the ifaces map, keeps backends' nh resolved,
 * raises config.epoch when routes, links or neighbours' addresses change, raises config.beat, makes source address
 * pools. */
#pragma once
#include "../base/addr.h"
#include "load.h"

struct neigh;

struct neigh_options {
	const struct addr *snat_addresses; /* IPv4; empty: preferred source of the route to each backend */
	size_t n_snat_addresses;
	uint16_t port_first, port_last;
};

/* Opens its netlink sockets in the caller's network namespace. NULL with errno. */
struct neigh *neigh_new(struct maps *maps, const struct neigh_options *o);
void neigh_free(struct neigh *n);
/* Readable: call neigh_process. */
int neigh_fd(const struct neigh *n);
/* Handle what changed; returns true when backends' next hops have to be prepared again. */
bool neigh_process(struct neigh *n);
/* Every 250 ms: raise the beat; once a second re-read neighbours not resolved yet. */
bool neigh_tick(struct neigh *n);
/* Set b->nh and b->pool from its address. 0; -ENOENT: no route or no pool left. */
int neigh_prepare(struct neigh *n, struct sy_backend *b);
/* For preflight and publish_hooks. */
