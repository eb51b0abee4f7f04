/* SPDX-License-Identifier: MIT */
/* Attaching to interfaces: native XDP and tcx by pinned links that are updated in place, clsact filters where the
 * kernel has no tcx. TC goes first on, XDP first off, since XDP hands over to TC what it cannot finish. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/ethtool.h>
#include <linux/if_link.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include "../base/cleanup.h"
#include "load_private.h"
#include "pins.h"

#define ATTACH_TYPE_TCX_INGRESS 46 /* enum bpf_attach_type, Linux 6.6; libbpf 1.1's header stops before it */

void load_driver_name(const char *interface, char buf[static 32])
{
	struct ethtool_drvinfo info = {.cmd = ETHTOOL_GDRVINFO};
	struct ifreq request = {.ifr_data = (char *)&info};
	_cleanup_close_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	buf[0] = 0;
	(void)snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", interface);
	if (fd >= 0 && ioctl(fd, SIOCETHTOOL, &request) == 0)
		(void)snprintf(buf, 32, "%.31s", info.driver);
}

static int link_info(int fd, struct bpf_link_info *ret)
{
	__u32 size = sizeof(*ret);

	memset(ret, 0, sizeof(*ret));
	return bpf_obj_get_info_by_fd(fd, ret, &size) ? -errno : 0;
}

/* Of any mode: native, generic or offloaded; 0: none. */
static uint32_t xdp_program_id(unsigned ifindex)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, opts);

	if (bpf_xdp_query((int)ifindex, 0, &opts))
		return 0;
	if (opts.attach_mode == XDP_ATTACHED_MULTI)
		return opts.drv_prog_id ? opts.drv_prog_id : opts.skb_prog_id ? opts.skb_prog_id : opts.hw_prog_id;
	return opts.prog_id;
}

/* The pinned link of an earlier agent, if it still is on this very interface: its fd, else -errno. */
static int link_find(const char *path, unsigned ifindex, bool xdp)
{
	_cleanup_close_ int fd = bpf_obj_get(path);
	struct bpf_link_info info;
	int err;

	if (fd < 0)
		return -errno;
	err = link_info(fd, &info);
	if (err)
		return err;
	/* tcx keeps its ifindex at the same place; 0: the interface is gone. Another namespace may have an interface of
	 * the same index, so for XDP the interface is asked too. */
	if (info.xdp.ifindex != ifindex || (xdp && xdp_program_id(ifindex) != info.prog_id))
		return -ENODEV;
	return TAKE_FD(fd);
}

/* Update the pinned link, or make one and pin it. */
static int link_attach(const char *path, unsigned ifindex, int prog_fd, bool xdp)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts, .flags = xdp ? XDP_FLAGS_DRV_MODE : 0);
	_cleanup_close_ int old = link_find(path, ifindex, xdp), fd = -1;

	if (old >= 0)
		return bpf_link_update(old, prog_fd, NULL) ? -errno : 0;
	(void)unlink(path);
	fd = bpf_link_create(prog_fd, (int)ifindex, xdp ? BPF_XDP : ATTACH_TYPE_TCX_INGRESS, xdp ? &opts : NULL);
	if (fd < 0)
		return -errno;
	return bpf_obj_pin(fd, path) ? -errno : 0;
}

/* End a link and its pin, whoever holds it open. */
static void link_remove(const char *path)
{
	_cleanup_close_ int fd = bpf_obj_get(path);

	if (fd >= 0)
		(void)bpf_link_detach(fd);
	(void)unlink(path);
}

static int filter_attach(const char *pin_dir, const char *interface, unsigned ifindex, int prog_fd)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = (int)ifindex, .attach_point = BPF_TC_INGRESS);
	LIBBPF_OPTS(bpf_tc_opts, opts, .handle = PINS_FILTER_HANDLE, .priority = PINS_FILTER_HANDLE, .prog_fd = prog_fd,
		    .flags = BPF_TC_F_REPLACE);
	/* a clsact that is there already is fine, but libbpf would warn of it */
	libbpf_print_fn_t print = libbpf_set_print(NULL);
	int err = bpf_tc_hook_create(&hook);
	char path[PATH_MAX];

	(void)libbpf_set_print(print);
	if (err && err != -EEXIST)
		return err;
	if (!err && pins_link_path(pin_dir, PINS_MARK_CLSACT, interface, path) == 0)
		(void)mkdir(path, 0700);
	err = pins_link_path(pin_dir, PINS_MARK_FILTER, interface, path);
	if (err)
		return err;
	if (mkdir(path, 0700) && errno != EEXIST)
		return -errno;
	return bpf_tc_attach(&hook, &opts);
}

static void filter_remove(const char *pin_dir, const char *interface)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = (int)if_nametoindex(interface), .attach_point = BPF_TC_INGRESS);
	LIBBPF_OPTS(bpf_tc_opts, opts, .handle = PINS_FILTER_HANDLE, .priority = PINS_FILTER_HANDLE);
	char path[PATH_MAX];

	if (pins_link_path(pin_dir, PINS_MARK_FILTER, interface, path) || rmdir(path))
		return;
	if (hook.ifindex)
		(void)bpf_tc_detach(&hook, &opts);
	if (pins_link_path(pin_dir, PINS_MARK_CLSACT, interface, path) || rmdir(path))
		return;
	hook.attach_point = (enum bpf_tc_attach_point)(BPF_TC_INGRESS | BPF_TC_EGRESS);
	if (hook.ifindex)
		(void)bpf_tc_hook_destroy(&hook);
}

static int tc_attach(struct load *l, const char *interface, unsigned ifindex, unsigned *kinds, char *why,
		     size_t why_size)
{
	int prog_fd = load_program_fd(l, "steelyard_tc"), err;
	char path[PATH_MAX];

	err = pins_link_path(l->pin_dir, PINS_LINK_TC, interface, path);
	if (!err)
		err = link_attach(path, ifindex, prog_fd, false);
	if (!err) {
		*kinds |= ATTACH_TCX;
		return 0;
	}
	if (err == -EINVAL || err == -EOPNOTSUPP) {
		err = filter_attach(l->pin_dir, interface, ifindex, prog_fd);
		if (!err)
			*kinds |= ATTACH_CLSACT;
	}
	if (err)
		(void)snprintf(why, why_size, "%s: cannot attach to TC ingress: %s", interface, strerror(-err));
	return err;
}

static int xdp_attach(struct load *l, const struct attach_request *r, unsigned ifindex, unsigned *kinds, char *why,
		      size_t why_size)
{
	char path[PATH_MAX];
	int err = pins_link_path(l->pin_dir, PINS_LINK_XDP, r->interface, path);

	if (!err)
		err = link_attach(path, ifindex, load_program_fd(l, "steelyard_xdp"), true);
	if (!err) {
		*kinds |= ATTACH_XDP_NATIVE;
		return 0;
	}
	(void)snprintf(why, why_size, "%s: native XDP is refused by its driver: %s%s", r->interface, strerror(-err),
		       r->mode == 1 ? "" : "; TC alone serves it");
	return r->mode == 1 ? err : 0;
}

/* Is an XDP program there that none of our links put there? */
static bool xdp_is_foreign(struct load *l, const char *interface, unsigned ifindex)
{
	_cleanup_close_ int fd = -1;
	char path[PATH_MAX];

	if (!xdp_program_id(ifindex))
		return false;
	if (pins_link_path(l->pin_dir, PINS_LINK_XDP, interface, path))
		return true;
	fd = link_find(path, ifindex, true);
	return fd < 0;
}

int load_attach(struct load *l, const struct attach_request *r, unsigned *ret_kinds, char *why, size_t why_size)
{
	unsigned ifindex = if_nametoindex(r->interface), kinds = 0;
	char driver[32], path[PATH_MAX];
	bool want_xdp, foreign;
	int err;

	why[0] = 0;
	if (!ifindex) {
		(void)snprintf(why, why_size, "%s: no such interface", r->interface);
		return -ENODEV;
	}
	load_driver_name(r->interface, driver);
	want_xdp = r->mode == 1 || (r->mode == 0 && strcmp(driver, "veth"));
	foreign = want_xdp && xdp_is_foreign(l, r->interface, ifindex);
	if (foreign) {
		(void)snprintf(why, why_size, "%s: another XDP program is attached%s", r->interface,
			       r->foreign_stop ? "" : "; TC alone serves it");
		if (r->foreign_stop)
			return -EBUSY;
	}

	err = tc_attach(l, r->interface, ifindex, &kinds, why, why_size);
	if (err)
		return err;
	if (want_xdp && !foreign)
		err = xdp_attach(l, r, ifindex, &kinds, why, why_size);
	else if (pins_link_path(l->pin_dir, PINS_LINK_XDP, r->interface, path) == 0)
		link_remove(path);
	if (err) {
		(void)load_detach(l, r->interface);
		return err;
	}
	*ret_kinds = kinds;
	return 0;
}

static int detach(const char *pin_dir, const char *interface)
{
	char path[PATH_MAX];
	int err = pins_link_path(pin_dir, PINS_LINK_XDP, interface, path);

	if (err)
		return err;
	link_remove(path);
	err = pins_link_path(pin_dir, PINS_LINK_TC, interface, path);
	if (err)
		return err;
	link_remove(path);
	filter_remove(pin_dir, interface);
	return 0;
}

int load_detach(struct load *l, const char *interface)
{
	return detach(l->pin_dir, interface);
}

/* Removing entries moves a folder's cursor, so it is read again until nothing is left to do; each round removes at
 * least one. */
static void detach_all_but(const char *pin_dir, const char *const *keep, size_t n_keep)
{
	for (unsigned round = 0; round < 4096; round++) {
		char interface[64] = "";
		enum pins_link kind;

		if (!pins_next_link(pin_dir, keep, n_keep, &kind, interface))
			return;
		(void)detach(pin_dir, interface);
	}
}

void load_detach_others(struct load *l, const char *const *interfaces, size_t n)
{
	detach_all_but(l->pin_dir, interfaces, n);
}

int load_remove(const char *pin_dir, bool force, char *why, size_t why_size)
{
	_cleanup_close_ int lock = pins_lock(pin_dir);
	char path[PATH_MAX];

	if (lock == -ENOENT) {
		(void)snprintf(why, why_size, "%s: nothing is pinned there", pin_dir);
		return -ENOENT;
	}
	if (lock < 0 && !(lock == -EWOULDBLOCK && force)) {
		(void)snprintf(why, why_size,
			       lock == -EWOULDBLOCK ? "%s: an agent is running (stop it, or --force)"
						    : "%s: cannot lock",
			       pin_dir);
		return lock == -EWOULDBLOCK ? -EBUSY : lock;
	}
	detach_all_but(pin_dir, NULL, 0);
	pins_remove_maps(pin_dir);
	(void)snprintf(path, sizeof(path), "%s/%s", pin_dir, SY_PIN_LINKS);
	(void)rmdir(path);
	if (rmdir(pin_dir)) {
		int err = -errno;

		(void)snprintf(why, why_size, "%s: cannot remove: %s", pin_dir, strerror(-err));
		return err;
	}
	return 0;
}
