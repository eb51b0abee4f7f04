/* SPDX-License-Identifier: MIT */
#include "status.h"
#include <stdio.h>
#include <string.h>
#include "../base/clock.h"
#include "../base/json.h"
#include "../dataplane/inspect.h"

static void warn(cJSON *warnings, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void warn(cJSON *warnings, const char *format, ...)
{
	char text[768];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	(void)cJSON_AddItemToArray(warnings, cJSON_CreateString(text));
}

/* From what was attached, not from the kernel: naming a program by its id takes a privilege that the agent has given
 * up. */
static void add_interfaces(cJSON *status, cJSON *warnings, const struct pipeline *p)
{
	cJSON *list = cJSON_AddArrayToObject(status, "interfaces");

	for (size_t i = 0; i < p->ports.n; i++) {
		const struct port *port = &p->ports.list[i];
		bool xdp = port->kinds & ATTACH_XDP_NATIVE, tc = port->kinds & (ATTACH_TCX | ATTACH_CLSACT);
		cJSON *entry = cJSON_CreateObject(), *programs;

		(void)cJSON_AddItemToArray(list, entry);
		(void)cJSON_AddStringToObject(entry, "name", port->name);
		(void)cJSON_AddStringToObject(entry, "attach", !port->ifindex ? "waiting" : xdp ? "native" : "tc");
		programs = cJSON_AddArrayToObject(entry, "programs");
		if (xdp)
			(void)cJSON_AddItemToArray(programs, cJSON_CreateString("steelyard_xdp"));
		if (tc)
			(void)cJSON_AddItemToArray(programs, cJSON_CreateString("steelyard_tc"));
		if (!port->ifindex)
			warn(warnings, "interface %s is not attached, trying again each second", port->name);
	}
}

static void add_registries(cJSON *status, cJSON *warnings, const struct pipeline *p)
{
	cJSON *list = cJSON_AddArrayToObject(status, "registries");

	for (size_t i = 0; i < p->n_sources; i++) {
		const struct source *source = p->sources[i];
		cJSON *entry = cJSON_CreateObject();
		struct registry_status now = {0};
		char since[32];

		registry_status(source->registry, &now);
		(void)cJSON_AddItemToArray(list, entry);
		(void)cJSON_AddStringToObject(entry, "name", source->name);
		(void)cJSON_AddStringToObject(entry, "kind",
					      source->config->kind == CONFIG_REGISTRY_FILE ? "file" : "nacos");
		(void)cJSON_AddStringToObject(entry, "state", registry_state_name(now.state));
		(void)cJSON_AddStringToObject(entry, "server", now.server ? now.server : "");
		(void)cJSON_AddStringToObject(entry, "since", time_format(now.since_ns, since, sizeof(since)));
		(void)json_add_u64(entry, "since_s", (clock_realtime_ns() - now.since_ns) / NS_PER_S);
		(void)json_add_u64(entry, "services", now.n_services);
		(void)cJSON_AddStringToObject(entry, "error", now.last_error ? now.last_error : "");
		if (now.state != REGISTRY_LIVE)
			warn(warnings, "registry %s is %s%s%s", source->name, registry_state_name(now.state),
			     now.last_error && *now.last_error ? ": " : "", now.last_error ? now.last_error : "");
	}
}

static void add_hold(cJSON *holds, cJSON *warnings, const struct service *s, const char *name)
{
	uint64_t now = clock_monotonic_ns(), left = s->hold.until_ns > now ? s->hold.until_ns - now : 0;
	cJSON *entry = cJSON_CreateObject();

	(void)cJSON_AddItemToArray(holds, entry);
	(void)cJSON_AddStringToObject(entry, "service", name);
	(void)json_add_u64(entry, "applied", s->hold.applied ? s->hold.applied->n_instances : 0);
	(void)json_add_u64(entry, "listed", s->hold.held->n_instances);
	(void)json_add_double(entry, "left_s", (double)left / NS_PER_S);
	warn(warnings, "%s: the registry lists %zu instances where it listed %zu: held", name,
	     s->hold.held->n_instances, s->hold.applied ? s->hold.applied->n_instances : 0);
}

static void add_services(cJSON *status, cJSON *warnings, const struct pipeline *p, struct inspect *inspect)
{
	static const char *const sources[] = {
		[SY_SOURCE_NONE] = "none",
		[SY_SOURCE_LIVE] = "live",
		[SY_SOURCE_DISK] = "disk",
		[SY_SOURCE_HELD] = "held",
	};
	cJSON *list = cJSON_AddArrayToObject(status, "services"), *holds = cJSON_AddArrayToObject(status, "holds");

	for (size_t i = 0; i < p->n_services; i++) {
		const struct service *s = p->services[i];
		_cleanup_free_ char *full = s->published && inspect ? inspect_service_name(inspect, s->id) : NULL;
		const char *name = full ? full : s->text;
		const struct sy_service *record = s->published ? &p->maps->services[s->id] : NULL;
		cJSON *entry = cJSON_CreateObject();

		(void)cJSON_AddItemToArray(list, entry);
		(void)cJSON_AddStringToObject(entry, "service", name);
		(void)cJSON_AddStringToObject(entry, "source", record ? sources[record->source & 3] : "none");
		(void)json_add_double(entry, "apply_us", record ? (double)record->apply_ns / 1000 : 0);
		(void)json_add_u64(entry, "holds", s->hold.n_holds);
		(void)json_add_u64(entry, "duplicates", s->n_duplicates);
		if (s->hold.held)
			add_hold(holds, warnings, s, name);
		if (!record)
			warn(warnings, "%s: not served, see the log", name);
		else if (!s->answered && !s->hold.held)
			warn(warnings, "%s: the registry has not answered yet", name);
		else if (s->answered && !s->n_eligible)
			warn(warnings, "%s: no eligible backend", name);
		if (s->fell_back)
			warn(warnings, "%s: nobody is left in cluster %s, every cluster is used", name,
			     s->config->cluster);
		if (s->n_duplicates)
			warn(warnings, "%s: %zu duplicate instances are left out", name, s->n_duplicates);
		if (s->n_no_path)
			warn(warnings, "%s: no route or source address towards %zu instances", name, s->n_no_path);
		if (s->n_bad + s->n_loops)
			warn(warnings, "%s: %zu instances with a bad address or weight are left out", name,
			     s->n_bad + s->n_loops);
	}
}

cJSON *status_make(const struct pipeline *p)
{
	_cleanup_json_ cJSON *status = cJSON_CreateObject(), *warnings = cJSON_CreateArray();
	struct inspect *inspect = inspect_over(p->maps);
	cJSON *flows = inspect ? inspect_flow_counts(inspect) : NULL, *features;

	(void)cJSON_AddStringToObject(status, "version", SY_VERSION);
	(void)json_add_u64(status, "uptime_s", (clock_monotonic_ns() - p->started_ns) / NS_PER_S);
	add_interfaces(status, warnings, p);
	add_registries(status, warnings, p);
	features = cJSON_AddObjectToObject(status, "features");
	(void)cJSON_AddBoolToObject(features, "tcx", p->features.tcx);
	(void)cJSON_AddBoolToObject(features, "bpf_loop", p->features.bpf_loop);
	(void)cJSON_AddBoolToObject(features, "bpf_timer", p->features.bpf_timer);
	if (flows)
		(void)cJSON_AddItemToObject(status, "flows", flows);
	add_services(status, warnings, p, inspect);
	(void)cJSON_AddItemToObject(status, "warnings", TAKE_PTR(warnings));
	inspect_close(inspect);
	return TAKE_PTR(status);
}
