/* SPDX-License-Identifier: MIT */
/* Opening, names of services, and the list of services. */
#include "inspect.h"
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "../base/addr.h"
#include "../base/cleanup.h"
#include "../base/clock.h"
#include "../base/json.h"
#include "inspect_private.h"

struct inspect *inspect_open(const char *pin_dir, char *why, size_t why_size)
{
	struct inspect *i = calloc(1, sizeof(*i));
	uint32_t layout = 0;
	int err = i ? maps_open(pin_dir, false, &i->own, &layout) : -ENOMEM;

	if (!err) {
		i->maps = &i->own;
		return i;
	}
	free(i);
	if (err == -ENOENT)
		(void)snprintf(why, why_size, "nothing is pinned in %s", pin_dir);
	else if (err == -EPROTO && layout == SY_LAYOUT_VERSION)
		(void)snprintf(why, why_size, "%s is incomplete or of another shape; remove it with `steelyard detach`",
			       pin_dir);
	else if (err == -EPROTO)
		(void)snprintf(why, why_size, "%s has layout version %u, this program reads %u", pin_dir, layout,
			       SY_LAYOUT_VERSION);
	else
		(void)snprintf(why, why_size, "cannot open the maps in %s: %s", pin_dir, strerror(-err));
	errno = -err;
	return NULL;
}

struct inspect *inspect_over(struct maps *maps)
{
	struct inspect *i = calloc(1, sizeof(*i));

	if (i)
		i->maps = maps;
	return i;
}

void inspect_close(struct inspect *i)
{
	if (!i)
		return;
	if (i->maps == &i->own)
		maps_close(&i->own);
	for (uint32_t id = 0; i->names && id < SY_MAX_SERVICES; id++)
		free(i->names[id]);
	free(i->names);
	free(i->infos);
	free(i->ids);
	free(i);
}

/* ---- names ---- */

static const struct sy_service_info *info_of(const struct inspect *i, size_t k)
{
	return &i->infos[k];
}

/* By group and name, then registry: those that could be confused are neighbours. */
static int compare_infos(const void *a, const void *b, void *ctx)
{
	const struct sy_service_info *x = info_of(ctx, *(const uint32_t *)a), *y = info_of(ctx, *(const uint32_t *)b);
	int c = strcmp(x->group, y->group);

	if (!c)
		c = strcmp(x->name, y->name);
	return c ? c : strcmp(x->registry, y->registry);
}

static char *name_format(const struct sy_service_info *s, bool with_registry, bool with_ns)
{
	char *text = NULL;
	int n = asprintf(&text, "%s%s%s%s%s@@%s", with_registry ? s->registry : "", with_registry ? "/" : "",
			 with_ns ? s->ns : "", with_ns ? "/" : "", s->group, s->name);

	return n < 0 ? NULL : text;
}

static bool same_name(const struct sy_service_info *a, const struct sy_service_info *b)
{
	return !strcmp(a->group, b->group) && !strcmp(a->name, b->name);
}

static int make_names(struct inspect *i)
{
	_cleanup_free_ uint32_t *order = calloc(i->n_ids + 1, sizeof(*order));

	if (!order)
		return -ENOMEM;
	for (uint32_t k = 0; k < i->n_ids; k++)
		order[k] = k;
	qsort_r(order, i->n_ids, sizeof(*order), compare_infos, i);
	for (size_t k = 0; k < i->n_ids; k++) {
		const struct sy_service_info *s = info_of(i, order[k]);
		bool ambiguous = false, within = false;

		for (int step = -1; step <= 1; step += 2) {
			const struct sy_service_info *other;

			if (k + (size_t)step >= i->n_ids)
				continue;
			other = info_of(i, order[k + (size_t)step]);
			ambiguous |= same_name(s, other);
			within |= same_name(s, other) && !strcmp(s->registry, other->registry);
		}
		i->names[i->ids[order[k]]] = name_format(s, ambiguous, within);
		if (!i->names[i->ids[order[k]]])
			return -ENOMEM;
	}
	return 0;
}

int inspect_names(struct inspect *i)
{
	size_t n = 0;

	if (i->names)
		return 0;
	for (uint32_t id = 0; id < SY_MAX_SERVICES; id++)
		n += i->maps->services[id].used;
	i->names = calloc(SY_MAX_SERVICES, sizeof(*i->names));
	i->ids = calloc(n + 1, sizeof(*i->ids));
	i->infos = calloc(n + 1, sizeof(*i->infos));
	if (!i->names || !i->ids || !i->infos)
		return -ENOMEM;
	for (uint32_t id = 0; id < SY_MAX_SERVICES && i->n_ids < n; id++)
		if (i->maps->services[id].used &&
		    bpf_map_lookup_elem(i->maps->fd_service_info, &id, &i->infos[i->n_ids]) == 0)
			i->ids[i->n_ids++] = id;
	return make_names(i);
}

char *inspect_service_name(struct inspect *i, uint32_t service)
{
	if (inspect_names(i) || service >= SY_MAX_SERVICES || !i->names[service])
		return NULL;
	return strdup(i->names[service]);
}

/* 2: one of the full forms, 1: the bare name, 0: neither */
static int name_fits(const struct sy_service_info *s, const char *text)
{
	for (unsigned form = 0; form < 3; form++) {
		_cleanup_free_ char *full = name_format(s, form > 0, form > 1);

		if (full && !strcmp(full, text))
			return 2;
	}
	return !strcmp(s->name, text);
}

int inspect_find_service(struct inspect *i, const char *text, uint32_t *ret, char *why, size_t why_size)
{
	size_t n[3] = {0}, used = 0;
	uint32_t found[3] = {0};
	int level;

	if (inspect_names(i))
		return -ENOMEM;
	for (size_t k = 0; k < i->n_ids; k++) {
		int fit = name_fits(info_of(i, k), text);

		n[fit]++;
		found[fit] = i->ids[k];
	}
	level = n[2] ? 2 : 1;
	if (n[level] == 1) {
		*ret = found[level];
		return 0;
	}
	if (!n[level]) {
		(void)snprintf(why, why_size, "%s: no such service", text);
		return -ENOENT;
	}
	used = (size_t)snprintf(why, why_size, "%s: more than one service:", text);
	for (size_t k = 0; k < i->n_ids && used < why_size; k++)
		if (name_fits(info_of(i, k), text) == level)
			used += (size_t)snprintf(why + used, why_size - used, " %s", i->names[i->ids[k]]);
	return -EEXIST;
}

/* ---- services ---- */

void inspect_endpoint(const __be32 addr, __be16 port, char *buf, size_t size)
{
	char text[INET_ADDRSTRLEN] = "";

	(void)inet_ntop(AF_INET, &addr, text, sizeof(text));
	(void)snprintf(buf, size, "%s:%u", text, ntohs(port));
}

static cJSON *listen_add(cJSON *object)
{
	return cJSON_AddArrayToObject(object, "listen");
}

/* Every listener into its service's list; lists[id] NULL: not shown. */
static void listeners_list(const struct inspect *i, cJSON **lists)
{
	struct sy_listener_key key, *at = NULL;
	struct sy_listener value;

	/* bounded: a walk over a hash that changes may begin again */
	for (uint32_t n = 0; n < 2 * SY_MAX_LISTENERS && bpf_map_get_next_key(i->maps->fd_listeners4, at, &key) == 0;
	     n++) {
		char endpoint[32], text[40];

		at = &key;
		if (bpf_map_lookup_elem(i->maps->fd_listeners4, &key, &value) || value.service >= SY_MAX_SERVICES ||
		    !lists[value.service])
			continue;
		inspect_endpoint(key.addr, key.port, endpoint, sizeof(endpoint));
		(void)snprintf(text, sizeof(text), "%s/%s", endpoint, key.proto == IPPROTO_UDP ? "udp" : "tcp");
		(void)cJSON_AddItemToArray(lists[value.service], cJSON_CreateString(text));
	}
}

void inspect_sum_backend(const struct inspect *i, uint32_t id, struct inspect_sums *sums)
{
	for (uint32_t cpu = 0; cpu < i->maps->config->n_cpus; cpu++) {
		const struct sy_backend_count *c = &i->maps->counters[(size_t)cpu * SY_MAX_BACKENDS + id];

		sums->connections += c->connections;
		sums->packets += c->packets;
		sums->bytes += c->bytes;
	}
	sums->active += i->maps->loads[id].active;
}

static struct inspect_sums *sum_services(const struct inspect *i)
{
	struct inspect_sums *sums = calloc(SY_MAX_SERVICES, sizeof(*sums));

	for (uint32_t id = 0; sums && id < SY_MAX_SERVICES; id++) {
		sums[id].connections = i->maps->services[id].gone_connections;
		sums[id].packets = i->maps->services[id].gone_packets;
		sums[id].bytes = i->maps->services[id].gone_bytes;
	}
	for (uint32_t id = 1; sums && id < SY_MAX_BACKENDS; id++)
		if (inspect_backend_in_use(i, id) && i->maps->backends[id].service < SY_MAX_SERVICES)
			inspect_sum_backend(i, id, &sums[i->maps->backends[id].service]);
	return sums;
}

static const char *source_name(uint32_t source)
{
	switch (source) {
	case SY_SOURCE_LIVE:
		return "live";
	case SY_SOURCE_DISK:
		return "disk";
	case SY_SOURCE_HELD:
		return "held";
	default:
		return "none";
	}
}

static void add_service(struct inspect *i, cJSON *out, uint32_t id, const struct inspect_sums *sums, cJSON **lists)
{
	const struct sy_service *s = &i->maps->services[id];
	uint64_t now_ns = clock_realtime_ns();
	cJSON *o = cJSON_CreateObject();

	(void)cJSON_AddStringToObject(o, "service", i->names[id]);
	lists[id] = listen_add(o);
	(void)cJSON_AddStringToObject(o, "mode", s->mode == SY_MODE_FULL_NAT ? "full-nat" : "unknown");
	(void)cJSON_AddStringToObject(o, "algorithm",
				      s->algorithm == SY_ALG_WEIGHTED_RANDOM ? "weighted-random" : "unknown");
	(void)json_add_u64(o, "backends", s->n_backends);
	(void)json_add_u64(o, "eligible", SY_TABLE_LEN(s->table));
	(void)json_add_u64(o, "generation", s->generation);
	(void)json_add_u64(o, "connections", sums->connections);
	(void)json_add_u64(o, "active", sums->active);
	(void)json_add_u64(o, "packets", sums->packets);
	(void)json_add_u64(o, "bytes", sums->bytes);
	(void)cJSON_AddStringToObject(o, "source", source_name(s->source));
	/* whole milliseconds; nothing has come from the registry yet: 0 */
	(void)json_add_double(
		o, "age_s",
		s->since_ns && now_ns > s->since_ns ? (double)((now_ns - s->since_ns) / NS_PER_MS) / 1000.0 : 0);
	(void)json_add_double(o, "apply_us", (double)s->apply_ns / 1000.0);
	(void)cJSON_AddItemToArray(out, o);
}

cJSON *inspect_services(struct inspect *i)
{
	_cleanup_free_ struct inspect_sums *sums = NULL;
	_cleanup_free_ cJSON **lists = calloc(SY_MAX_SERVICES, sizeof(cJSON *));
	cJSON *out;

	if (!lists || inspect_names(i))
		return NULL;
	sums = sum_services(i);
	out = sums ? cJSON_CreateArray() : NULL;
	for (size_t k = 0; out && k < i->n_ids; k++)
		add_service(i, out, i->ids[k], &sums[i->ids[k]], lists);
	if (out)
		listeners_list(i, lists);
	return out;
}
