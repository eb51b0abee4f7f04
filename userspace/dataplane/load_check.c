/* SPDX-License-Identifier: MIT */
#include "load_check.h"
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <cap-ng.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

static void append(char *buf, size_t size, const char *name)
{
	size_t n = strlen(buf);

	(void)snprintf(buf + n, size - n, "%s%s", n ? ", " : "", name);
}

void load_check_capabilities(char *buf, size_t size)
{
	buf[0] = 0;
	if (capng_get_caps_process()) {
		append(buf, size, "(the process's capabilities cannot be read)");
		return;
	}
	/* CAP_SYS_ADMIN contains the two that were split from it */
	if (!capng_have_capability(CAPNG_EFFECTIVE, CAP_SYS_ADMIN)) {
		if (!capng_have_capability(CAPNG_EFFECTIVE, CAP_BPF))
			append(buf, size, "CAP_BPF");
		if (!capng_have_capability(CAPNG_EFFECTIVE, CAP_PERFMON))
			append(buf, size, "CAP_PERFMON");
	}
	if (!capng_have_capability(CAPNG_EFFECTIVE, CAP_NET_ADMIN))
		append(buf, size, "CAP_NET_ADMIN");
}

void load_check_features(char *buf, size_t size)
{
	static const struct {
		enum bpf_func_id id;
		enum bpf_prog_type type;
		const char *name;
	} helpers[] = {
		{BPF_FUNC_timer_init, BPF_PROG_TYPE_SCHED_CLS, "bpf_timer_init (Linux 5.15)"},
		{BPF_FUNC_jiffies64, BPF_PROG_TYPE_XDP, "bpf_jiffies64 (Linux 5.5)"},
		{BPF_FUNC_fib_lookup, BPF_PROG_TYPE_XDP, "bpf_fib_lookup (Linux 4.18)"},
		{BPF_FUNC_redirect_neigh, BPF_PROG_TYPE_SCHED_CLS, "bpf_redirect_neigh (Linux 5.10)"},
	};
	struct utsname host;

	buf[0] = 0;
	/* the flow table relies on x86's order of loads and stores */
	if (uname(&host) || strcmp(host.machine, "x86_64"))
		append(buf, size, "an x86-64 processor");
	if (libbpf_probe_bpf_map_type(BPF_MAP_TYPE_RINGBUF, NULL) == 0)
		append(buf, size, "BPF ring buffer (Linux 5.8)");
	for (size_t i = 0; i < sizeof(helpers) / sizeof(helpers[0]); i++)
		if (libbpf_probe_bpf_helper(helpers[i].type, helpers[i].id, NULL) == 0)
			append(buf, size, helpers[i].name);
}
