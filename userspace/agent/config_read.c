/* SPDX-License-Identifier: MIT */
#include "config_read.h"
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include "../base/clock.h"
#include "../base/cleanup.h"
#include "config_schema.h"
#include "config_value.h"

DEFINE_CLEANUP(struct config *, config_free)

#define HOURS(n)	       ((n)*3600 * NS_PER_S)
#define MAX_DURATION_NS	       HOURS(168)
#define FIELD_LEN(type, field) (sizeof(((struct type *)0)->field) - 1)

/* while reading: the document, what is made of it, and what may be there once only */
struct reader {
	struct config_doc *d;
	struct config *c;
	struct config_seen services, listeners;
};

static const struct config_word attach_words[] = {
	{"auto", CONFIG_ATTACH_AUTO},
	{"native", CONFIG_ATTACH_NATIVE},
	{"tc", CONFIG_ATTACH_TC},
	{"generic", CONFIG_LATER},
	{0},
};
static const struct config_word foreign_words[] = {{"tc", CONFIG_FOREIGN_TC}, {"stop", CONFIG_FOREIGN_STOP}, {0}};
static const struct config_word kind_words[] = {
	{"nacos", CONFIG_REGISTRY_NACOS},
	{"file", CONFIG_REGISTRY_FILE},
	{0},
};
static const struct config_word api_words[] = {{"auto", 0}, {"grpc", 0}, {"http", CONFIG_LATER}, {0}};
static const struct config_word level_words[] = {
	{"debug", LOG_LEVEL_DEBUG},
	{"info", LOG_LEVEL_INFO},
	{"warning", LOG_LEVEL_WARNING},
	{"error", LOG_LEVEL_ERROR},
	{0},
};
static const struct config_word format_words[] = {{"text", 0}, {"json", 1}, {0}};
static const struct config_word mode_words[] = {
	{"full-nat", SY_MODE_FULL_NAT},
	{"nat", CONFIG_LATER},
	{"dsr", CONFIG_LATER},
	{"ipip", CONFIG_LATER},
	{"gue", CONFIG_LATER},
	{"socket", CONFIG_LATER},
	{0},
};
static const struct config_word algorithm_words[] = {
	{"weighted-random", SY_ALG_WEIGHTED_RANDOM},
	{"weighted-round-robin", CONFIG_LATER},
	{"random", CONFIG_LATER},
	{"round-robin", CONFIG_LATER},
	{"source-hash", CONFIG_LATER},
	{"maglev", CONFIG_LATER},
	{"least-connections", CONFIG_LATER},
	{"first", CONFIG_LATER},
	{"custom:", CONFIG_LATER},
	{0},
};
static const struct config_word fallback_words[] = {{"all", 1}, {"none", 0}, {0}};
static const struct config_word on_evict_words[] = {{"drain", 0}, {"reset", 1}, {0}};
static const struct config_word on_empty_words[] = {
	{"reset", SY_EMPTY_RESET},
	{"drop", SY_EMPTY_DROP},
	{"pass", SY_EMPTY_PASS},
	{0},
};
static const char *const timeout_names[SY_N_TIMEOUTS] = {
	[SY_T_SYN] = "syn",
	[SY_T_ESTABLISHED] = "established",
	[SY_T_HALF_CLOSED] = "half_closed",
	[SY_T_CLOSING] = "closing",
	[SY_T_RESET] = "reset",
};

static const struct config_service settings_at_first = {
	.mode = SY_MODE_FULL_NAT,
	.algorithm = SY_ALG_WEIGHTED_RANDOM,
	.cluster_fallback_all = true,
	.on_evict_probe_reset = true,
	.on_empty = SY_EMPTY_RESET,
	.hold_ns = 15 * NS_PER_S,
	.timeout_ns = {[SY_T_SYN] = 60 * NS_PER_S,
		       [SY_T_ESTABLISHED] = HOURS(2) + 240 * NS_PER_S,
		       [SY_T_HALF_CLOSED] = 300 * NS_PER_S,
		       [SY_T_CLOSING] = 30 * NS_PER_S,
		       [SY_T_RESET] = 10 * NS_PER_S},
};

/* An array for n elements, kept in the configuration at once so that config_free finds it. */
static void *list_new(struct reader *r, size_t n, size_t size)
{
	void *list = n ? calloc(n, size) : NULL;

	if (n && !list)
		r->d->no_memory = true;
	return list;
}

static void missing(struct reader *r, const struct place *p, const char *allowed)
{
	config_doc_error(r->d, p, "missing, allowed: %s", allowed);
}

static void word_at(struct reader *r, const struct place *map, const char *key, const struct config_word *words,
		    int *ret)
{
	struct place p = config_doc_key(r->d, map, key);

	config_value_word(r->d, &p, words, ret);
}

static bool flag_at(struct reader *r, const struct place *map, const char *key, const struct config_word *words,
		    bool now)
{
	int value = now;

	word_at(r, map, key, words, &value);
	return value;
}

static void interface_read(struct reader *r, const struct place *map, struct config_seen *seen)
{
	struct config_interface *i = &r->c->interfaces[r->c->n_interfaces++];
	struct place p = config_doc_key(r->d, map, "name");
	int attach = CONFIG_ATTACH_AUTO, foreign = CONFIG_FOREIGN_TC;

	if (!p.node)
		missing(r, &p, "the name of a network interface");
	config_value_text(r->d, &p, IF_NAMESIZE - 1, false, &i->name);
	if (i->name)
		config_seen_add(r->d, seen, &p, i->name);
	word_at(r, map, "attach", attach_words, &attach);
	word_at(r, map, "foreign_xdp", foreign_words, &foreign);
	i->attach = (enum config_attach)attach;
	i->foreign_xdp = (enum config_foreign_xdp)foreign;
}

static void interfaces_read(struct reader *r, const struct place *root)
{
	struct place list = config_doc_key(r->d, root, "interfaces");
	size_t n = config_doc_n_items(&list);
	struct config_seen seen = {0};

	if (!n)
		missing(r, &list, "at least one entry with a name");
	if (n >= SY_MAX_IFACES) {
		config_doc_error(r->d, &list, "%zu entries are too many, allowed: up to %d", n, SY_MAX_IFACES - 1);
		return;
	}
	r->c->interfaces = list_new(r, n, sizeof(*r->c->interfaces));
	for (size_t i = 0; r->c->interfaces && i < n; i++) {
		struct place item = config_doc_item(r->d, &list, i);

		interface_read(r, &item, &seen);
	}
	config_seen_done(r->d, &seen);
}

static void servers_read(struct reader *r, const struct place *map, struct config_registry *g)
{
	struct place list = config_doc_key(r->d, map, "servers");
	size_t n = config_doc_n_items(&list);

	if (!n)
		missing(r, &list, "at least one HOST:PORT");
	g->servers = list_new(r, n, sizeof(*g->servers));
	for (size_t i = 0; g->servers && i < n; i++) {
		struct place p = config_doc_item(r->d, &list, i);
		const char *text = config_doc_text(&p), *why = "";

		if (text && nacos_server_parse(text, &g->servers[g->n_servers], &why) >= 0)
			g->n_servers++;
		else
			config_doc_error(r->d, &p,
					 "\"%.128s\" is not a server (%s), allowed: HOST:PORT or HOST:PORT/grpc=PORT",
					 text ? text : "", why);
	}
}

static void refuse_for_kind(struct reader *r, const struct place *map, const char *key, const char *kind)
{
	struct place p = config_doc_key(r->d, map, key);

	if (p.node)
		config_doc_error(r->d, &p, "%s means nothing here, allowed: only with kind %s", key, kind);
}

static void registry_name_read(struct reader *r, const struct place *map, struct config_registry *g,
			       struct config_seen *seen)
{
	struct place p = config_doc_key(r->d, map, "name");

	if (!p.node)
		missing(r, &p, "a name for services to refer to");
	config_value_text(r->d, &p, FIELD_LEN(sy_service_info, registry), false, &g->name);
	if (!g->name)
		return;
	/* dumps print registry/GROUP@@name */
	if (strpbrk(g->name, "/@ "))
		config_doc_error(r->d, &p, "\"%s\" has a blank, / or @ in it, allowed: other characters", g->name);
	config_seen_add(r->d, seen, &p, g->name);
}

static void registry_read(struct reader *r, const struct place *map, struct config_seen *seen)
{
	struct config_registry *g = &r->c->registries[r->c->n_registries++];
	struct place p = config_doc_key(r->d, map, "kind");
	int kind = -1, api = 0;

	registry_name_read(r, map, g, seen);
	if (!p.node)
		missing(r, &p, "nacos, file");
	config_value_word(r->d, &p, kind_words, &kind);
	word_at(r, map, "api", api_words, &api);
	if (kind < 0)
		return;
	g->kind = (enum config_registry_kind)kind;
	p = config_doc_key(r->d, map, kind == CONFIG_REGISTRY_FILE ? "path" : "namespace");
	if (kind == CONFIG_REGISTRY_FILE) {
		if (!p.node)
			missing(r, &p, "the folder of the *.json files");
		config_value_text(r->d, &p, 4095, false, &g->path);
		refuse_for_kind(r, map, "servers", "nacos");
		refuse_for_kind(r, map, "namespace", "nacos");
		refuse_for_kind(r, map, "api", "nacos");
		return;
	}
	servers_read(r, map, g);
	config_value_text(r->d, &p, FIELD_LEN(sy_service_info, ns), true, &g->ns);
	refuse_for_kind(r, map, "path", "file");
	/* the public namespace has two names */
	if (!g->ns || !*g->ns) {
		free(g->ns);
		g->ns = strdup("public");
		r->d->no_memory |= !g->ns;
	}
}

static void registries_read(struct reader *r, const struct place *root)
{
	struct place list = config_doc_key(r->d, root, "registries");
	size_t n = config_doc_n_items(&list);
	struct config_seen seen = {0};

	if (!n)
		missing(r, &list, "at least one entry with a name and a kind");
	r->c->registries = list_new(r, n, sizeof(*r->c->registries));
	for (size_t i = 0; r->c->registries && i < n; i++) {
		struct place item = config_doc_item(r->d, &list, i);

		registry_read(r, &item, &seen);
	}
	config_seen_done(r->d, &seen);
}

static void snat_read(struct reader *r, const struct place *root)
{
	struct place list = config_doc_key(r->d, root, "snat_addresses"), p = config_doc_key(r->d, root, "snat_ports");
	size_t n = config_doc_n_items(&list);
	struct config_seen seen = {0};

	config_value_ports(r->d, &p, &r->c->snat_port_first, &r->c->snat_port_last);
	if (n > SY_MAX_POOL_ADDRS) {
		config_doc_error(r->d, &list, "%zu addresses are too many, allowed: up to %d", n, SY_MAX_POOL_ADDRS);
		return;
	}
	r->c->snat_addresses = list_new(r, n, sizeof(*r->c->snat_addresses));
	for (size_t i = 0; r->c->snat_addresses && i < n; i++) {
		struct addr *a = &r->c->snat_addresses[r->c->n_snat_addresses];
		char text[ADDR_TEXT_LEN];

		p = config_doc_item(r->d, &list, i);
		if (!config_value_addr(r->d, &p, a))
			continue;
		config_seen_add(r->d, &seen, &p, addr_format(a, text));
		r->c->n_snat_addresses++;
	}
	config_seen_done(r->d, &seen);
}

static void agent_read(struct reader *r, const struct place *root)
{
	struct place log = config_doc_key(r->d, root, "log"), p;
	uint64_t flows = r->c->flows;
	int level = LOG_LEVEL_INFO;

	p = config_doc_key(r->d, root, "state_dir");
	config_value_path(r->d, &p, 4000, &r->c->state_dir);
	p = config_doc_key(r->d, root, "pin_dir");
	config_value_path(r->d, &p, 4000, &r->c->pin_dir);
	p = config_doc_key(r->d, root, "control_socket");
	config_value_path(r->d, &p, FIELD_LEN(sockaddr_un, sun_path), &r->c->control_socket);
	p = config_doc_key(r->d, root, "flows");
	config_value_number(r->d, &p, SY_MIN_FLOWS, SY_MAX_FLOWS, &flows);
	r->c->flows = (uint32_t)flows;
	word_at(r, &log, "level", level_words, &level);
	r->c->log_level = (enum log_level)level;
	r->c->log_json = flag_at(r, &log, "format", format_words, false);
}

static void registry_of_service_read(struct reader *r, const struct place *map, struct config_service *s)
{
	struct place p = config_doc_key(r->d, map, "registry");
	const char *text = config_doc_text(&p);
	char names[256] = "";
	size_t used = 0;

	if (!text)
		return;
	for (size_t i = 0; i < r->c->n_registries; i++) {
		const char *name = r->c->registries[i].name;

		if (name && !strcmp(name, text)) {
			s->registry = i;
			return;
		}
		if (name && used < sizeof(names))
			used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", used ? ", " : "", name);
	}
	config_doc_error(r->d, &p, "no registry is named \"%.64s\", allowed: %s", text, names);
}

/* The keys that a service and the defaults share; s holds what they start from. */
static void settings_read(struct reader *r, const struct place *map, struct config_service *s)
{
	struct place evict = config_doc_key(r->d, map, "on_evict"), timeouts = config_doc_key(r->d, map, "timeouts"), p;
	int mode = (int)s->mode, algorithm = (int)s->algorithm, on_empty = (int)s->on_empty;

	p = config_doc_key(r->d, map, "group");
	config_value_text(r->d, &p, FIELD_LEN(sy_service_info, group), false, &s->group);
	if (p.node && s->group && strstr(s->group, "@@"))
		config_doc_error(r->d, &p, "\"%.128s\" has @@ in it, allowed: the group alone, with name: beside it",
				 s->group);
	p = config_doc_key(r->d, map, "cluster");
	config_value_text(r->d, &p, FIELD_LEN(sy_backend_info, cluster), true, &s->cluster);
	registry_of_service_read(r, map, s);
	word_at(r, map, "mode", mode_words, &mode);
	word_at(r, map, "algorithm", algorithm_words, &algorithm);
	word_at(r, map, "on_empty", on_empty_words, &on_empty);
	s->mode = (enum sy_mode)mode;
	s->algorithm = (enum sy_algorithm)algorithm;
	s->on_empty = (enum sy_on_empty)on_empty;
	s->cluster_fallback_all = flag_at(r, map, "cluster_fallback", fallback_words, s->cluster_fallback_all);
	s->on_evict_registry_reset = flag_at(r, &evict, "registry", on_evict_words, s->on_evict_registry_reset);
	s->on_evict_probe_reset = flag_at(r, &evict, "probe", on_evict_words, s->on_evict_probe_reset);
	p = config_doc_key(r->d, map, "drain_deadline");
	config_value_duration(r->d, &p, 0, MAX_DURATION_NS, &s->drain_deadline_ns);
	p = config_doc_key(r->d, map, "hold_empty");
	config_value_duration(r->d, &p, 0, MAX_DURATION_NS, &s->hold_ns);
	for (size_t i = 0; i < SY_N_TIMEOUTS; i++) {
		p = config_doc_key(r->d, &timeouts, timeout_names[i]);
		config_value_duration(r->d, &p, NS_PER_S, MAX_DURATION_NS, &s->timeout_ns[i]);
	}
}

static void listen_read(struct reader *r, const struct place *map, struct config_service *s)
{
	struct place list = config_doc_key(r->d, map, "listen");
	size_t n = config_doc_n_items(&list);

	if (!n)
		missing(r, &list, "at least one ADDR:PORT");
	s->listen = list_new(r, n, sizeof(*s->listen));
	for (size_t i = 0; s->listen && i < n; i++) {
		struct place p = config_doc_item(r->d, &list, i);
		char text[ADDR_TEXT_LEN];

		if (!config_value_listener(r->d, &p, &s->listen[s->n_listen]))
			continue;
		config_seen_add(r->d, &r->listeners, &p, endpoint_format(&s->listen[s->n_listen], text));
		s->n_listen++;
	}
}

static void service_read(struct reader *r, const struct place *map, const struct config_service *defaults)
{
	struct config_service *s = &r->c->services[r->c->n_services++];
	struct place p = config_doc_key(r->d, map, "name");
	_cleanup_free_ char *full = NULL;

	*s = *defaults;
	s->group = strdup(defaults->group ? defaults->group : "DEFAULT_GROUP");
	s->cluster = defaults->cluster ? strdup(defaults->cluster) : NULL;
	r->d->no_memory |= !s->group || (defaults->cluster && !s->cluster);
	if (!p.node)
		missing(r, &p, "the service's name in the registry");
	config_value_text(r->d, &p, SY_NAME_LEN - 1, false, &s->name);
	settings_read(r, map, s);
	if (s->cluster && !*s->cluster) {
		free(s->cluster);
		s->cluster = NULL;
	}
	listen_read(r, map, s);
	if (!s->name || !s->group)
		return;
	if (strstr(s->name, "@@"))
		config_doc_error(r->d, &p, "\"%.128s\" has @@ in it, allowed: the name alone, with group: beside it",
				 s->name);
	if (s->registry < r->c->n_registries &&
	    asprintf(&full, "%s/%s@@%s", r->c->registries[s->registry].name ?: "", s->group, s->name) >= 0)
		config_seen_add(r->d, &r->services, &p, full);
}

static void services_read(struct reader *r, const struct place *root)
{
	struct place list = config_doc_key(r->d, root, "services"), map = config_doc_key(r->d, root, "defaults");
	struct config_service defaults = settings_at_first;
	size_t n = config_doc_n_items(&list);

	settings_read(r, &map, &defaults);
	if (n > SY_MAX_SERVICES)
		config_doc_error(r->d, &list, "%zu services are too many, allowed: up to %d", n, SY_MAX_SERVICES);
	else
		r->c->services = list_new(r, n, sizeof(*r->c->services));
	for (size_t i = 0; r->c->services && i < n; i++) {
		struct place item = config_doc_item(r->d, &list, i);

		service_read(r, &item, &defaults);
	}
	if (r->listeners.n > SY_MAX_LISTENERS)
		config_doc_error(r->d, &list, "%zu listeners are too many, allowed: up to %d", r->listeners.n,
				 SY_MAX_LISTENERS);
	config_seen_done(r->d, &r->services);
	config_seen_done(r->d, &r->listeners);
	free(defaults.group);
	free(defaults.cluster);
}

static int with_paths(struct config *c)
{
	c->flows = 262144;
	c->state_dir = strdup("/var/lib/steelyard");
	c->pin_dir = strdup("/sys/fs/bpf/steelyard");
	c->control_socket = strdup("/run/steelyard/control.sock");
	return c->state_dir && c->pin_dir && c->control_socket ? 0 : -ENOMEM;
}

int config_read(struct config_doc *d, struct config **ret)
{
	_cleanup_(config_freep) struct config *c = calloc(1, sizeof(*c));
	struct reader r = {.d = d, .c = c};
	struct place root = config_doc_root(d);

	if (!c || with_paths(c) < 0)
		return -ENOMEM;
	if (config_schema_check(d) < 0)
		return -EINVAL;
	interfaces_read(&r, &root);
	registries_read(&r, &root);
	snat_read(&r, &root);
	agent_read(&r, &root);
	services_read(&r, &root);
	if (d->no_memory)
		return -ENOMEM;
	if (d->n_errors)
		return -EINVAL;
	*ret = TAKE_PTR(c);
	return 0;
}
