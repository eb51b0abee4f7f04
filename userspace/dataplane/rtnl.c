/* SPDX-License-Identifier: MIT */
#include "rtnl.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/genetlink.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>

#define BUFFER_BYTES 32768
/* names of linux/netdev.h and of newer neighbour.h, which Debian 12's headers do not have */
#define NETDEV_CMD_DEV_GET	  1
#define NETDEV_A_DEV_IFINDEX	  1
#define NETDEV_A_DEV_XDP_FEATURES 3
#ifndef NTF_EXT_MANAGED
#define NTF_EXT_MANAGED 1
#endif

bool rtnl_parse_link(const struct nlmsghdr *n, struct rtnl_link *ret)
{
	const struct ifinfomsg *i = mnl_nlmsg_get_payload(n);
	struct nlattr *a;

	if (n->nlmsg_type != RTM_NEWLINK && n->nlmsg_type != RTM_DELLINK)
		return false;
	/* bridge ports are told of a second time as members of the bridge */
	if (i->ifi_family != AF_UNSPEC)
		return false;
	memset(ret, 0, sizeof(*ret));
	ret->ifindex = (uint32_t)i->ifi_index;
	ret->ethernet = i->ifi_type == ARPHRD_ETHER;
	ret->up = i->ifi_flags & IFF_UP;
	mnl_attr_for_each(a, n, sizeof(*i))
	{
		if (mnl_attr_get_type(a) == IFLA_ADDRESS && mnl_attr_get_payload_len(a) == sizeof(ret->mac))
			memcpy(ret->mac, mnl_attr_get_payload(a), sizeof(ret->mac));
		if (mnl_attr_get_type(a) == IFLA_MTU)
			ret->mtu = mnl_attr_get_u32(a);
		if (mnl_attr_get_type(a) == IFLA_IFNAME)
			(void)strncpy(ret->name, mnl_attr_get_str(a), sizeof(ret->name) - 1);
	}
	return true;
}

bool rtnl_parse_neigh(const struct nlmsghdr *n, struct rtnl_neigh *ret)
{
	const struct ndmsg *m = mnl_nlmsg_get_payload(n);
	bool has_mac = false;
	struct nlattr *a;

	if ((n->nlmsg_type != RTM_NEWNEIGH && n->nlmsg_type != RTM_DELNEIGH) || m->ndm_family != AF_INET)
		return false;
	memset(ret, 0, sizeof(*ret));
	ret->ifindex = (uint32_t)m->ndm_ifindex;
	mnl_attr_for_each(a, n, sizeof(*m))
	{
		if (mnl_attr_get_type(a) == NDA_DST && mnl_attr_get_payload_len(a) == sizeof(ret->addr))
			memcpy(&ret->addr, mnl_attr_get_payload(a), sizeof(ret->addr));
		if (mnl_attr_get_type(a) == NDA_LLADDR && mnl_attr_get_payload_len(a) == sizeof(ret->mac)) {
			memcpy(ret->mac, mnl_attr_get_payload(a), sizeof(ret->mac));
			has_mac = true;
		}
	}
	ret->permanent = m->ndm_state & (NUD_PERMANENT | NUD_NOARP);
	ret->resolved = has_mac && n->nlmsg_type == RTM_NEWNEIGH &&
			(m->ndm_state & (NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE | NUD_PERMANENT));
	return true;
}

struct mnl_socket *rtnl_open(int bus)
{
	const struct timeval patience = {.tv_sec = 1};
	struct mnl_socket *s = mnl_socket_open2(bus, SOCK_CLOEXEC);
	int saved;

	if (!s)
		return NULL;
	if (mnl_socket_bind(s, 0, MNL_SOCKET_AUTOPID) == 0 &&
	    setsockopt(mnl_socket_get_fd(s), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) == 0)
		return s;
	saved = errno;
	(void)mnl_socket_close(s);
	errno = saved;
	return NULL;
}

struct mnl_socket *rtnl_open_events(void)
{
	unsigned groups[] = {RTNLGRP_LINK, RTNLGRP_NEIGH, RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV4_ROUTE};
	struct mnl_socket *s = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC | SOCK_NONBLOCK);
	int bytes = 1 << 20, saved;
	bool ok;

	if (!s)
		return NULL;
	/* best effort: a full buffer is noticed and everything read anew */
	(void)setsockopt(mnl_socket_get_fd(s), SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	ok = mnl_socket_bind(s, 0, MNL_SOCKET_AUTOPID) == 0;
	for (size_t i = 0; ok && i < sizeof(groups) / sizeof(groups[0]); i++)
		ok = mnl_socket_setsockopt(s, NETLINK_ADD_MEMBERSHIP, &groups[i], sizeof(groups[i])) == 0;
	if (ok)
		return s;
	saved = errno;
	(void)mnl_socket_close(s);
	errno = saved;
	return NULL;
}

int rtnl_ask(struct mnl_socket *s, struct nlmsghdr *n, mnl_cb_t cb, void *ctx)
{
	static uint32_t sequence;
	char buf[BUFFER_BYTES];
	int done = MNL_CB_OK;

	n->nlmsg_seq = ++sequence;
	if (mnl_socket_sendto(s, n, n->nlmsg_len) < 0)
		return -errno;
	while (done > MNL_CB_STOP) {
		ssize_t size = mnl_socket_recvfrom(s, buf, sizeof(buf));

		if (size < 0)
			return errno == EAGAIN ? -ETIME : -errno;
		if (size >= (ssize_t)sizeof(struct nlmsghdr) && ((struct nlmsghdr *)buf)->nlmsg_seq != n->nlmsg_seq)
			continue;
		done = mnl_cb_run(buf, (size_t)size, n->nlmsg_seq, mnl_socket_get_portid(s), cb, ctx);
		if (done < 0)
			return -errno;
	}
	return 0;
}

static int dump_once(struct mnl_socket *s, uint16_t type, mnl_cb_t cb, void *ctx)
{
	char buf[256] = {0};
	struct nlmsghdr *n = mnl_nlmsg_put_header(buf);

	n->nlmsg_type = type;
	n->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	if (type == RTM_GETNEIGH)
		((struct ndmsg *)mnl_nlmsg_put_extra_header(n, sizeof(struct ndmsg)))->ndm_family = AF_INET;
	else
		((struct ifinfomsg *)mnl_nlmsg_put_extra_header(n, sizeof(struct ifinfomsg)))->ifi_family = AF_UNSPEC;
	return rtnl_ask(s, n, cb, ctx);
}

int rtnl_dump(struct mnl_socket *s, uint16_t type, mnl_cb_t cb, void *ctx)
{
	int err = -EINTR;

	/* the kernel says so when what it lists has changed meanwhile */
	for (unsigned i = 0; i < 4 && err == -EINTR; i++)
		err = dump_once(s, type, cb, ctx);
	return err == -EINTR ? 0 : err;
}

struct route_answer {
	struct rtnl_route route;
	unsigned char type;
	bool found, foreign_gateway;
};

static int on_route(const struct nlmsghdr *n, void *ctx)
{
	const struct rtmsg *m = mnl_nlmsg_get_payload(n);
	struct route_answer *r = ctx;
	struct nlattr *a;

	if (n->nlmsg_type != RTM_NEWROUTE)
		return MNL_CB_OK;
	r->type = m->rtm_type;
	r->found = true;
	mnl_attr_for_each(a, n, sizeof(*m))
	{
		if (mnl_attr_get_type(a) == RTA_OIF)
			r->route.oif = mnl_attr_get_u32(a);
		if (mnl_attr_get_type(a) == RTA_GATEWAY)
			memcpy(&r->route.via, mnl_attr_get_payload(a), sizeof(r->route.via));
		if (mnl_attr_get_type(a) == RTA_PREFSRC)
			memcpy(&r->route.src, mnl_attr_get_payload(a), sizeof(r->route.src));
		if (mnl_attr_get_type(a) == RTA_VIA)
			r->foreign_gateway = true;
	}
	return MNL_CB_STOP;
}

int rtnl_route(struct mnl_socket *s, __be32 dst, struct rtnl_route *ret)
{
	char buf[256] = {0};
	struct nlmsghdr *n = mnl_nlmsg_put_header(buf);
	struct rtmsg *m = mnl_nlmsg_put_extra_header(n, sizeof(*m));
	struct route_answer r = {0};
	int err;

	n->nlmsg_type = RTM_GETROUTE;
	n->nlmsg_flags = NLM_F_REQUEST;
	m->rtm_family = AF_INET;
	m->rtm_dst_len = 32;
	mnl_attr_put(n, RTA_DST, sizeof(dst), &dst);
	err = rtnl_ask(s, n, on_route, &r);
	if (err)
		return err;
	if (!r.found)
		return -ENETUNREACH;
	if (r.type != RTN_UNICAST)
		return -EADDRNOTAVAIL;
	if (!r.route.via && !r.foreign_gateway)
		r.route.via = dst;
	*ret = r.route;
	return 0;
}

int rtnl_resolve(struct mnl_socket *s, uint32_t ifindex, __be32 addr, bool managed)
{
	char buf[256] = {0};
	struct nlmsghdr *n = mnl_nlmsg_put_header(buf);
	struct ndmsg *m = mnl_nlmsg_put_extra_header(n, sizeof(*m));

	n->nlmsg_type = RTM_NEWNEIGH;
	n->nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_ACK;
	m->ndm_family = AF_INET;
	m->ndm_ifindex = (int)ifindex;
	m->ndm_state = NUD_NONE;
	m->ndm_flags = NTF_USE;
	mnl_attr_put(n, NDA_DST, sizeof(addr), &addr);
	if (managed)
		mnl_attr_put_u32(n, NDA_FLAGS_EXT, NTF_EXT_MANAGED);
	return rtnl_ask(s, n, NULL, NULL);
}

static int on_family(const struct nlmsghdr *n, void *ctx)
{
	struct nlattr *a;

	mnl_attr_for_each(a, n, sizeof(struct genlmsghdr)) if (mnl_attr_get_type(a) == CTRL_ATTR_FAMILY_ID) *
		(int *)ctx = mnl_attr_get_u16(a);
	return MNL_CB_OK;
}

int rtnl_netdev_family(struct mnl_socket *s)
{
	char buf[256] = {0};
	struct nlmsghdr *n = mnl_nlmsg_put_header(buf);
	struct genlmsghdr *g = mnl_nlmsg_put_extra_header(n, sizeof(*g));
	int family = -ENOENT, err;

	n->nlmsg_type = GENL_ID_CTRL;
	n->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	g->cmd = CTRL_CMD_GETFAMILY;
	g->version = 1;
	mnl_attr_put_strz(n, CTRL_ATTR_FAMILY_NAME, "netdev");
	err = rtnl_ask(s, n, on_family, &family);
	return err ? err : family;
}

struct features_ctx {
	void (*cb)(void *ctx, uint32_t ifindex, uint64_t features);
	void *ctx;
};

static int on_features(const struct nlmsghdr *n, void *ctx)
{
	struct features_ctx *f = ctx;
	uint64_t features = 0;
	uint32_t ifindex = 0;
	struct nlattr *a;

	mnl_attr_for_each(a, n, sizeof(struct genlmsghdr))
	{
		if (mnl_attr_get_type(a) == NETDEV_A_DEV_IFINDEX)
			ifindex = mnl_attr_get_u32(a);
		if (mnl_attr_get_type(a) == NETDEV_A_DEV_XDP_FEATURES)
			features = mnl_attr_get_u64(a);
	}
	if (ifindex)
		f->cb(f->ctx, ifindex, features);
	return MNL_CB_OK;
}

int rtnl_xdp_features(struct mnl_socket *s, int family, void (*cb)(void *ctx, uint32_t ifindex, uint64_t features),
		      void *ctx)
{
	char buf[256] = {0};
	struct nlmsghdr *n = mnl_nlmsg_put_header(buf);
	struct genlmsghdr *g = mnl_nlmsg_put_extra_header(n, sizeof(*g));
	struct features_ctx f = {.cb = cb, .ctx = ctx};

	n->nlmsg_type = (uint16_t)family;
	n->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	g->cmd = NETDEV_CMD_DEV_GET;
	g->version = 1;
	return rtnl_ask(s, n, on_features, &f);
}
