/* SPDX-License-Identifier: MIT */
/* Neighbours: those that backends are behind are kept resolved; of the others the MAC is remembered, since flows hold
 * their clients' next hops too and a changed MAC makes those wrong. */
#include <errno.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include "neigh_private.h"

static void hop_key(uint32_t ifindex, __be32 addr, struct id_key *ret)
{
	const struct endpoint e = {.addr = {.family = AF_INET, .v4 = {.s_addr = addr}}};

	id_key_set(ret, ifindex, &e);
}

static void drop_unwanted(struct neigh *n)
{
	for (uint32_t id = 1; id < n->hop_end; id++)
		if (!n->hops[id].wanted)
			keyed_ids_release(&n->hop_ids, id);
}

static struct hop *hop_get(struct neigh *n, uint32_t ifindex, __be32 addr, uint32_t *ret_id)
{
	struct id_key key;
	uint32_t id;

	hop_key(ifindex, addr, &key);
	id = keyed_ids_find(&n->hop_ids, &key);
	if (!id) {
		if (keyed_ids_take(&n->hop_ids, &key, &id)) {
			drop_unwanted(n);
			if (keyed_ids_take(&n->hop_ids, &key, &id))
				return NULL;
		}
		memset(&n->hops[id], 0, sizeof(n->hops[id]));
	}
	if (id >= n->hop_end)
		n->hop_end = id + 1;
	if (ret_id)
		*ret_id = id;
	return &n->hops[id];
}

void neigh_on_neigh(struct neigh *n, const struct rtnl_neigh *e)
{
	struct id_key key;
	struct hop *h;
	bool other;

	hop_key(e->ifindex, e->addr, &key);
	if (!e->resolved && !keyed_ids_find(&n->hop_ids, &key))
		return;
	h = hop_get(n, e->ifindex, e->addr, NULL);
	if (!h)
		return;
	other = h->known && e->resolved && memcmp(h->mac, e->mac, sizeof(h->mac));
	if (other || (h->wanted && h->resolved && !e->resolved))
		n->raise = true;
	if (h->wanted && e->resolved && !h->resolved)
		n->prepare = true;
	if (e->resolved)
		memcpy(h->mac, e->mac, sizeof(h->mac));
	h->known |= e->resolved;
	h->resolved = e->resolved;
	h->permanent = e->permanent;
}

static int on_dumped(const struct nlmsghdr *h, void *ctx)
{
	struct rtnl_neigh e;

	if (rtnl_parse_neigh(h, &e))
		neigh_on_neigh(ctx, &e);
	return MNL_CB_OK;
}

int neigh_read_hops(struct neigh *n)
{
	return rtnl_dump(n->ask, RTM_GETNEIGH, on_dumped, n);
}

static void resolve(struct neigh *n, uint32_t id)
{
	const struct id_key *key = &n->hop_ids.keys[id];

	/* asking marks it as managed; what an administrator has set is left alone */
	if (!n->hops[id].permanent && rtnl_resolve(n->ask, key->service, key->addr[3], true) == 0)
		n->hops[id].managed = true;
}

const struct hop *neigh_want(struct neigh *n, uint32_t ifindex, __be32 addr)
{
	uint32_t id;
	struct hop *h = hop_get(n, ifindex, addr, &id);

	if (h && !h->wanted) {
		h->wanted = true;
		resolve(n, id);
	}
	return h;
}

void neigh_ask_again(struct neigh *n)
{
	for (uint32_t id = 1; id < n->hop_end; id++)
		if (n->hops[id].wanted && !n->hops[id].resolved)
			resolve(n, id);
}

static bool is_answer(int err)
{
	return !err || err == -ENETUNREACH || err == -EHOSTUNREACH || err == -EADDRNOTAVAIL || err == -EACCES ||
	       err == -EINVAL;
}

struct dest *neigh_dest(struct neigh *n, __be32 addr)
{
	struct id_key key;
	struct dest *d;
	uint32_t id;

	hop_key(0, addr, &key);
	id = keyed_ids_find(&n->dest_ids, &key);
	if (!id) {
		if (keyed_ids_take(&n->dest_ids, &key, &id)) {
			/* there are as many as backends: some are of backends that are no more */
			neigh_forget(n);
			if (keyed_ids_take(&n->dest_ids, &key, &id))
				return NULL;
		}
		memset(&n->dests[id], 0, sizeof(n->dests[id]));
	}
	d = &n->dests[id];
	d->taken = true;
	d->in_use = true;
	if (d->version != n->routes_version) {
		d->err = rtnl_route(n->ask, addr, &d->route);
		/* no answer is no knowledge: asked again the next time */
		d->version = is_answer(d->err) ? n->routes_version : 0;
	}
	return d;
}

static void mark_dests(struct neigh *n)
{
	struct id_key key;

	for (uint32_t id = 1; id < n->dest_ids.ids.n; id++)
		n->dests[id].in_use = false;
	for (uint32_t id = 1; id < SY_MAX_BACKENDS; id++) {
		if (n->maps->backends[id].family != AF_INET)
			continue;
		hop_key(0, n->maps->backends[id].addr[3], &key);
		n->dests[keyed_ids_find(&n->dest_ids, &key)].in_use = true;
	}
}

void neigh_forget(struct neigh *n)
{
	struct id_key key;

	mark_dests(n);
	for (uint32_t id = 1; id < n->hop_end; id++)
		n->hops[id].wanted = false;
	for (uint32_t id = 1; id < n->dest_ids.ids.n; id++) {
		struct dest *d = &n->dests[id];

		if (d->taken && !d->in_use) {
			keyed_ids_release(&n->dest_ids, id);
			d->taken = false;
		} else if (d->in_use && !d->err && d->route.via) {
			hop_key(d->route.oif, d->route.via, &key);
			n->hops[keyed_ids_find(&n->hop_ids, &key)].wanted = true;
		}
	}
	n->hops[0].wanted = false;
	for (uint32_t id = 1; id < n->hop_end; id++) {
		struct hop *h = &n->hops[id];

		if (h->managed && !h->wanted && !h->permanent) {
			(void)rtnl_resolve(n->ask, n->hop_ids.keys[id].service, n->hop_ids.keys[id].addr[3], false);
			h->managed = false;
		}
	}
}
