/* SPDX-License-Identifier: MIT */
/* Everything that can fail is made first and beside what runs; only then is it put in force, in an order that takes a
 * listener from one service before another one gets it. */
#include "plan.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../base/cleanup.h"
#include "../base/log.h"
#include "../registry/file.h"
#include "../registry/nacos.h"

#define AREA "agent"

/* What is to be in force: built whole, then exchanged. */
struct plan {
	struct pipeline *p;
	struct config *c;
	struct source **sources;
	struct service **services; /* by service_compare */
	bool *is_new_source, *is_new_service;
	struct listeners listeners;
};

/* ---- registries ---- */

static void on_snapshot(void *ctx, struct snapshot *snapshot, uint64_t received_ns)
{
	struct source *source = ctx;
	struct service key = {.registry = source->name,
			      .ns = source->config->ns ? source->config->ns : (char[]){""},
			      .group = snapshot->group,
			      .name = snapshot->name};
	size_t low = 0, high = source->pipeline->n_services;

	while (low < high) {
		size_t middle = (low + high) / 2;
		struct service *s = source->pipeline->services[middle];
		int r = service_compare(&key, s);

		if (!r) {
			service_push(s, snapshot, received_ns);
			return;
		}
		if (r < 0)
			high = middle;
		else
			low = middle + 1;
	}
	snapshot_free(snapshot);
}

/* The source tells people itself; whoever asks gets registry_status. */
static void on_state(void *ctx, const struct registry_status *status)
{
	struct source *source = ctx;

	if (status->state != source->told)
		log_debug(AREA, "registry %s is %s", source->name, registry_state_name(status->state));
	source->told = status->state;
}

static bool same_text(const char *a, const char *b)
{
	return !a || !b ? a == b : !strcmp(a, b);
}

static bool same_registry(const struct config_registry *a, const struct config_registry *b)
{
	if (a->kind != b->kind || !same_text(a->ns, b->ns) || !same_text(a->path, b->path) ||
	    a->n_servers != b->n_servers)
		return false;
	for (size_t i = 0; i < a->n_servers; i++) {
		const struct nacos_server *x = &a->servers[i], *y = &b->servers[i];

		if (strcmp(x->host, y->host) || x->port != y->port || x->grpc_port != y->grpc_port)
			return false;
	}
	return true;
}

static void source_free(struct source *s)
{
	if (!s)
		return;
	registry_free(s->registry);
	free(s->name);
	free(s);
}

static struct source *source_new(struct pipeline *p, const struct config_registry *c)
{
	struct source *s = calloc(1, sizeof(*s));
	struct registry_sink sink = {.on_snapshot = on_snapshot, .on_state = on_state, .ctx = s};
	struct nacos_options options = {
		.servers = c->servers,
		.n_servers = c->n_servers,
		.ns = c->ns,
		.client_version = "Steelyard:v" SY_VERSION,
	};

	if (!s)
		return NULL;
	s->pipeline = p;
	s->config = c;
	s->name = strdup(c->name);
	if (s->name)
		s->registry = c->kind == CONFIG_REGISTRY_FILE ? file_new(p->loop, c->name, c->path, &sink)
							      : nacos_new(p->loop, c->name, &options, &sink);
	if (s->registry && registry_start(s->registry) >= 0)
		return s;
	source_free(s);
	return NULL;
}

static struct source *source_keep(const struct pipeline *p, const struct config_registry *c)
{
	for (size_t i = 0; i < p->n_sources; i++)
		if (!strcmp(p->sources[i]->name, c->name) && same_registry(p->sources[i]->config, c))
			return p->sources[i];
	return NULL;
}

static int plan_sources(struct plan *plan)
{
	for (size_t i = 0; i < plan->c->n_registries; i++) {
		const struct config_registry *c = &plan->c->registries[i];

		plan->sources[i] = source_keep(plan->p, c);
		if (plan->sources[i])
			continue;
		plan->is_new_source[i] = true;
		plan->sources[i] = source_new(plan->p, c);
		if (!plan->sources[i])
			return errno ? -errno : -ENOMEM;
	}
	return 0;
}

/* ---- services ---- */

static int service_order(const void *a, const void *b)
{
	return service_compare(*(struct service *const *)a, *(struct service *const *)b);
}

static struct service **service_find(struct service *const *list, size_t n, const struct service *key)
{
	return n ? bsearch(&key, list, n, sizeof(*list), service_order) : NULL;
}

static int plan_services(struct plan *plan)
{
	for (size_t i = 0; i < plan->c->n_services; i++) {
		plan->services[i] = service_new(plan->p->loop, plan->p->publish, plan->c, &plan->c->services[i]);
		if (!plan->services[i])
			return -ENOMEM;
	}
	qsort(plan->services, plan->c->n_services, sizeof(*plan->services), service_order);
	return 0;
}

/* One that runs already takes the place of the one made for it. */
static void keep_running(struct plan *plan)
{
	for (size_t i = 0; i < plan->c->n_services; i++) {
		struct service *made = plan->services[i];
		struct service **running = service_find(plan->p->services, plan->p->n_services, made);

		plan->is_new_service[i] = !running;
		if (!running)
			continue;
		plan->services[i] = *running;
		plan->services[i]->config = made->config;
		service_free(made);
	}
}

static void remove_unwanted(struct plan *plan)
{
	for (size_t i = 0; i < plan->p->n_services; i++) {
		struct service *s = plan->p->services[i];

		if (service_find(plan->services, plan->c->n_services, s))
			continue;
		log_info(AREA, "%s: no longer configured, removed", s->text);
		for (size_t j = 0; j < plan->p->n_sources; j++)
			if (!strcmp(plan->p->sources[j]->name, s->registry))
				(void)registry_unsubscribe(plan->p->sources[j]->registry, s->group, s->name);
		if (s->published)
			publish_service_remove(plan->p->publish, s->id);
		service_free(s);
	}
}

/* With those of its listeners that no other service has. */
static void put_with_free_listeners(struct service *s)
{
	_cleanup_free_ struct endpoint *keep = calloc(s->config->n_listen + 1, sizeof(*keep));
	size_t n = 0;

	if (!keep)
		return;
	for (size_t i = 0; i < s->config->n_listen; i++) {
		keep[n] = s->config->listen[i];
		n += service_settings(s, keep, n + 1) == 0;
	}
	(void)service_settings(s, keep, n);
}

/* A listener may go from one service to another, or have been a service's that is no longer configured: whoever has to
 * wait for one gives up its own first, and is put again when all have. */
static void put_settings(const struct plan *plan)
{
	size_t n = plan->c->n_services;

	for (size_t i = 0; i < n; i++)
		if (service_settings(plan->services[i], NULL, 0) == -EEXIST)
			put_with_free_listeners(plan->services[i]);
	publish_remove_unclaimed(plan->p->publish);
	for (size_t i = 0; i < n; i++) {
		struct service *s = plan->services[i];
		int r = service_settings(s, NULL, 0);

		if (r < 0)
			log_error(AREA, "%s: not served: %s", s->text,
				  r == -ENOSPC	 ? "no room for another service"
				  : r == -EEXIST ? "a listener of it belongs to another service"
						 : strerror(-r));
	}
}

static struct source *source_of(const struct plan *plan, const struct service *s, bool *ret_is_new)
{
	for (size_t i = 0; i < plan->c->n_registries; i++)
		if (!strcmp(plan->sources[i]->name, s->registry)) {
			*ret_is_new = plan->is_new_source[i];
			return plan->sources[i];
		}
	return NULL;
}

static void subscribe(const struct plan *plan, size_t i)
{
	struct service *s = plan->services[i];
	bool is_new = false;
	struct source *source = source_of(plan, s, &is_new);
	int r;

	if (!source || (!plan->is_new_service[i] && !is_new))
		return;
	r = registry_subscribe(source->registry, s->group, s->name);
	if (r < 0)
		log_error(AREA, "%s: cannot subscribe: %s", s->text, strerror(-r));
}

static bool is_kept(const struct plan *plan, const struct source *s)
{
	for (size_t i = 0; i < plan->c->n_registries; i++)
		if (plan->sources[i] == s)
			return true;
	return false;
}

static void exchange(struct plan *plan)
{
	struct pipeline *p = plan->p;
	size_t n = plan->c->n_services;

	keep_running(plan);
	remove_unwanted(plan);
	listeners_done(&p->listeners);
	p->listeners = plan->listeners;
	put_settings(plan);
	for (size_t i = 0; i < n; i++) {
		plan->services[i]->listeners = &p->listeners;
		subscribe(plan, i);
	}
	for (size_t i = 0; i < p->n_sources; i++)
		if (!is_kept(plan, p->sources[i]))
			source_free(p->sources[i]);
	for (size_t i = 0; i < plan->c->n_registries; i++)
		plan->sources[i]->config = &plan->c->registries[i];
	free(p->sources);
	free(p->services);
	p->sources = TAKE_PTR(plan->sources);
	p->n_sources = plan->c->n_registries;
	p->services = TAKE_PTR(plan->services);
	p->n_services = n;
	config_free(p->config);
	p->config = plan->c;
	for (size_t i = 0; i < n; i++)
		service_refresh(p->services[i]);
}

static void plan_undo(struct plan *plan)
{
	for (size_t i = 0; plan->sources && i < plan->c->n_registries; i++)
		if (plan->is_new_source[i])
			source_free(plan->sources[i]);
	for (size_t i = 0; plan->services && i < plan->c->n_services; i++)
		service_free(plan->services[i]);
	listeners_done(&plan->listeners);
}

int plan_apply(struct pipeline *p, struct config *c, char *why, size_t why_size)
{
	struct plan plan = {.p = p, .c = c};
	int r = -ENOMEM;

	plan.sources = calloc(c->n_registries + 1, sizeof(struct source *));
	plan.services = calloc(c->n_services + 1, sizeof(struct service *));
	plan.is_new_source = calloc(c->n_registries + 1, sizeof(bool));
	plan.is_new_service = calloc(c->n_services + 1, sizeof(bool));
	if (plan.sources && plan.services && plan.is_new_source && plan.is_new_service)
		r = listeners_make(c, &plan.listeners);
	if (!r)
		r = plan_sources(&plan);
	if (!r)
		r = plan_services(&plan);
	if (!r) {
		exchange(&plan);
		if (!c->n_services)
			log_warning(AREA, "no services are configured: nothing to balance");
	} else {
		(void)snprintf(why, why_size, "the configuration cannot be brought about: %s", strerror(-r));
		if (plan.is_new_source)
			plan_undo(&plan);
	}
	free(plan.sources);
	free(plan.services);
	free(plan.is_new_source);
	free(plan.is_new_service);
	return r;
}

void plan_done(struct pipeline *p)
{
	for (size_t i = 0; i < p->n_sources; i++)
		source_free(p->sources[i]);
	for (size_t i = 0; i < p->n_services; i++)
		service_free(p->services[i]);
	free(p->sources);
	free(p->services);
	p->sources = NULL;
	p->services = NULL;
	p->n_sources = p->n_services = 0;
	listeners_done(&p->listeners);
}
