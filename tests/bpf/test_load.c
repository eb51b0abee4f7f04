// SPDX-License-Identifier: MIT
/* Pin folders and attachments: one agent a folder, adoption, foreign layouts, links updated in place, everything
 * removed. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <cap-ng.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/json.h"
#include "dataplane/hz.h"
#include "dataplane/preflight.h"
#include "pinned.h"
#include "unit.h"

#define INTERFACE "sy.0" /* a dot: bpffs refuses those in names */

static char why[512];

static struct load *open_folder(uint32_t flows, enum load_fail *ret_fail)
{
	const struct load_options o = {.pin_dir = pinned_dir(), .flows = flows, .quiet = true};

	return load_open(&o, ret_fail, why, sizeof(why));
}

static int set_up(void **state)
{
	(void)state;
	return pinned_shell("ip link add %s type veth peer name sy-peer && ip link set %s up && ip link set sy-peer up",
			    INTERFACE, INTERFACE);
}

static int tear_down(void **state)
{
	(void)state;
	pinned_remove();
	(void)pinned_shell("ip link del %s 2>/dev/null", INTERFACE);
	return 0;
}

static void path_of(const char *name, char *buf, size_t size)
{
	(void)snprintf(buf, size, "%s/%s", pinned_dir(), name);
}

/* Id of a pinned link, 0: none. */
static uint32_t link_id(const char *name)
{
	struct bpf_link_info info = {0};
	__u32 size = sizeof(info);
	char path[128];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/links/%s", pinned_dir(), name);
	fd = bpf_obj_get(path);
	if (fd < 0)
		return 0;
	(void)bpf_obj_get_info_by_fd(fd, &info, &size);
	(void)close(fd);
	return info.xdp.ifindex ? info.id : 0;
}

static int attach(struct load *l, int mode, bool foreign_stop, unsigned *ret_kinds)
{
	const struct attach_request r = {.interface = INTERFACE, .mode = mode, .foreign_stop = foreign_stop};

	return load_attach(l, &r, ret_kinds, why, sizeof(why));
}

static void one_agent_a_folder(void **state)
{
	struct load *l = pinned_load();
	enum load_fail fail = LOAD_OK;

	(void)state;
	assert_false(load_adopted(l));
	assert_null(open_folder(PINNED_FLOWS, &fail));
	assert_int_equal(fail, LOAD_LOCKED);
	assert_int_equal(load_remove(pinned_dir(), false, why, sizeof(why)), -EBUSY);
	load_close(l);
	assert_int_equal(load_remove(pinned_dir(), false, why, sizeof(why)), 0);
	assert_int_equal(access(pinned_dir(), F_OK), -1);
	assert_int_equal(load_remove(pinned_dir(), false, why, sizeof(why)), -ENOENT);
}

static void adoption_keeps_maps(void **state)
{
	struct load *l = pinned_load();
	uint32_t secret = load_maps(l)->config->secret[0];
	enum load_fail fail;

	(void)state;
	load_maps(l)->backends[7].since_ns = 77;
	load_close(l);
	l = open_folder(4 * PINNED_FLOWS, &fail);
	assert_non_null(l);
	assert_true(load_adopted(l));
	assert_int_equal(load_maps(l)->config->flows, PINNED_FLOWS);
	assert_non_null(strstr(why, "flows"));
	assert_int_equal(load_maps(l)->config->secret[0], secret);
	assert_int_equal(load_maps(l)->backends[7].since_ns, 77);
	load_close(l);
}

static void sweeper_runs(void **state)
{
	struct load *l = pinned_load();
	struct sy_sweep before, after = {0};
	const uint32_t zero = 0;

	(void)state;
	load_close(l);
	/* without an agent, and over adoption by another */
	l = pinned_load();
	assert_int_equal(bpf_map_lookup_elem(load_maps(l)->fd_sweep, &zero, &before), 0);
	for (unsigned i = 0; i < 5000 && after.visits <= before.visits; i++) {
		(void)usleep(1000);
		assert_int_equal(bpf_map_lookup_elem(load_maps(l)->fd_sweep, &zero, &after), 0);
	}
	assert_true(after.visits > before.visits);
	load_close(l);
}

static void foreign_layout_refused(void **state)
{
	struct load *l = pinned_load();
	enum load_fail fail = LOAD_OK;
	struct maps m;
	uint32_t layout = 0;

	(void)state;
	load_maps(l)->config->layout = SY_LAYOUT_VERSION + 1;
	load_close(l);
	assert_null(open_folder(PINNED_FLOWS, &fail));
	assert_int_equal(fail, LOAD_LAYOUT);
	assert_non_null(strstr(why, "steelyard detach"));
	assert_int_equal(maps_open(pinned_dir(), false, &m, &layout), -EPROTO);
	assert_int_equal(layout, SY_LAYOUT_VERSION + 1);
	assert_int_equal(load_remove(pinned_dir(), false, why, sizeof(why)), 0);
}

static void half_pinned_made_anew(void **state)
{
	struct load *l = pinned_load();
	enum load_fail fail;
	char path[128];

	(void)state;
	load_close(l);
	/* config is pinned last: this is what an agent that died while pinning leaves */
	path_of("config", path, sizeof(path));
	assert_int_equal(unlink(path), 0);
	path_of("events", path, sizeof(path));
	assert_int_equal(unlink(path), 0);
	l = open_folder(PINNED_FLOWS, &fail);
	assert_non_null(l);
	assert_false(load_adopted(l));
	load_close(l);
	/* and this nobody leaves: a map is missing in a folder that says it is complete */
	assert_int_equal(unlink(path), 0);
	assert_null(open_folder(PINNED_FLOWS, &fail));
	assert_int_equal(fail, LOAD_LAYOUT);
}

static void no_bpffs_refused(void **state)
{
	const struct load_options o = {.pin_dir = "/tmp/sy_test_no_bpffs", .flows = PINNED_FLOWS, .quiet = true};
	enum load_fail fail = LOAD_OK;

	(void)state;
	assert_null(load_open(&o, &fail, why, sizeof(why)));
	assert_int_equal(fail, LOAD_DIRECTORY);
	(void)rmdir(o.pin_dir);
}

/* In a child, which gives the capability up: its exit status is the kind of failure, 100 when the sentence does not
 * name it. */
static void missing_capability_named(void **state)
{
	pid_t child = fork();
	int status = -1;

	(void)state;
	if (child == 0) {
		enum load_fail fail = LOAD_OK;

		(void)capng_get_caps_process();
		(void)capng_update(CAPNG_DROP, CAPNG_EFFECTIVE | CAPNG_PERMITTED, CAP_NET_ADMIN);
		(void)capng_apply(CAPNG_SELECT_CAPS);
		if (open_folder(PINNED_FLOWS, &fail))
			_exit(101);
		_exit(strstr(why, "CAP_NET_ADMIN") && !strstr(why, "CAP_BPF") ? (int)fail : 100);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), LOAD_PERMISSION);
}

static void auto_on_veth_is_tc(void **state)
{
	struct load *l = pinned_load();
	_cleanup_json_ cJSON *interfaces = NULL;
	unsigned kinds = 0;

	(void)state;
	assert_int_equal(attach(l, 0, false, &kinds), 0);
	assert_true(kinds == ATTACH_TCX || kinds == ATTACH_CLSACT);
	interfaces = inspect_interfaces(pinned_dir());
	assert_int_equal(cJSON_GetArraySize(interfaces), 1);
	assert_string_equal(json_string(cJSON_GetArrayItem(interfaces, 0), "name"), INTERFACE);
	assert_string_equal(json_string(cJSON_GetArrayItem(interfaces, 0), "attach"), "tc");
	load_close(l);
}

static void links_updated_in_place(void **state)
{
	struct load *l = pinned_load();
	uint32_t xdp, tc;
	unsigned kinds = 0;

	(void)state;
	assert_int_equal(attach(l, 1, false, &kinds), 0);
	assert_true(kinds & ATTACH_XDP_NATIVE);
	xdp = link_id("xdp_sy%2e0");
	tc = link_id("tc_sy%2e0");
	assert_int_not_equal(xdp, 0);
	load_close(l);
	l = pinned_load();
	assert_int_equal(attach(l, 1, false, &kinds), 0);
	assert_int_equal(link_id("xdp_sy%2e0"), xdp);
	assert_int_equal(link_id("tc_sy%2e0"), tc);
	/* the configuration says TC now */
	assert_int_equal(attach(l, 2, false, &kinds), 0);
	assert_false(kinds & ATTACH_XDP_NATIVE);
	assert_int_equal(link_id("xdp_sy%2e0"), 0);
	assert_int_equal(link_id("tc_sy%2e0"), tc);
	assert_int_equal(load_detach(l, INTERFACE), 0);
	assert_int_equal(link_id("tc_sy%2e0"), 0);
	load_close(l);
}

static void unnamed_interfaces_let_go(void **state)
{
	static const char *const both[] = {"sy-none", INTERFACE};
	struct load *l = pinned_load();
	unsigned kinds;

	(void)state;
	assert_int_equal(attach(l, 1, false, &kinds), 0);
	load_detach_others(l, both, 2);
	assert_int_not_equal(link_id("tc_sy%2e0"), 0);
	load_detach_others(l, both, 1);
	assert_int_equal(link_id("xdp_sy%2e0"), 0);
	assert_int_equal(link_id("tc_sy%2e0"), 0);
	load_close(l);
}

static void replaced_interface(void **state)
{
	struct load *l = pinned_load();
	uint32_t before;
	unsigned kinds;

	(void)state;
	assert_int_equal(attach(l, 1, false, &kinds), 0);
	before = link_id("xdp_sy%2e0");
	assert_int_equal(pinned_shell("ip link del %s", INTERFACE), 0);
	assert_int_equal(attach(l, 1, false, &kinds), -ENODEV);
	assert_int_equal(set_up(state), 0);
	assert_int_equal(attach(l, 1, false, &kinds), 0);
	assert_int_not_equal(link_id("xdp_sy%2e0"), 0);
	assert_int_not_equal(link_id("xdp_sy%2e0"), before);
	load_close(l);
}

static void foreign_xdp_respected(void **state)
{
	const struct bpf_insn pass[] = {{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = XDP_PASS},
					{.code = BPF_JMP | BPF_EXIT}};
	int prog = bpf_prog_load(BPF_PROG_TYPE_XDP, "someone_else", "GPL", pass, 2, NULL);
	struct load *l = pinned_load();
	unsigned kinds = 0;

	(void)state;
	assert_true(prog >= 0);
	assert_int_equal(bpf_xdp_attach((int)if_nametoindex(INTERFACE), prog, XDP_FLAGS_DRV_MODE, NULL), 0);
	assert_int_equal(attach(l, 1, true, &kinds), -EBUSY);
	assert_int_equal(link_id("tc_sy%2e0"), 0);
	assert_int_equal(attach(l, 1, false, &kinds), 0);
	assert_false(kinds & ATTACH_XDP_NATIVE);
	assert_non_null(strstr(why, "another XDP program"));
	assert_int_equal(bpf_xdp_detach((int)if_nametoindex(INTERFACE), XDP_FLAGS_DRV_MODE, NULL), 0);
	(void)close(prog);
	load_close(l);
}

static void remove_takes_all(void **state)
{
	struct load *l = pinned_load();
	LIBBPF_OPTS(bpf_xdp_query_opts, opts);
	unsigned kinds;

	(void)state;
	assert_int_equal(attach(l, 1, false, &kinds), 0);
	/* --force, with the agent alive */
	assert_int_equal(load_remove(pinned_dir(), true, why, sizeof(why)), 0);
	assert_int_equal(access(pinned_dir(), F_OK), -1);
	assert_int_equal(bpf_xdp_query((int)if_nametoindex(INTERFACE), 0, &opts), 0);
	assert_int_equal(opts.prog_id, 0);
	load_close(l);
}

static bool says(const cJSON *report, const char *name, bool ok)
{
	const cJSON *check;

	cJSON_ArrayForEach(check, cJSON_GetObjectItem(report, "checks")) {
		assert_non_null(json_string(check, "detail"));
		assert_non_null(json_string(check, "remedy"));
		if (!strcmp(json_string(check, "check"), name) && json_bool(check, "ok", !ok) == ok)
			return true;
	}
	return false;
}

static void preflight_names_what_is_wrong(void **state)
{
	_cleanup_json_ cJSON *good = NULL, *bad = NULL, *missing = NULL;
	struct load *l = pinned_load();

	(void)state;
	(void)pinned_shell("sysctl -qw net.ipv4.conf.all.forwarding=0");
	bad = preflight_run(INTERFACE, pinned_dir());
	assert_true(says(bad, "forwarding", false));
	assert_false(json_bool(bad, "ok", true));
	(void)pinned_shell("sysctl -qw net.ipv4.conf.all.forwarding=1");
	good = preflight_run(INTERFACE, pinned_dir());
	assert_true(says(good, "forwarding", true));
	assert_true(says(good, "driver", true));
	assert_true(says(good, "capabilities", true));
	assert_true(json_bool(good, "ok", false));
	missing = preflight_run("sy-none", pinned_dir());
	assert_true(says(missing, "interface", false));
	load_close(l);
}

static void hz_is_one_that_kernels_have(void **state)
{
	uint32_t hz = 0;

	(void)state;
	assert_int_equal(hz_from(50, 200000000), 250);
	assert_int_equal(hz_from(51, 203000000), 250);
	assert_int_equal(hz_from(20, 200500000), 100);
	assert_int_equal(hz_from(199, 200000000), 1000);
	assert_int_equal(hz_from(0, 200000000), 1);
	assert_int_equal(hz_measure(&hz), 0);
	assert_true(hz >= 24 && hz <= 1200);
}

#define C(sentence, func)                                                                                              \
	{                                                                                                              \
		sentence, func, set_up, tear_down, NULL                                                                \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		C("a folder has one agent, and detach is refused while it lives", one_agent_a_folder),
		C("the next agent adopts maps, secrets and capacity", adoption_keeps_maps),
		C("the sweeper runs after each load", sweeper_runs),
		C("pins of another layout version are refused and can be removed", foreign_layout_refused),
		C("a half pinned folder is made anew, one with a hole is refused", half_pinned_made_anew),
		C("a pin folder outside a bpf file system is refused", no_bpffs_refused),
		C("a missing capability is named", missing_capability_named),
		C("auto on veth is TC alone", auto_on_veth_is_tc),
		C("links are updated in place, and taken off when the mode changes", links_updated_in_place),
		C("interfaces that the configuration no longer names are let go", unnamed_interfaces_let_go),
		C("a replaced interface gets new links", replaced_interface),
		C("someone else's XDP program is left alone", foreign_xdp_respected),
		C("detach removes programs and pins", remove_takes_all),
		C("preflight names what is wrong and what to do", preflight_names_what_is_wrong),
		C("the kernel's clock rate is measured", hz_is_one_that_kernels_have),
	};

	pinned_enter_namespace();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
