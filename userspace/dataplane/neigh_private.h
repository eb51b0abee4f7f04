/* SPDX-License-Identifier: MIT */
/* What the files of neigh share. Private to dataplane. */
#pragma once
#include "keyed_ids.h"
#include "neigh.h"
#include "pools.h"
#include "rtnl.h"

struct dest { /* where packets to one backend address go */
	struct rtnl_route route;
	uint32_t version; /* of the routes it was asked with */
	int err;	  /* 0, or why there is no route */
	bool taken; /* the id is given out */
	bool in_use; /* by a backend, when last looked */
};
struct hop {		/* a neighbour, by interface and address */
	uint8_t mac[6]; /* last one known, also when not resolved now */
	bool known, resolved, permanent;
	bool wanted;  /* backends are behind it */
	bool managed; /* the kernel was asked to keep it resolved */
};

struct neigh {
	struct maps *maps;			/* borrowed */
	struct mnl_socket *events, *ask, *genl; /* owned; genl NULL: no generic netlink */
	int netdev_family;			/* < 0: the kernel does not tell XDP features */
	struct pools pools;
	__be32 snat[SY_MAX_POOL_ADDRS];
	unsigned n_snat;
	struct keyed_ids dest_ids, hop_ids;
	struct dest *dests; /* owned, by id */
	struct hop *hops;   /* owned, by id */
	uint32_t hop_end;   /* no id of a hop is this or above */
	uint32_t routes_version;
	bool up[SY_MAX_IFACES]; /* by slot */
	bool raise;		/* what is known so far of next hops may be wrong: a new epoch is due */
	bool prepare;		/* backends' words have to be made anew */
	uint64_t raised_ns;
	unsigned n_ticks;
};

/* ---- neigh_links.c ---- */
/* Slot of an interface, 0: none. */
uint32_t neigh_slot(const struct neigh *n, uint32_t ifindex);
void neigh_on_link(struct neigh *n, const struct rtnl_link *l, bool gone);
/* Read all links anew; slots of interfaces that are no more become free. */
int neigh_read_links(struct neigh *n);
/* What can transmit XDP frames may change with a peer's program. */
void neigh_read_features(struct neigh *n);

/* ---- neigh_hops.c ---- */
void neigh_on_neigh(struct neigh *n, const struct rtnl_neigh *e);
int neigh_read_hops(struct neigh *n);
/* The hop towards a backend, from now on kept resolved; NULL: no room. */
const struct hop *neigh_want(struct neigh *n, uint32_t ifindex, __be32 addr);
/* Ask again for those that did not answer. */
void neigh_ask_again(struct neigh *n);
/* Let go of destinations and hops that no backend needs any more. */
void neigh_forget(struct neigh *n);
struct dest *neigh_dest(struct neigh *n, __be32 addr);
