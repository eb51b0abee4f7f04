/* SPDX-License-Identifier: MIT */
/* Next hops. A backend's record and a flow's return line hold their next hop as one word with the low byte of the epoch
 * it was looked up in; raising config.epoch makes all of them stale in one store, and those of backends are then
 * prepared again. Eight bits come round: at each wrap the flows' words are cleared, so that none of 256 epochs ago is
 * taken for a new one.
 *
 * The epoch is raised when an answer may have become wrong (routes, addresses, links, a neighbour's MAC, a backend's
 * neighbour that failed), not for each step of a neighbour's state machine, and not more often than every RAISE_NS,
 * since a routing daemon may change thousands of routes a second. */
#include "neigh.h"
#include <errno.h>
#include <linux/genetlink.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>
#include "../base/clock.h"
#include "neigh_private.h"

#define STORE(x, v)    __atomic_store_n(&(x), (v), __ATOMIC_RELEASE)
#define MAX_HOPS       131072
#define RAISE_NS       (100 * NS_PER_MS)
#define BUFFER_BYTES   32768
#define TICKS_A_SECOND 4
#define POOLS_TICKS    (5 * TICKS_A_SECOND)
#define FORGET_TICKS   (60 * TICKS_A_SECOND)

static void clear_flow_hops(struct maps *m)
{
	for (uint32_t g = 0; g < m->config->n_groups; g++) {
		for (unsigned i = 0; i < SY_LINES_PER_GROUP; i++) {
			struct sy_line *line = &m->groups[g].line[i];
			uint64_t state = __atomic_load_n(&line->word, __ATOMIC_ACQUIRE) & SY_STATE_MASK;
			uint64_t hop = __atomic_load_n(&line->aux, __ATOMIC_RELAXED);

			/* lost to a packet: that one has just written a hop of now */
			if (state >= SY_USED && state <= SY_TIMEWAIT && hop)
				(void)__atomic_compare_exchange_n(&line->aux, &hop, 0, false, __ATOMIC_ACQ_REL,
								  __ATOMIC_RELAXED);
		}
	}
}

static void raise_epoch(struct neigh *n)
{
	uint32_t epoch = n->maps->config->epoch + 1;

	/* twice a turn of the byte: a flow made while the walk is under way still gets the epoch before */
	if (!(epoch & 0x7f))
		clear_flow_hops(n->maps);
	STORE(n->maps->config->epoch, epoch);
	n->routes_version++;
	n->raise = false;
	n->prepare = true;
	n->raised_ns = clock_monotonic_ns();
}

/* What is due now; true when backends have to be prepared again. */
static bool settle(struct neigh *n)
{
	bool prepare;

	if (n->raise && clock_monotonic_ns() - n->raised_ns >= RAISE_NS)
		raise_epoch(n);
	prepare = n->prepare;
	n->prepare = false;
	return prepare;
}

static int read_all(struct neigh *n)
{
	int err = neigh_read_links(n);

	if (!err)
		err = neigh_read_hops(n);
	neigh_read_features(n);
	return err;
}

static int open_sockets(struct neigh *n)
{
	/* events first: what changes while the rest is read is then told */
	n->events = rtnl_open_events();
	n->ask = n->events ? rtnl_open(NETLINK_ROUTE) : NULL;
	if (!n->ask)
		return -errno;
	n->genl = rtnl_open(NETLINK_GENERIC);
	n->netdev_family = n->genl ? rtnl_netdev_family(n->genl) : -ENOENT;
	return 0;
}

static int set_up(struct neigh *n, const struct neigh_options *o)
{
	int err = open_sockets(n);

	if (err)
		return err;
	if (o->n_snat_addresses > SY_MAX_POOL_ADDRS)
		return -E2BIG;
	for (size_t i = 0; i < o->n_snat_addresses; i++) {
		if (o->snat_addresses[i].family != AF_INET)
			return -EAFNOSUPPORT;
		n->snat[n->n_snat++] = o->snat_addresses[i].v4.s_addr;
	}
	n->dests = calloc(SY_MAX_ENDPOINTS, sizeof(*n->dests));
	n->hops = calloc(MAX_HOPS, sizeof(*n->hops));
	if (!n->dests || !n->hops || keyed_ids_init(&n->dest_ids, SY_MAX_ENDPOINTS, 1) ||
	    keyed_ids_init(&n->hop_ids, MAX_HOPS, n->maps->config->secret[0]))
		return -ENOMEM;
	pools_init(&n->pools, n->maps->pools, o->port_first, o->port_last);
	pools_refresh(&n->pools);
	return read_all(n);
}

struct neigh *neigh_new(struct maps *maps, const struct neigh_options *o)
{
	struct neigh *n = calloc(1, sizeof(*n));
	int err;

	if (!n)
		return NULL;
	n->maps = maps;
	err = set_up(n, o);
	if (err) {
		neigh_free(n);
		errno = -err;
		return NULL;
	}
	/* nobody watched until now */
	raise_epoch(n);
	return n;
}

void neigh_free(struct neigh *n)
{
	if (!n)
		return;
	if (n->events)
		(void)mnl_socket_close(n->events);
	if (n->ask)
		(void)mnl_socket_close(n->ask);
	if (n->genl)
		(void)mnl_socket_close(n->genl);
	keyed_ids_done(&n->dest_ids);
	keyed_ids_done(&n->hop_ids);
	free(n->dests);
	free(n->hops);
	free(n);
}

int neigh_fd(const struct neigh *n)
{
	return mnl_socket_get_fd(n->events);
}

static int on_event(const struct nlmsghdr *h, void *ctx)
{
	struct neigh *n = ctx;
	struct rtnl_neigh e;
	struct rtnl_link l;

	switch (h->nlmsg_type) {
	case RTM_NEWLINK:
	case RTM_DELLINK:
		if (rtnl_parse_link(h, &l)) {
			neigh_on_link(n, &l, h->nlmsg_type == RTM_DELLINK);
			neigh_read_features(n);
		}
		break;
	case RTM_NEWNEIGH:
	case RTM_DELNEIGH:
		if (rtnl_parse_neigh(h, &e))
			neigh_on_neigh(n, &e);
		break;
	case RTM_NEWROUTE:
	case RTM_DELROUTE:
	case RTM_NEWADDR:
	case RTM_DELADDR:
		n->raise = true;
		break;
	}
	return MNL_CB_OK;
}

bool neigh_process(struct neigh *n)
{
	char buf[BUFFER_BYTES];

	/* bounded: the loop comes back as long as there is more */
	for (unsigned i = 0; i < 256; i++) {
		ssize_t size = mnl_socket_recvfrom(n->events, buf, sizeof(buf));

		if (size > 0) {
			(void)mnl_cb_run(buf, (size_t)size, 0, 0, on_event, n);
		} else if (size < 0 && errno == ENOBUFS) {
			n->raise = true;
			(void)read_all(n);
		} else {
			break;
		}
	}
	return settle(n);
}

bool neigh_tick(struct neigh *n)
{
	STORE(n->maps->config->beat, n->maps->config->beat + 1);
	n->n_ticks++;
	if (n->n_ticks % TICKS_A_SECOND == 0) {
		neigh_read_features(n);
		neigh_ask_again(n);
	}
	if (n->n_ticks % POOLS_TICKS == 0)
		pools_refresh(&n->pools);
	if (n->n_ticks % FORGET_TICKS == 0)
		neigh_forget(n);
	return settle(n);
}

static uint64_t hop_word(const struct neigh *n, const struct hop *h, uint32_t ifindex)
{
	uint32_t slot = neigh_slot(n, ifindex);
	uint64_t word = 0;

	if (!h || !h->resolved || !slot)
		return 0;
	memcpy(&word, h->mac, sizeof(h->mac));
	return word | (uint64_t)slot << 48 | (uint64_t)(n->maps->config->epoch & 0xff) << 56;
}

int neigh_prepare(struct neigh *n, struct sy_backend *b)
{
	const struct dest *d = b->family == AF_INET ? neigh_dest(n, b->addr[3]) : NULL;
	uint32_t pool;
	uint64_t nh;

	if (!d || d->err)
		return -ENOENT;
	if (n->n_snat ? pools_find(&n->pools, n->snat, n->n_snat, false, &pool)
		      : pools_find(&n->pools, &d->route.src, d->route.src ? 1 : 0, true, &pool))
		return -ENOENT;
	if (b->pool != pool)
		STORE(b->pool, pool);
	nh = d->route.via ? hop_word(n, neigh_want(n, d->route.oif, d->route.via), d->route.oif) : 0;
	if (b->nh != nh)
		STORE(b->nh, nh);
	return 0;
}
