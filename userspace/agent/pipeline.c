/* SPDX-License-Identifier: MIT */
#include "pipeline.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../base/cleanup.h"
#include "../base/clock.h"
#include "../base/log.h"
#include "plan.h"

#define AREA	    "agent"
#define TICK_MS	    250
#define TICKS_PER_S (1000 / TICK_MS)

struct service *pipeline_find_service(const struct pipeline *p, uint32_t id)
{
	for (size_t i = 0; i < p->n_services; i++)
		if (p->services[i]->published && p->services[i]->id == id)
			return p->services[i];
	return NULL;
}

/* ---- next hops ---- */

static int prepare(void *ctx, struct sy_backend *b)
{
	struct pipeline *p = ctx;

	return neigh_prepare(p->neigh, b);
}

struct path_round {
	struct pipeline *p;
	bool again[SY_MAX_SERVICES]; /* has a backend that had no path and may have one now */
};

static void refresh_path(void *ctx, uint32_t id, const struct sy_backend *b)
{
	struct path_round *round = ctx;
	struct sy_backend now = *b, *record = &round->p->maps->backends[id];

	if (neigh_prepare(round->p->neigh, &now) < 0)
		return;
	if (now.pool != b->pool)
		__atomic_store_n(&record->pool, now.pool, __ATOMIC_RELAXED);
	if (now.nh != b->nh)
		__atomic_store_n(&record->nh, now.nh, __ATOMIC_RELAXED);
	if (SY_WORD_REASON(b->word) == SY_R_NO_PATH && b->service < SY_MAX_SERVICES)
		round->again[b->service] = true;
}

static void paths_changed(struct pipeline *p)
{
	_cleanup_free_ struct path_round *round = calloc(1, sizeof(*round));

	if (!round)
		return;
	round->p = p;
	publish_for_each_backend(p->publish, refresh_path, round);
	for (size_t i = 0; i < p->n_services; i++)
		if (p->services[i]->published && round->again[p->services[i]->id])
			service_refresh(p->services[i]);
}

static void on_neigh(evutil_socket_t fd, short what, void *arg)
{
	struct pipeline *p = arg;

	(void)fd;
	(void)what;
	if (neigh_process(p->neigh))
		paths_changed(p);
}

static int neigh_start(struct pipeline *p, const struct config *c)
{
	struct neigh_options o = {
		.snat_addresses = c->snat_addresses,
		.n_snat_addresses = c->n_snat_addresses,
		.port_first = c->snat_port_first,
		.port_last = c->snat_port_last,
	};
	struct publish_hooks hooks = {.prepare = prepare, .ctx = p};

	if (p->neigh_event)
		event_free(p->neigh_event);
	p->neigh_event = NULL;
	neigh_free(p->neigh);
	p->neigh = neigh_new(p->maps, &o);
	if (!p->neigh)
		return -errno;
	p->neigh_event = event_new(p->loop, neigh_fd(p->neigh), EV_READ | EV_PERSIST, on_neigh, p);
	if (!p->neigh_event || event_add(p->neigh_event, NULL) < 0)
		return -ENOMEM;
	publish_set_hooks(p->publish, &hooks);
	return 0;
}

static bool snat_differs(const struct config *a, const struct config *b)
{
	if (a->n_snat_addresses != b->n_snat_addresses || a->snat_port_first != b->snat_port_first ||
	    a->snat_port_last != b->snat_port_last)
		return true;
	for (size_t i = 0; i < a->n_snat_addresses; i++)
		if (addr_compare(&a->snat_addresses[i], &b->snat_addresses[i]))
			return true;
	return false;
}

/* ---- what the programs tell ---- */

static void on_event(void *ctx, const struct sy_event *e)
{
	struct pipeline *p = ctx;
	const struct service *s = pipeline_find_service(p, e->service);
	const char *name = s ? s->text : "a service that is gone";
	char client[ADDR_TEXT_LEN], more[48] = "";
	struct addr a = {.family = AF_INET, .v4.s_addr = e->client};
	uint64_t held_back = 0;

	if (e->kind >= SY_N_EVENTS ||
	    !log_limit_passes(&p->limits[e->kind], clock_monotonic_ns(), NS_PER_S, &held_back))
		return;
	if (held_back)
		(void)snprintf(more, sizeof(more), " (and %" PRIu64 " more)", held_back);
	log_warning(AREA, "%s: %s, client %s%s", name, events_kind_name(e->kind), addr_format(&a, client), more);
}

static void on_events(evutil_socket_t fd, short what, void *arg)
{
	struct pipeline *p = arg;

	(void)fd;
	(void)what;
	events_process(p->events);
}

/* ---- time ---- */

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct pipeline *p = arg;

	(void)fd;
	(void)what;
	if (neigh_tick(p->neigh))
		paths_changed(p);
	publish_tick(p->publish, clock_realtime_ns());
	if (++p->n_ticks % TICKS_PER_S == 0)
		ports_check(&p->ports);
}

static int loop_start(struct pipeline *p)
{
	struct timeval tick = {.tv_usec = TICK_MS * 1000};

	p->events = events_new(p->maps, on_event, p);
	if (!p->events)
		return -errno;
	p->events_event = event_new(p->loop, events_fd(p->events), EV_READ | EV_PERSIST, on_events, p);
	p->tick_event = event_new(p->loop, -1, EV_PERSIST, on_tick, p);
	if (!p->events_event || !p->tick_event || event_add(p->events_event, NULL) < 0 ||
	    event_add(p->tick_event, &tick) < 0)
		return -ENOMEM;
	return 0;
}

/* ---- what an earlier agent pinned ---- */

struct seeds {
	struct snapshot *by_id[SY_MAX_SERVICES];
};

static void seed_backend(void *ctx, uint32_t id, const struct sy_backend *b)
{
	struct seeds *seeds = ctx;
	struct instance *i;

	(void)id;
	if (!(b->flags & SY_B_LISTED) || b->service >= SY_MAX_SERVICES || !seeds->by_id[b->service])
		return;
	i = snapshot_append(seeds->by_id[b->service]);
	if (i)
		i->reject = b->family ? SY_R_NONE : SY_R_BAD_ADDRESS;
}

static void remember_override(void *ctx, const struct endpoint *e, enum override o)
{
	(void)service_remember(ctx, e, o);
}

/* Before the registries answer, the pinned lists stand for what was applied last (the hold rule measures by them), and
 * the operator's overrides are taken over. */
static void take_over(struct pipeline *p)
{
	_cleanup_free_ struct seeds *seeds = calloc(1, sizeof(*seeds));

	if (!seeds || !load_adopted(p->load))
		return;
	for (size_t i = 0; i < p->n_services; i++) {
		struct service *s = p->services[i];

		if (!s->published)
			continue;
		seeds->by_id[s->id] = snapshot_new(s->group, s->name);
		publish_for_each_override(p->publish, s->id, remember_override, s);
	}
	publish_for_each_backend(p->publish, seed_backend, seeds);
	for (size_t i = 0; i < p->n_services; i++)
		if (p->services[i]->published && seeds->by_id[p->services[i]->id])
			service_seed(p->services[i], TAKE_PTR(seeds->by_id[p->services[i]->id]));
}

/* ---- the whole ---- */

static int pipeline_start(struct pipeline *p, struct config *c, char *why, size_t why_size)
{
	int r;

	(void)snprintf(why, why_size, "out of memory");
	p->publish = publish_new(p->maps);
	if (!p->publish)
		return -ENOMEM;
	r = neigh_start(p, c);
	if (r < 0) {
		(void)snprintf(why, why_size, "cannot watch routes and neighbours: %s", strerror(-r));
		return r;
	}
	/* what was pinned was prepared by the routes and pools of another day */
	paths_changed(p);
	r = loop_start(p);
	if (r < 0) {
		(void)snprintf(why, why_size, "cannot read the programs' events: %s", strerror(-r));
		return r;
	}
	r = plan_apply(p, c, why, why_size);
	if (r < 0)
		return r;
	take_over(p);
	return ports_configure(&p->ports, p->config, why, why_size);
}

struct pipeline *pipeline_new(struct event_base *loop, struct load *load, struct config *c, char *why, size_t why_size)
{
	struct pipeline *p = calloc(1, sizeof(*p));
	int r;

	if (!p) {
		config_free(c);
		(void)snprintf(why, why_size, "out of memory");
		return NULL;
	}
	p->loop = loop;
	p->load = load;
	p->maps = load_maps(load);
	p->ports.load = load;
	p->started_ns = clock_monotonic_ns();
	features_probe(&p->features);
	r = pipeline_start(p, c, why, why_size);
	if (!r)
		return p;
	if (p->config != c)
		config_free(c);
	pipeline_free(p);
	errno = -r;
	return NULL;
}

int pipeline_reload(struct pipeline *p, struct config *c, char *why, size_t why_size)
{
	char keys[128], trouble[256];
	bool snat = snat_differs(p->config, c);
	int r = config_restart_only(p->config, c, keys, sizeof(keys));

	if (r < 0)
		(void)snprintf(why, why_size, "%s cannot be changed without a restart", keys);
	else
		r = plan_apply(p, c, why, why_size);
	if (r < 0) {
		config_free(c);
		return r;
	}
	if (snat) {
		r = neigh_start(p, p->config);
		if (r < 0)
			log_error(AREA, "cannot watch routes and neighbours: %s", strerror(-r));
		else
			paths_changed(p);
	}
	/* trouble with one interface is logged there and tried again; the rest of the file is in force */
	(void)ports_configure(&p->ports, p->config, trouble, sizeof(trouble));
	log_init(p->config->log_level, p->config->log_json);
	return 0;
}

void pipeline_free(struct pipeline *p)
{
	if (!p)
		return;
	if (p->tick_event)
		event_free(p->tick_event);
	if (p->events_event)
		event_free(p->events_event);
	if (p->neigh_event)
		event_free(p->neigh_event);
	plan_done(p);
	events_free(p->events);
	neigh_free(p->neigh);
	publish_free(p->publish);
	ports_done(&p->ports);
	config_free(p->config);
	free(p);
}
