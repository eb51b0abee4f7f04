/* SPDX-License-Identifier: MIT */
/*  push ──unchanged?──▶ dropped
 *    │
 *    ▼        too much gone
 *  hold ───────────────────▶ held ──hold_timer──┐
 *    │                                          │
 *    ▼   1 ms since the last?                   │
 *  schedule ──no──▶ merge_timer ──▶ apply ◀─────┘
 *    └──────yes─────────────────────▲   selector, publish, log */
#include "service.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../base/cleanup.h"
#include "../base/clock.h"
#include "../base/log.h"

#define AREA	 "service"
#define MERGE_NS NS_PER_MS

static int endpoint_order(const void *a, const void *b)
{
	return endpoint_compare(a, b);
}

int listeners_make(const struct config *c, struct listeners *ret)
{
	struct endpoint *all;
	size_t n = 0;

	for (size_t i = 0; i < c->n_services; i++)
		n += c->services[i].n_listen;
	all = calloc(n + 1, sizeof(*all));
	if (!all)
		return -ENOMEM;
	n = 0;
	for (size_t i = 0; i < c->n_services; i++)
		for (size_t j = 0; j < c->services[i].n_listen; j++)
			all[n++] = c->services[i].listen[j];
	qsort(all, n, sizeof(*all), endpoint_order);
	*ret = (struct listeners){.endpoints = all, .n = n};
	return 0;
}

void listeners_done(struct listeners *l)
{
	free(l->endpoints);
	*l = (struct listeners){0};
}

static bool is_listener(const void *ctx, const struct endpoint *e)
{
	const struct service *s = ctx;
	const struct listeners *l = s->listeners;

	return l && l->n && bsearch(e, l->endpoints, l->n, sizeof(*e), endpoint_order);
}

static struct override_entry *override_find(const struct service *s, const struct endpoint *e)
{
	if (!s->n_overrides)
		return NULL;
	/* the endpoint is the entry's first member */
	return bsearch(e, s->overrides, s->n_overrides, sizeof(*s->overrides), endpoint_order);
}

static enum override override_of(const void *ctx, const struct endpoint *e)
{
	const struct override_entry *o = override_find(ctx, e);

	return o ? o->override : OVERRIDE_NONE;
}

static struct timeval timeval_of(uint64_t ns)
{
	uint64_t us = (ns + NS_PER_US - 1) / NS_PER_US;

	return (struct timeval){.tv_sec = (time_t)(us / 1000000), .tv_usec = (suseconds_t)(us % 1000000)};
}

static void warn_of_changes(struct service *s, const struct selection *sel, size_t n_no_path)
{
	size_t n_loops = 0, n_eligible = sel->n_eligible - n_no_path;

	/* a bad address that its instance does not have of its own */
	for (size_t i = 0; i < sel->n_candidates; i++)
		n_loops += sel->candidates[i].reason == SY_R_BAD_ADDRESS &&
			   sel->candidates[i].instance->reject != SY_R_BAD_ADDRESS;
	if (n_loops && n_loops != s->n_loops)
		log_warning(AREA, "%s: %zu instances are listeners of ours and would loop, refused as bad-address",
			    s->text, n_loops);
	if (sel->n_bad && sel->n_bad != s->n_bad)
		log_warning(AREA, "%s: %zu instances with a bad address or weight are left out", s->text, sel->n_bad);
	if (sel->n_duplicates && sel->n_duplicates != s->n_duplicates)
		log_warning(AREA, "%s: %zu instances have the address and port of another one and are left out",
			    s->text, sel->n_duplicates);
	if (sel->cluster_fell_back && !s->fell_back)
		log_warning(AREA, "%s: nobody is left in cluster %s, every cluster is used", s->text,
			    s->config->cluster);
	if (!sel->cluster_fell_back && s->fell_back)
		log_info(AREA, "%s: cluster %s is used again", s->text, s->config->cluster ? s->config->cluster : "-");
	if (n_no_path && n_no_path != s->n_no_path)
		log_warning(AREA, "%s: no route or source address towards %zu instances, left out until there is one",
			    s->text, n_no_path);
	if (!n_eligible && (s->n_eligible || !s->last_ns))
		log_warning(AREA, "%s: no eligible backend among %zu listed, new connections get %s", s->text,
			    sel->n_candidates,
			    (const char *[]){"a reset", "dropped", "passed to the host"}[s->config->on_empty]);
	if (n_eligible && !s->n_eligible && s->last_ns)
		log_info(AREA, "%s: has eligible backends again", s->text);
	s->n_loops = n_loops;
	s->n_bad = sel->n_bad;
	s->n_duplicates = sel->n_duplicates;
	s->fell_back = sel->cluster_fell_back;
	s->n_no_path = n_no_path;
	s->n_eligible = n_eligible;
	s->n_listed = sel->n_candidates;
}

static void log_applied(const struct service *s, const struct publish_stats *stats)
{
	if (stats->n_new || stats->n_evicted || stats->n_gone || stats->n_changed || stats->table_written)
		log_info(AREA, "%s: %u new, %u evicted, %u gone, %u changed; %zu of %zu eligible; apply_us %.1f",
			 s->text, stats->n_new, stats->n_evicted, stats->n_gone, stats->n_changed, s->n_eligible,
			 s->n_listed, (double)stats->apply_ns / 1000);
}

static void apply(struct service *s)
{
	struct selector_rules rules = {
		.cluster = s->config->cluster,
		.cluster_fallback_all = s->config->cluster_fallback_all,
		.family_v4 = true,
		.registry_reset = s->config->on_evict_registry_reset,
		.override = override_of,
		.override_ctx = s,
		.is_listener = is_listener,
		.is_listener_ctx = s,
	};
	enum sy_state gone = s->config->on_evict_registry_reset ? SY_EVICTED : SY_DRAINING;
	_cleanup_(selection_done) struct selection sel = {0};
	struct publish_stats stats = {0};
	int r;

	s->pending = false;
	(void)event_del(s->merge_timer);
	r = selector_run(s->hold.applied, &rules, &sel);
	if (!r)
		r = publish_selection(s->publish, s->id, &sel, gone, SY_SOURCE_LIVE, s->received_ns,
				      clock_realtime_ns(), &stats);
	if (r < 0)
		log_error(AREA, "%s: not all of the change could be written: %s", s->text,
			  r == -ENOSPC ? "no backend ids or table room left" : strerror(-r));
	if (sel.candidates)
		warn_of_changes(s, &sel, stats.n_no_path);
	log_applied(s, &stats);
	s->last_ns = clock_monotonic_ns();
	s->received_ns = 0;
	hold_tidy(&s->hold);
}

/* The first change goes out at once, those that follow within 1 ms of it together. */
static void schedule(struct service *s, uint64_t received_ns)
{
	uint64_t since = clock_monotonic_ns() - s->last_ns;
	struct timeval wait;

	if (!s->received_ns)
		s->received_ns = received_ns;
	if (!s->published)
		return;
	if (!s->last_ns || since >= MERGE_NS) {
		apply(s);
		return;
	}
	if (s->pending)
		return;
	wait = timeval_of(MERGE_NS - since);
	s->pending = true;
	(void)event_add(s->merge_timer, &wait);
}

static void on_merge_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	apply(arg);
}

static void arm_hold(struct service *s)
{
	uint64_t now = clock_monotonic_ns();
	struct timeval wait = timeval_of(s->hold.until_ns > now ? s->hold.until_ns - now : 0);

	(void)event_add(s->hold_timer, &wait);
}

static void on_hold_timer(evutil_socket_t fd, short what, void *arg)
{
	struct service *s = arg;

	(void)fd;
	(void)what;
	if (!s->hold.held)
		return;
	if (!hold_expire(&s->hold, clock_monotonic_ns())) {
		arm_hold(s);
		return;
	}
	log_warning(AREA, "%s: the held list of %zu instances is applied, nothing better came", s->text,
		    s->hold.applied->n_instances);
	s->answered = true;
	schedule(s, clock_monotonic_ns());
}

static void hold_began(struct service *s, size_t n_now)
{
	char text[32];

	log_warning(AREA, "%s: the registry lists %zu instances where it listed %zu: held for %s", s->text, n_now,
		    s->hold.applied->n_instances, duration_format(s->hold.hold_ns, text, sizeof(text)));
	if (s->published)
		publish_source(s->publish, s->id, SY_SOURCE_HELD, clock_realtime_ns());
	arm_hold(s);
}

void service_push(struct service *s, struct snapshot *snapshot, uint64_t received_ns)
{
	bool was_held = s->hold.held != NULL;
	size_t n_now = snapshot->n_instances;

	if (s->answered && !was_held && snapshot_equal(s->hold.applied, snapshot)) {
		snapshot_free(snapshot);
		return;
	}
	if (!hold_push(&s->hold, snapshot, clock_monotonic_ns())) {
		if (!was_held)
			hold_began(s, n_now);
		return;
	}
	s->answered = true;
	if (was_held) {
		(void)event_del(s->hold_timer);
		log_info(AREA, "%s: hold ended, the registry lists %zu instances", s->text, n_now);
	}
	schedule(s, received_ns);
}

void service_refresh(struct service *s)
{
	if (s->answered && s->published)
		apply(s);
}

int service_settings(struct service *s, const struct endpoint *keep, size_t n_keep)
{
	struct service_key key = {.registry = s->registry, .ns = s->ns, .group = s->group, .name = s->name};
	struct service_settings settings = {
		.listen = keep ? keep : s->config->listen,
		.n_listen = keep ? n_keep : s->config->n_listen,
		.mode = s->config->mode,
		.algorithm = s->config->algorithm,
		.on_empty = s->config->on_empty,
		.drain_deadline_ns = s->config->drain_deadline_ns,
	};
	int r;

	memcpy(settings.timeout_ns, s->config->timeout_ns, sizeof(settings.timeout_ns));
	r = publish_service(s->publish, &key, &settings, &s->id);
	s->published = !r;
	s->hold.hold_ns = s->config->hold_ns;
	if (s->hold.held && !s->hold.hold_ns) {
		/* no longer to be held */
		s->hold.until_ns = 0;
		arm_hold(s);
	}
	return r;
}

void service_seed(struct service *s, struct snapshot *pinned)
{
	if (s->hold.applied) {
		snapshot_free(pinned);
		return;
	}
	s->hold.applied = pinned;
}

int service_remember(struct service *s, const struct endpoint *e, enum override o)
{
	struct override_entry *found = override_find(s, e), *more;

	if (found && o != OVERRIDE_NONE) {
		found->override = o;
		return 0;
	}
	if (found) {
		s->n_overrides--;
		memmove(found, found + 1, (size_t)(s->overrides + s->n_overrides - found) * sizeof(*found));
		return 0;
	}
	if (o == OVERRIDE_NONE)
		return 0;
	more = realloc(s->overrides, (s->n_overrides + 1) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	s->overrides = more;
	more[s->n_overrides++] = (struct override_entry){.endpoint = *e, .override = o};
	qsort(more, s->n_overrides, sizeof(*more), endpoint_order);
	return 0;
}

int service_override(struct service *s, const struct endpoint *e, enum override o)
{
	bool known = override_find(s, e) != NULL;
	int r = s->published ? publish_override(s->publish, s->id, e, o, clock_realtime_ns()) : -ENOENT;

	/* an instance that vanished while drained can still be enabled, for when it comes back */
	if (r < 0 && !(r == -ENOENT && known && o == OVERRIDE_NONE))
		return r;
	r = service_remember(s, e, o);
	if (r < 0)
		return r;
	s->received_ns = clock_monotonic_ns();
	service_refresh(s);
	s->received_ns = 0;
	return 0;
}

int service_compare(const struct service *a, const struct service *b)
{
	int r = strcmp(a->registry, b->registry);

	if (!r)
		r = strcmp(a->ns, b->ns);
	if (!r)
		r = strcmp(a->group, b->group);
	return r ? r : strcmp(a->name, b->name);
}

struct service *service_new(struct event_base *loop, struct publish *publish, const struct config *c,
			    const struct config_service *cs)
{
	const struct config_registry *registry = &c->registries[cs->registry];
	struct service *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	hold_init(&s->hold, cs->hold_ns);
	s->config = cs;
	s->publish = publish;
	s->registry = strdup(registry->name);
	s->ns = strdup(registry->ns ? registry->ns : "");
	s->group = strdup(cs->group);
	s->name = strdup(cs->name);
	if (asprintf(&s->text, "%s@@%s", cs->group, cs->name) < 0)
		s->text = NULL;
	s->merge_timer = evtimer_new(loop, on_merge_timer, s);
	s->hold_timer = evtimer_new(loop, on_hold_timer, s);
	if (s->registry && s->ns && s->group && s->name && s->text && s->merge_timer && s->hold_timer)
		return s;
	service_free(s);
	return NULL;
}

void service_free(struct service *s)
{
	if (!s)
		return;
	if (s->merge_timer)
		event_free(s->merge_timer);
	if (s->hold_timer)
		event_free(s->hold_timer);
	hold_done(&s->hold);
	free(s->overrides);
	free(s->registry);
	free(s->ns);
	free(s->group);
	free(s->name);
	free(s->text);
	free(s);
}
