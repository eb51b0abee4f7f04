/* SPDX-License-Identifier: MIT */
/* What is asked of the kernel over netlink: links, neighbours, routes, XDP features. Messages to structs and back, no
 * state of its own beyond the socket. Private to dataplane. */
#pragma once
#include <libmnl/libmnl.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>

struct rtnl_link {
	uint32_t ifindex;
	bool ethernet; /* the kind that has MAC addresses to forward to */
	bool up;
	uint8_t mac[6];
	uint32_t mtu;
	char name[16];
};
struct rtnl_neigh {
	uint32_t ifindex;
	__be32 addr;
	bool resolved;	/* mac is one that frames can be sent to */
	bool permanent; /* set by an administrator: to be left alone */
	uint8_t mac[6];
};
struct rtnl_route {
	uint32_t oif;
	__be32 via; /* whom to send to: the gateway, or the destination itself; 0: not by IPv4 */
	__be32 src; /* the source address the host would use */
};

/* false: not such a message, or not IPv4 (neighbours). */
bool rtnl_parse_link(const struct nlmsghdr *n, struct rtnl_link *ret);
bool rtnl_parse_neigh(const struct nlmsghdr *n, struct rtnl_neigh *ret);

/* A socket for questions. NULL with errno. Answers are waited for a second at most. */
struct mnl_socket *rtnl_open(int bus);
/* A socket that is told of link, neighbour, address and route changes (IPv4), non-blocking. NULL with errno. */
struct mnl_socket *rtnl_open_events(void);

/* Send one request and hand its answers to cb; late answers to an earlier one, which was given up, are skipped. 0 or
 * -errno. */
int rtnl_ask(struct mnl_socket *s, struct nlmsghdr *n, mnl_cb_t cb, void *ctx);
/* Every link or neighbour: type RTM_GETLINK or RTM_GETNEIGH. 0 or -errno. */
int rtnl_dump(struct mnl_socket *s, uint16_t type, mnl_cb_t cb, void *ctx);
/* -ENETUNREACH, -EHOSTUNREACH: no route; -EADDRNOTAVAIL: an address of this host, or no unicast one. */
int rtnl_route(struct mnl_socket *s, __be32 dst, struct rtnl_route *ret);
/* Have the kernel resolve a neighbour now, and keep it so (managed, from Linux 5.16, else this once). */
int rtnl_resolve(struct mnl_socket *s, uint32_t ifindex, __be32 addr, bool managed);

#define RTNL_XDP_NDO_XMIT 4ULL /* enum netdev_xdp_act, linux/netdev.h, Linux 6.3 */
/* Id of the generic netlink family "netdev" on a socket of NETLINK_GENERIC; -ENOENT before Linux 6.3. */
int rtnl_netdev_family(struct mnl_socket *s);
int rtnl_xdp_features(struct mnl_socket *s, int family, void (*cb)(void *ctx, uint32_t ifindex, uint64_t features),
		      void *ctx);
