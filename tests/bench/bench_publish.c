// SPDX-License-Identifier: MIT
/* From a registry's snapshot to the maps: parsing, choosing, writing; what one change in a large service costs; the memory of
 * it all. The maps are real ones, loaded as the agent loads them but not pinned. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include "agent/setup.h"
#include "base/clock.h"
#include "base/json.h"
#include "dataplane/publish.h"
#include "listing.h"
#include "model/hold.h"
#include "model/service_info.h"
#include "rig.h"
#include "steelyard.skel.h"

#define ROUNDS 21
#define N_GROUPS 65536U /* as for 43,690 flows */

static struct rig rig;

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(double *v)
{
	qsort(v, ROUNDS, sizeof(*v), by_value);
	return v[ROUNDS / 2];
}

static struct snapshot *parse(const char *text)
{
	_cleanup_json_ cJSON *json = json_parse(text, strlen(text));
	struct snapshot *s = NULL;

	if (!json || service_info_parse(json, &s, NULL))
		abort();
	return s;
}

static void publish_snapshot(struct publish *p, uint32_t service, const struct snapshot *s, uint64_t received_ns,
			     struct publish_stats *ret)
{
	const struct selector_rules rules = { .cluster_fallback_all = true, .family_v4 = true };
	struct selection sel;

	if (selector_run(s, &rules, &sel))
		abort();
	if (publish_selection(p, service, &sel, SY_DRAINING, SY_SOURCE_LIVE, received_ns, clock_realtime_ns(), ret))
		abort();
	selection_done(&sel);
}

static void target(const char *what, double measured_us, double limit_us)
{
	printf("target: %-62s %6.0f  <= %-5.0f %s\n", what, measured_us, limit_us, measured_us <= limit_us ? "reached" : "missed");
}

static uint32_t add_service(struct publish *p, const char *name, const char *listen)
{
	const struct service_key key = { "main", "public", "DEFAULT_GROUP", name };
	struct endpoint at;
	struct service_settings settings = { .listen = &at, .n_listen = 1 };
	uint32_t id;

	if (endpoint_parse(listen, &at) || publish_service(p, &key, &settings, &id))
		abort();
	return id;
}

static void measure(struct publish *p, const char *name, const char *listen, size_t n, bool every, double limit_us)
{
	uint32_t service = add_service(p, name, listen);
	double parsing[ROUNDS], writing[ROUNDS], all[ROUNDS], nothing[ROUNDS];
	struct publish_stats stats;
	struct hold hold;
	char what[96];

	hold_init(&hold, 15 * NS_PER_S);
	for (int i = -1; i < ROUNDS; i++) { /* the first makes the backends */
		char *text = listing("orders", n, (unsigned)(i + 1), every);
		uint64_t t0 = clock_monotonic_ns(), t1, t2, t3;
		struct snapshot *s = parse(text);

		t1 = clock_monotonic_ns();
		/* as the agent does it: compare with the last list, hold, choose, write */
		if ((hold.applied && snapshot_equal(hold.applied, s)) || hold_push(&hold, s, t1) != s) {
			printf("bench: a changed snapshot was not applied\n");
			exit(1);
		}
		publish_snapshot(p, service, s, t0, &stats);
		t2 = clock_monotonic_ns();
		if (!stats.table_written) {
			printf("bench: a changed snapshot wrote no table\n");
			exit(1);
		}
		all[i < 0 ? 0 : i] = (double)stats.apply_ns / 1e3;
		publish_snapshot(p, service, s, t0, &stats);
		t3 = clock_monotonic_ns();
		if (stats.table_written) {
			printf("bench: an unchanged snapshot wrote a table\n");
			exit(1);
		}
		hold_tidy(&hold);
		free(text);
		publish_tick(p, clock_realtime_ns());
		if (i < 0) {
			printf("  %zu instances, first seen: parse %.0f us, choose and write %.0f us\n", n, (double)(t1 - t0) / 1e3,
			       (double)(t2 - t1) / 1e3);
			continue;
		}
		parsing[i] = (double)(t1 - t0) / 1e3;
		writing[i] = (double)(t2 - t1) / 1e3;
		nothing[i] = (double)(t3 - t2) / 1e3;
	}
	hold_done(&hold);
	printf("  %zu instances, %s changed: parse %.0f us, choose and write %.0f us, text received to map %.0f us, unchanged %.0f us\n",
	       n, every ? "every one" : "one", median(parsing), median(writing), median(all), median(nothing));
	snprintf(what, sizeof(what), "parsed snapshot to map, us, %s", every ? "100 instances" : "one changed in 5,000");
	target(what, median(writing), limit_us);
}

/* How many changed snapshots of 100 instances a second, parse included. */
static void rate(struct publish *p, uint32_t service)
{
	char *text[2] = { listing("orders", 100, 1, true), listing("orders", 100, 2, true) };
	uint64_t from = clock_monotonic_ns(), n = 0;
	struct publish_stats stats;

	for (; clock_monotonic_ns() - from < NS_PER_S; n++) {
		struct snapshot *s = parse(text[n & 1]);

		publish_snapshot(p, service, s, from, &stats);
		snapshot_free(s);
		publish_tick(p, clock_realtime_ns());
	}
	printf("  updates of 100 instances, parse included: %" PRIu64 " a second\n", n);
	free(text[0]);
	free(text[1]);
}

static uint64_t map_bytes(int fd)
{
	char path[64];
	unsigned long long bytes = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	f = fopen(path, "r");
	for (char line[128]; f && fgets(line, sizeof(line), f);)
		(void)sscanf(line, "memlock: %llu", &bytes);
	if (f)
		fclose(f);
	return bytes;
}

static void memory(struct bpf_object *object)
{
	struct rusage usage;
	struct bpf_map *map;
	uint64_t sum = 0;

	printf("memory\n");
	bpf_object__for_each_map(map, object) {
		uint64_t bytes = map_bytes(bpf_map__fd(map));

		sum += bytes;
		if (bytes >= 1 << 20)
			printf("  %-16s %8.1f MB\n", bpf_map__name(map), (double)bytes / 1e6);
	}
	getrusage(RUSAGE_SELF, &usage);
	printf("  %-16s %8.1f MB for %u flows, of which a flow takes %u bytes\n", "all maps", (double)sum / 1e6,
	       rig.maps.config->flows, (unsigned)(SY_LINES_PER_FLOW * sizeof(struct sy_line)));
	printf("  %-16s %8.1f MB at most, memory-mapped maps that were touched included\n\n", "this process", (double)usage.ru_maxrss / 1e3);
}

int main(void)
{
	struct steelyard_bpf *skel;
	struct publish *p;

	setvbuf(stdout, NULL, _IOLBF, 0);
	setup_memory();
	rig_enter_namespace();
	skel = steelyard_bpf__open();
	rig_load(&rig, skel ? skel->obj : NULL, N_GROUPS, 0);
	p = publish_new(&rig.maps);
	if (!p)
		abort();
	printf("snapshot to map\n");
	measure(p, "orders", "10.0.0.100:80", 100, true, 200);
	measure(p, "many", "10.0.0.100:81", 5000, false, 2000);
	rate(p, add_service(p, "orders", "10.0.0.100:80"));
	printf("\n");
	memory(skel->obj);
	publish_free(p);
	rig_unload(&rig);
	steelyard_bpf__destroy(skel);
	return 0;
}
