// SPDX-License-Identifier: MIT
/* From a change in a file registry to the map, through an agent that runs as it does in service: the bench puts a file
 * in place by rename(2) and looks at the table word of the service in the pinned map until it changes.
 *
 *   rename ─▶ inotify ─▶ read, parse ─▶ choose ─▶ write ─▶ table word ◀─ polled
 *   └──────────────────────── measured ──────────────────────────┘
 *
 * Each change is waited for. For the delays there is a rest between them, so that none waits for the agent's 1 ms of
 * merging; for the rate there is none. */
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include "base/clock.h"
#include "dataplane/load.h"
#include "listing.h"
#include "rig.h"

#define N_CHANGES  200
#define REST_US	   3000
#define RATE_NS	   (2 * NS_PER_S)
#define TIMEOUT_NS (20 * NS_PER_S)

static char dir[64], pins[64];
static pid_t agent;
static pid_t bench;
static struct maps maps;

static void clean(void)
{
	char why[256], command[128];

	if (getpid() != bench)
		return;
	if (agent > 0) {
		(void)kill(agent, SIGTERM);
		for (int i = 0; i < 100 && waitpid(agent, NULL, WNOHANG) == 0; i++)
			(void)usleep(100000);
		(void)kill(agent, SIGKILL);
	}
	(void)load_remove(pins, true, why, sizeof(why));
	(void)snprintf(command, sizeof(command), "rm -rf %s", dir);
	if (system(command))
		fprintf(stderr, "bench: %s is left\n", dir);
}

__attribute__((format(printf, 1, 2), noreturn)) static void fail(const char *format, ...)
{
	char command[128];
	va_list ap;

	va_start(ap, format);
	printf("bench: ");
	vprintf(format, ap);
	printf("; the agent's last words:\n");
	va_end(ap);
	(void)snprintf(command, sizeof(command), "tail -5 %s/agent.log", dir);
	exit(system(command) ? 2 : 1);
}

static FILE *open_file(const char *name)
{
	char path[128];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	if (!f)
		fail("cannot write %s: %m", path);
	return f;
}

static void write_config(void)
{
	FILE *f = open_file("steelyard.yaml");

	fprintf(f,
		"interfaces: [{ name: cl, attach: tc }]\n"
		"registries: [{ name: lab, kind: file, path: %s/services.d }]\n"
		"pin_dir: %s\nstate_dir: %s/state\ncontrol_socket: %s/control.sock\nflows: 65536\n"
		"services:\n"
		"  - { name: few, listen: [\"10.0.0.100:80\"] }\n"
		"  - { name: many, listen: [\"10.0.0.100:81\"] }\n",
		dir, pins, dir, dir);
	fclose(f);
}

static void start_agent(void)
{
	char path[256], config[128], log[128];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 32);
	char *slash;

	if (n < 0)
		fail("/proc/self/exe: %m");
	path[n] = '\0';
	slash = strrchr(path, '/');
	strcpy(slash, "/../steelyardd");
	(void)snprintf(config, sizeof(config), "%s/steelyard.yaml", dir);
	(void)snprintf(log, sizeof(log), "%s/agent.log", dir);
	agent = fork();
	if (agent < 0)
		fail("fork: %m");
	if (agent)
		return;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (freopen(log, "w", stdout) && freopen(log, "a", stderr))
		(void)execl(path, path, "--config", config, (char *)NULL);
	_exit(127);
}

/* Two lists that differ, as files to put in place by turns. */
static void write_lists(const char *service, size_t n, bool every)
{
	for (unsigned salt = 0; salt < 2; salt++) {
		char name[64], *text = listing(service, n, salt, every);
		FILE *f;

		if (!text)
			fail("out of memory");
		(void)snprintf(name, sizeof(name), "%s.%u", service, salt);
		f = open_file(name);
		fputs(text, f);
		fclose(f);
		free(text);
	}
}

/* Returns the moment before it is there. */
static uint64_t put_in_place(const char *service, unsigned salt)
{
	char from[128], part[128], to[128];
	uint64_t now;

	(void)snprintf(from, sizeof(from), "%s/%s.%u", dir, service, salt);
	(void)snprintf(part, sizeof(part), "%s/part", dir);
	(void)snprintf(to, sizeof(to), "%s/services.d/%s.json", dir, service);
	if (link(from, part))
		fail("link: %m");
	now = clock_monotonic_ns();
	if (rename(part, to))
		fail("rename: %m");
	return now;
}

static uint64_t table_word(uint32_t id)
{
	return __atomic_load_n(&maps.services[id].table, __ATOMIC_ACQUIRE);
}

static void wait_for_change(uint32_t id, uint64_t old)
{
	uint64_t until = clock_monotonic_ns() + TIMEOUT_NS;

	while (table_word(id) == old) {
		if (clock_monotonic_ns() > until)
			fail("a changed file did not reach the map");
		(void)sched_yield();
	}
}

static void wait_for_maps(void)
{
	uint64_t until = clock_monotonic_ns() + TIMEOUT_NS;
	uint32_t layout;

	while (maps_open(pins, false, &maps, &layout)) {
		if (waitpid(agent, NULL, WNOHANG) != 0)
			fail("the agent ended");
		if (clock_monotonic_ns() > until)
			fail("the agent pinned no maps");
		(void)usleep(10000);
	}
}

/* The service's id, once its table has n members. */
static uint32_t wait_for_table(const char *service, size_t n)
{
	uint64_t until = clock_monotonic_ns() + TIMEOUT_NS;

	for (; clock_monotonic_ns() < until; (void)usleep(10000)) {
		for (uint32_t id = 0; id < 16; id++) {
			struct sy_service_info info;

			if (bpf_map_lookup_elem(maps.fd_service_info, &id, &info) == 0 && !strcmp(info.name, service) &&
			    SY_TABLE_LEN(table_word(id)) == n)
				return id;
		}
	}
	fail("the table of %s did not come to %zu members", service, n);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double percentile(const double *sorted, unsigned p)
{
	return sorted[(N_CHANGES - 1) * p / 100];
}

static void delays(const char *service, uint32_t id, const char *what)
{
	double all[N_CHANGES], own[N_CHANGES];

	for (unsigned i = 0; i < N_CHANGES; i++) {
		uint64_t old, from;

		(void)usleep(REST_US);
		old = table_word(id);
		from = put_in_place(service, (i + 1) & 1);
		wait_for_change(id, old);
		all[i] = (double)(clock_monotonic_ns() - from) / 1e3;
		/* stored a little after the table word */
		(void)usleep(REST_US);
		own[i] = (double)maps.services[id].apply_ns / 1e3;
	}
	qsort(all, N_CHANGES, sizeof(*all), by_value);
	qsort(own, N_CHANGES, sizeof(*own), by_value);
	printf("  %s: rename to map p50 %.0f us, p99 %.0f us; of it from the list read to the map p50 %.0f us\n", what,
	       percentile(all, 50), percentile(all, 99), percentile(own, 50));
}

static void rate(const char *service, uint32_t id, const char *what)
{
	uint64_t from = clock_monotonic_ns(), n = 0;

	for (; clock_monotonic_ns() - from < RATE_NS; n++) {
		uint64_t old = table_word(id);

		(void)put_in_place(service, (n + 1) & 1);
		wait_for_change(id, old);
	}
	printf("  %s: %.0f changes a second, each waited for\n", what,
	       (double)n * 1e9 / (double)(clock_monotonic_ns() - from));
}

static void measure(const char *service, size_t n, const char *what)
{
	uint32_t id = wait_for_table(service, n);

	delays(service, id, what);
	rate(service, id, what);
}

/* A line of /proc/PID/status in kB. */
static unsigned long status_kb(const char *field)
{
	char path[64], line[128];
	unsigned long kb = 0;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", agent);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, field, strlen(field)))
			kb = strtoul(line + strlen(field) + 1, NULL, 10);
	if (f)
		fclose(f);
	return kb;
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	rig_enter_namespace();
	bench = getpid();
	(void)snprintf(dir, sizeof(dir), "/tmp/sy-bench-XXXXXX");
	(void)snprintf(pins, sizeof(pins), "/sys/fs/bpf/sy_bench_%d", bench);
	if (!mkdtemp(dir))
		fail("mkdtemp: %m");
	(void)atexit(clean);
	rig_shell("mkdir %s/services.d", dir);
	write_config();
	write_lists("few", 100, true);
	write_lists("many", 5000, false);
	start_agent();
	wait_for_maps();
	printf("file registry to map, through a running agent, %d changes each\n", N_CHANGES);
	(void)put_in_place("few", 0);
	(void)put_in_place("many", 0);
	measure("few", 100, "100 instances, every one changed");
	measure("many", 5000, "5,000 instances, one changed");
	printf("  the agent with 5,100 backends: %.1f MB resident, of which %.1f MB its own and the rest programs' "
	       "files and maps\n\n",
	       (double)status_kb("VmRSS:") / 1e3, (double)status_kb("RssAnon:") / 1e3);
	maps_close(&maps);
	return 0;
}
