/* SPDX-License-Identifier: MIT */
/* What would keep the balancer from working on an interface: each check with what was found and what to do about it.
 * Checks that only matter for speed or for native XDP are told, but do not fail the whole. */
#include "preflight.h"
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/magic.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/vfs.h>
#include "../base/cleanup.h"
#include "../base/json.h"
#include "inspect_private.h"
#include "load_check.h"
#include "load_private.h"
#include "rtnl.h"

struct report {
	const char *interface;
	cJSON *checks; /* borrowed */
	bool ok;
};

/* remedy: what to do when it is not ok */
static void __attribute__((format(printf, 6, 7)))
tell(struct report *r, const char *check, bool ok, bool matters, const char *remedy, const char *format, ...)
{
	cJSON *o = cJSON_CreateObject();
	char detail[512];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(detail, sizeof(detail), format, args);
	va_end(args);
	(void)cJSON_AddStringToObject(o, "check", check);
	(void)cJSON_AddBoolToObject(o, "ok", ok);
	(void)cJSON_AddBoolToObject(o, "required", matters);
	(void)cJSON_AddStringToObject(o, "detail", detail);
	(void)cJSON_AddStringToObject(o, "remedy", ok ? "" : remedy);
	(void)cJSON_AddItemToArray(r->checks, o);
	r->ok &= ok || !matters;
}

static void check_host(struct report *r)
{
	char missing[256];
	struct statfs s;
	bool mounted;

	load_check_capabilities(missing, sizeof(missing));
	tell(r, "capabilities", !missing[0], true, "run it as root or with these capabilities", "%s%s",
	     missing[0] ? "missing: " : "CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON", missing);
	if (!missing[0]) {
		load_check_features(missing, sizeof(missing));
		tell(r, "kernel features", !missing[0], true, "a kernel of 5.15 or newer on x86-64 is needed", "%s%s",
		     missing[0] ? "missing: " : "all there", missing);
	}
	mounted = statfs("/sys/fs/bpf", &s) == 0 && (unsigned long)s.f_type == BPF_FS_MAGIC;
	tell(r, "bpf file system", mounted, false, "mount -t bpf bpf /sys/fs/bpf (the agent does it when it may)",
	     "/sys/fs/bpf is %s", mounted ? "mounted" : "not mounted");
}

static int ethtool(const char *interface, void *command)
{
	struct ifreq request = {.ifr_data = command};
	_cleanup_close_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	(void)snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", interface);
	return fd < 0 || ioctl(fd, SIOCETHTOOL, &request) ? -errno : 0;
}

/* An offload that is named by an old-style flag or command; -1: it cannot be told. */
static int offload(const char *interface, uint32_t command, uint32_t mask)
{
	struct ethtool_value v = {.cmd = command};

	return ethtool(interface, &v) ? -1 : !!(v.data & mask);
}

static void on_features(void *ctx, uint32_t ifindex, uint64_t features)
{
	uint64_t *wanted = ctx;

	if (wanted[0] == ifindex)
		wanted[1] = features | 1ULL << 63;
}

/* What the driver says it can do with XDP; 0: it does not tell. */
static uint64_t xdp_features(const char *interface)
{
	struct mnl_socket *s = rtnl_open(NETLINK_GENERIC);
	int family = s ? rtnl_netdev_family(s) : -ENOENT;
	uint64_t found[2] = {if_nametoindex(interface), 0};

	if (family >= 0)
		(void)rtnl_xdp_features(s, family, on_features, found);
	if (s)
		(void)mnl_socket_close(s);
	return found[1];
}

static void check_driver(struct report *r)
{
	uint64_t features = xdp_features(r->interface);
	char driver[32];

	load_driver_name(r->interface, driver);
	if (!strcmp(driver, "veth"))
		tell(r, "driver", true, false, "",
		     "veth: TC serves it; native XDP works when asked for, but switches the peer's "
		     "segmentation offload off");
	else if (!features)
		tell(r, "driver", true, false, "",
		     "%s: it does not tell whether it has native XDP; TC serves it if not",
		     driver[0] ? driver : "unnamed");
	else
		tell(r, "driver", true, false, "", "%s: native XDP %s", driver[0] ? driver : "unnamed",
		     !(features & 3)		    ? "is not there, TC serves it"
		     : features & RTNL_XDP_NDO_XMIT ? "receives and transmits"
						    : "receives; packets out of it go through TC");
}

static void check_offloads(struct report *r)
{
	int gro = offload(r->interface, ETHTOOL_GGRO, 1), tx = offload(r->interface, ETHTOOL_GTXCSUM, 1),
	    rxvlan = offload(r->interface, ETHTOOL_GFLAGS, ETH_FLAG_RXVLAN);
	char remedy[128], driver[32];

	load_driver_name(r->interface, driver);
	if (gro >= 0)
		tell(r, "gro", gro, false, "switch it on with ethtool -K: TC then handles fewer, larger packets",
		     "generic receive offload is %s", gro ? "on" : "off");
	if (tx >= 0 && !strcmp(driver, "veth"))
		tell(r, "tx-checksum", true, false, "", "transmit checksum offload is %s%s", tx ? "on" : "off",
		     tx ? "; for native XDP its peer's has to be off" : "");
	(void)snprintf(remedy, sizeof(remedy), "for native XDP on a trunk: ethtool -K %s rxvlan off", r->interface);
	if (rxvlan >= 0)
		tell(r, "rxvlan", !rxvlan, false, remedy, "VLAN tags are %s",
		     rxvlan ? "stripped by the device and invisible to XDP; TC sees them" : "left in the packet");
}

static void check_forwarding(struct report *r)
{
	_cleanup_fclose_ FILE *f = NULL;
	char path[128], remedy[128];
	int on = -1;

	(void)snprintf(path, sizeof(path), "/proc/sys/net/ipv4/conf/%s/forwarding", r->interface);
	(void)snprintf(remedy, sizeof(remedy), "sysctl -w net.ipv4.conf.%s.forwarding=1", r->interface);
	f = fopen(path, "re");
	if (f && fscanf(f, "%d", &on) != 1)
		on = -1;
	tell(r, "forwarding", on == 1, true, remedy,
	     "IPv4 forwarding of this interface is %s: next hops are looked up as for forwarded packets",
	     on == 1   ? "on"
	     : on == 0 ? "off"
		       : "not known");
}

static bool is_local(const struct ifaddrs *all, __be32 addr)
{
	for (const struct ifaddrs *a = all; a; a = a->ifa_next)
		if (a->ifa_addr && a->ifa_addr->sa_family == AF_INET &&
		    ((const struct sockaddr_in *)(const void *)a->ifa_addr)->sin_addr.s_addr == addr)
			return true;
	return false;
}

/* Addresses of listeners: does this host answer for them? Routers may send them here without, so it is no failure. */
static void check_listeners(struct report *r, const struct inspect *i)
{
	struct ifaddrs *all = NULL;
	__be32 key, *at = NULL;

	if (getifaddrs(&all))
		return;
	for (uint32_t n = 0; n < SY_MAX_LISTENERS && bpf_map_get_next_key(i->maps->fd_vips4, at, &key) == 0; n++) {
		char text[INET_ADDRSTRLEN] = "", remedy[160];
		bool local = is_local(all, key);

		at = &key;
		(void)inet_ntop(AF_INET, &key, text, sizeof(text));
		(void)snprintf(remedy, sizeof(remedy), "ip addr add %s/32 dev %s, or have routers send it here", text,
			       r->interface);
		tell(r, "listener address", local, false, remedy, "%s is %s of this host", text,
		     local ? "an address" : "no address");
	}
	freeifaddrs(all);
}

static const char *route_text(int err)
{
	switch (err) {
	case 0:
		return "there";
	case -EADDRNOTAVAIL:
		return "to this host itself, which cannot be a backend";
	default:
		return "missing";
	}
}

/* One line for all that are well, one for each that is not, and not more than a screen of those. */
static void check_routes(struct report *r, const struct inspect *i)
{
	struct mnl_socket *s = rtnl_open(NETLINK_ROUTE);
	unsigned n_good = 0, n_bad = 0;

	for (uint32_t id = 1; s && id < SY_MAX_BACKENDS && n_bad < 20; id++) {
		const struct sy_backend *b = &i->maps->backends[id];
		char text[INET_ADDRSTRLEN] = "";
		struct rtnl_route route;
		int err;

		if (b->family != AF_INET || !(b->flags & SY_B_LISTED))
			continue;
		err = rtnl_route(s, b->addr[3], &route);
		if (!err) {
			n_good++;
			continue;
		}
		n_bad++;
		(void)inet_ntop(AF_INET, &b->addr[3], text, sizeof(text));
		tell(r, "route", false, true, "add a route to it", "the route to backend %s is %s", text,
		     route_text(err));
	}
	if (s)
		(void)mnl_socket_close(s);
	if (n_good)
		tell(r, "routes", true, false, "", "%u backends have a route", n_good);
}

static void check_pinned(struct report *r, const char *pin_dir)
{
	char why[256];
	struct inspect *i = inspect_open(pin_dir, why, sizeof(why));

	if (!i) {
		tell(r, "pins", errno == ENOENT, errno != EPERM && errno != EACCES, "remove them with steelyard detach",
		     "%s", why);
		return;
	}
	check_listeners(r, i);
	check_routes(r, i);
	inspect_close(i);
}

static void check_interface(struct report *r)
{
	struct ifreq request = {0};
	_cleanup_close_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool up;

	(void)snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", r->interface);
	up = fd >= 0 && ioctl(fd, SIOCGIFFLAGS, &request) == 0 && (request.ifr_flags & IFF_UP);
	tell(r, "interface", up, true, "ip link set it up", "%s is %s", r->interface, up ? "up" : "down");
	check_driver(r);
	check_offloads(r);
	check_forwarding(r);
}

cJSON *preflight_run(const char *interface, const char *pin_dir)
{
	cJSON *out = cJSON_CreateObject();
	struct report r = {.interface = interface, .checks = cJSON_CreateArray(), .ok = true};

	check_host(&r);
	if (if_nametoindex(interface))
		check_interface(&r);
	else
		tell(&r, "interface", false, true, "see ip link for their names", "%s: no such interface", interface);
	check_pinned(&r, pin_dir);
	(void)cJSON_AddStringToObject(out, "interface", interface);
	(void)cJSON_AddBoolToObject(out, "ok", r.ok);
	(void)cJSON_AddItemToObject(out, "checks", r.checks);
	return out;
}
