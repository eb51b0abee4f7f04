/* SPDX-License-Identifier: MIT */
/* Interfaces' records. A slot is found from the interface index by at most SLOT_TRIES looks, as the programs do it. */
#include <errno.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include "load_private.h"
#include "neigh_private.h"

#define STORE(x, v) __atomic_store_n(&(x), (v), __ATOMIC_RELEASE)
#define SLOT_TRIES  4

uint32_t neigh_slot(const struct neigh *n, uint32_t ifindex)
{
	for (uint32_t i = 0; i < SLOT_TRIES; i++) {
		uint32_t slot = (ifindex + i) & (SY_MAX_IFACES - 1);

		if (slot && n->maps->ifaces[slot].ifindex == ifindex)
			return slot;
	}
	return 0;
}

static uint32_t free_slot(const struct neigh *n, uint32_t ifindex)
{
	for (uint32_t i = 0; i < SLOT_TRIES; i++) {
		uint32_t slot = (ifindex + i) & (SY_MAX_IFACES - 1);

		if (slot && !n->maps->ifaces[slot].ifindex)
			return slot;
	}
	return 0;
}

static void drop_slot(struct neigh *n, uint32_t slot)
{
	STORE(n->maps->ifaces[slot].ifindex, 0);
	n->up[slot] = false;
	n->raise = true;
}

static uint16_t first_flags(const struct neigh *n, const struct rtnl_link *l)
{
	char driver[32];

	load_driver_name(l->name, driver);
	if (!strcmp(driver, "veth"))
		return SY_IF_REDIRECT;
	/* a kernel too old to tell: what has native XDP can transmit it, but for veth */
	return n->netdev_family < 0 ? SY_IF_XDP_XMIT : 0;
}

void neigh_on_link(struct neigh *n, const struct rtnl_link *l, bool gone)
{
	uint32_t slot = neigh_slot(n, l->ifindex);
	struct sy_iface *f;

	if (gone || !l->ethernet) {
		if (slot)
			drop_slot(n, slot);
		return;
	}
	if (!slot) {
		slot = free_slot(n, l->ifindex);
		if (!slot)
			return; /* served all the same, by look-ups of the programs */
		n->maps->ifaces[slot].flags = first_flags(n, l);
		n->raise = true;
	}
	f = &n->maps->ifaces[slot];
	if (memcmp(f->mac, l->mac, sizeof(f->mac)) || n->up[slot] != l->up)
		n->raise = true;
	if (memcmp(f->mac, l->mac, sizeof(f->mac)))
		memcpy(f->mac, l->mac, sizeof(f->mac));
	if (f->mtu != l->mtu)
		STORE(f->mtu, l->mtu);
	n->up[slot] = l->up;
	if (f->ifindex != l->ifindex)
		STORE(f->ifindex, l->ifindex);
}

struct links_pass {
	struct neigh *n;
	bool seen[SY_MAX_IFACES];
};

static int on_link(const struct nlmsghdr *h, void *ctx)
{
	struct links_pass *pass = ctx;
	struct rtnl_link l;

	if (!rtnl_parse_link(h, &l))
		return MNL_CB_OK;
	neigh_on_link(pass->n, &l, false);
	pass->seen[neigh_slot(pass->n, l.ifindex)] = true;
	return MNL_CB_OK;
}

int neigh_read_links(struct neigh *n)
{
	struct links_pass pass = {.n = n};
	int err = rtnl_dump(n->ask, RTM_GETLINK, on_link, &pass);

	for (uint32_t slot = 1; !err && slot < SY_MAX_IFACES; slot++)
		if (n->maps->ifaces[slot].ifindex && !pass.seen[slot])
			drop_slot(n, slot);
	return err;
}

static void on_features(void *ctx, uint32_t ifindex, uint64_t features)
{
	struct neigh *n = ctx;
	uint32_t slot = neigh_slot(n, ifindex);
	uint16_t flags;

	if (!slot)
		return;
	flags = n->maps->ifaces[slot].flags & (uint16_t)~SY_IF_XDP_XMIT;
	if (features & RTNL_XDP_NDO_XMIT)
		flags |= SY_IF_XDP_XMIT;
	if (flags != n->maps->ifaces[slot].flags)
		STORE(n->maps->ifaces[slot].flags, flags);
}

void neigh_read_features(struct neigh *n)
{
	if (n->netdev_family >= 0)
		(void)rtnl_xdp_features(n->genl, n->netdev_family, on_features, n);
}
