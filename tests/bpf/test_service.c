/* SPDX-License-Identifier: MIT */
/* One service from pushed snapshots to the pinned maps: what is dropped, merged, held, overridden and taken over. */
#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <string.h>
#include "agent/service.h"
#include "base/clock.h"
#include "pinned.h"
#include "unit.h"

#define MAX_ROUNDS 30000 /* of 1 ms */

static struct load *load;
static struct publish *publish;
static struct event_base *loop;
static struct config *config;
static struct listeners listeners;
static struct service *service;

static void service_make(void)
{
	publish = publish_new(load_maps(load));
	assert_non_null(publish);
	service = service_new(loop, publish, config, &config->services[0]);
	assert_non_null(service);
	service->listeners = &listeners;
	assert_int_equal(service_settings(service, NULL, 0), 0);
}

static int set_up(void **state)
{
	const char *interfaces[] = {"lo"}, *services[] = {"orders=10.9.0.1:80", "pay=10.9.0.2:81"};
	struct config_arguments a = {
		.interfaces = interfaces, .n_interfaces = 1, .file = "unused", .services = services, .n_services = 2};
	char *errors = NULL;

	(void)state;
	load = pinned_load();
	loop = event_base_new();
	if (config_from_arguments(&a, &config, &errors) || listeners_make(config, &listeners))
		return -1;
	service_make();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	service_free(service);
	publish_free(publish);
	listeners_done(&listeners);
	config_free(config);
	event_base_free(loop);
	load_close(load);
	pinned_remove();
	return 0;
}

/* The agent dies and another one takes over. */
static void restart(void)
{
	service_free(service);
	publish_free(publish);
	load_close(load);
	load = pinned_load();
	assert_true(load_adopted(load));
	service_make();
}

/* 10.0.0.1:80 to 10.0.0.n:80 with these weights; below 0: unhealthy with that weight. */
static struct snapshot *snapshot_of(const double *weights, size_t n)
{
	struct snapshot *s = snapshot_new("DEFAULT_GROUP", "orders");
	char text[ADDR_TEXT_LEN];

	for (size_t i = 0; i < n; i++) {
		struct instance *instance = snapshot_append(s);

		assert_non_null(instance);
		(void)snprintf(text, sizeof(text), "10.0.0.%zu:80", i + 1);
		instance->address_text = snapshot_text(s, text, strlen(text));
		assert_int_equal(endpoint_parse(text, &instance->endpoint), 0);
		instance->enabled = true;
		instance->healthy = weights[i] >= 0;
		instance->weight = weights[i] < 0 ? -weights[i] : weights[i];
	}
	return s;
}

#define SNAPSHOT(...) snapshot_of((double[]){__VA_ARGS__}, sizeof((double[]){__VA_ARGS__}) / sizeof(double))

static const struct sy_service *record(void)
{
	return &load_maps(load)->services[service->id];
}

static unsigned n_members(void)
{
	return SY_TABLE_LEN(record()->table);
}

static uint64_t word_of(const char *at)
{
	uint32_t id = pinned_find(load_maps(load), service->id, at);

	assert_int_not_equal(id, 0);
	return load_maps(load)->backends[id].word;
}

static void push(struct snapshot *s)
{
	service_push(service, s, clock_monotonic_ns());
}

/* Run the loop until nothing waits. */
static void settle(void)
{
	for (int i = 0; i < MAX_ROUNDS && service->pending; i++)
		(void)event_base_loop(loop, EVLOOP_ONCE);
	assert_false(service->pending);
}

static void the_first_push_is_in_the_maps_at_once(void **state)
{
	(void)state;
	push(SNAPSHOT(1, 2, 7));
	assert_int_equal(n_members(), 3);
	assert_int_equal(record()->source, SY_SOURCE_LIVE);
	assert_true(record()->apply_ns > 0);
}

static void the_same_push_again_or_reordered_writes_nothing(void **state)
{
	struct snapshot *turned = SNAPSHOT(1, 2, 7);
	struct instance first = turned->instances[0];
	uint64_t digest;

	(void)state;
	push(SNAPSHOT(1, 2, 7));
	digest = pinned_digest(load_maps(load));
	turned->instances[0] = turned->instances[2];
	turned->instances[2] = first;
	push(SNAPSHOT(1, 2, 7));
	push(turned);
	settle();
	assert_true(pinned_digest(load_maps(load)) == digest);
}

static void changes_within_a_millisecond_go_out_together(void **state)
{
	uint64_t before = 0;

	(void)state;
	push(SNAPSHOT(1, 2, 7));
	/* a busy machine may take longer than 1 ms between two of these: then they are tried again */
	for (int i = 0; i < 1000 && !service->pending; i++) {
		push(SNAPSHOT(1, 2, 8 + i));
		before = record()->generation;
		push(SNAPSHOT(1, 2, 2000 + i));
	}
	assert_true(service->pending);
	push(SNAPSHOT(1, 3, 5));
	push(SNAPSHOT(1, 3, 6));
	if (service->pending)
		assert_int_equal(record()->generation, before);
	settle();
	assert_int_equal(record()->generation, before + 1);
	push(SNAPSHOT(1, 3, 6));
	settle();
	assert_int_equal(record()->generation, before + 1);
}

static void a_list_that_vanishes_is_held_and_comes_back_unharmed(void **state)
{
	uint64_t table;

	(void)state;
	push(SNAPSHOT(1, 2, 7));
	table = record()->table;
	push(snapshot_of(NULL, 0));
	settle();
	assert_int_equal(record()->source, SY_SOURCE_HELD);
	assert_true(record()->table == table);
	push(SNAPSHOT(1, 2, 7));
	settle();
	assert_int_equal(record()->source, SY_SOURCE_LIVE);
	assert_true(record()->table == table);
	assert_null(service->hold.held);
}

static void a_held_list_is_applied_when_its_time_is_up(void **state)
{
	(void)state;
	push(SNAPSHOT(1, 2, 7));
	service->hold.hold_ns = NS_PER_MS;
	push(snapshot_of(NULL, 0));
	for (int i = 0; i < MAX_ROUNDS && service->hold.held; i++)
		(void)event_base_loop(loop, EVLOOP_ONCE);
	settle();
	assert_int_equal(n_members(), 0);
	assert_int_equal(SY_WORD_STATE(word_of("10.0.0.1:80")), SY_DRAINING);
	assert_int_equal(SY_WORD_REASON(word_of("10.0.0.1:80")), SY_R_GONE);
}

static void a_hold_ends_when_the_configuration_wants_none_any_more(void **state)
{
	struct config_service no_hold = config->services[0];

	(void)state;
	no_hold.hold_ns = 0;
	push(SNAPSHOT(1, 2, 7));
	push(snapshot_of(NULL, 0));
	assert_non_null(service->hold.held);
	service->config = &no_hold;
	assert_int_equal(service_settings(service, NULL, 0), 0);
	for (int i = 0; i < MAX_ROUNDS && service->hold.held; i++)
		(void)event_base_loop(loop, EVLOOP_ONCE);
	settle();
	assert_int_equal(n_members(), 0);
}

static void a_mark_on_an_instance_is_never_held(void **state)
{
	(void)state;
	push(SNAPSHOT(1, 2, 7, 1, 1));
	push(SNAPSHOT(-1, -2, -7, -1, 0));
	settle();
	assert_null(service->hold.held);
	assert_int_equal(n_members(), 0);
	assert_int_equal(SY_WORD_REASON(word_of("10.0.0.1:80")), SY_R_UNHEALTHY);
	assert_int_equal(SY_WORD_REASON(word_of("10.0.0.5:80")), SY_R_WEIGHT_0);
}

static void an_operators_word_outlasts_pushes_and_disappearance(void **state)
{
	struct endpoint e;

	(void)state;
	assert_int_equal(endpoint_parse("10.0.0.3:80", &e), 0);
	push(SNAPSHOT(1, 2, 7));
	assert_int_equal(service_override(service, &e, OVERRIDE_EVICT), 0);
	assert_int_equal(SY_WORD_STATE(word_of("10.0.0.3:80")), SY_EVICTED);
	assert_int_equal(n_members(), 2);
	push(SNAPSHOT(1, 2));
	settle();
	assert_int_equal(SY_WORD_REASON(word_of("10.0.0.3:80")), SY_R_GONE);
	push(SNAPSHOT(1, 2, 9));
	settle();
	assert_int_equal(SY_WORD_REASON(word_of("10.0.0.3:80")), SY_R_OPERATOR);
	assert_int_equal(n_members(), 2);
	assert_int_equal(service_override(service, &e, OVERRIDE_NONE), 0);
	assert_int_equal(SY_WORD_STATE(word_of("10.0.0.3:80")), SY_UP);
	assert_int_equal(n_members(), 3);
}

static void an_operators_word_about_nobody_is_refused(void **state)
{
	struct endpoint e;

	(void)state;
	assert_int_equal(endpoint_parse("10.0.0.9:80", &e), 0);
	push(SNAPSHOT(1, 2, 7));
	assert_int_equal(service_override(service, &e, OVERRIDE_DRAIN), -ENOENT);
	assert_int_equal(service_override(service, &e, OVERRIDE_NONE), -ENOENT);
	assert_int_equal(service->n_overrides, 0);
}

static void remember(void *ctx, const struct endpoint *e, enum override o)
{
	assert_int_equal(service_remember(ctx, e, o), 0);
}

static void a_restart_finds_the_operators_word_and_changes_nothing(void **state)
{
	struct endpoint e;
	uint64_t table;

	(void)state;
	assert_int_equal(endpoint_parse("10.0.0.2:80", &e), 0);
	push(SNAPSHOT(1, 2, 7));
	assert_int_equal(service_override(service, &e, OVERRIDE_DRAIN), 0);
	table = record()->table;
	restart();
	publish_for_each_override(publish, service->id, remember, service);
	push(SNAPSHOT(1, 2, 7));
	assert_true(record()->table == table);
	assert_int_equal(SY_WORD_STATE(word_of("10.0.0.2:80")), SY_DRAINING);
	assert_int_equal(SY_WORD_REASON(word_of("10.0.0.2:80")), SY_R_OPERATOR);
}

static void an_empty_first_answer_after_a_restart_is_held(void **state)
{
	(void)state;
	push(SNAPSHOT(1, 2, 7));
	restart();
	service_seed(service, SNAPSHOT(1, 1, 1));
	push(snapshot_of(NULL, 0));
	assert_non_null(service->hold.held);
	assert_int_equal(n_members(), 3);
	/* what was seeded is no answer of the registry: the same list again counts as the first */
	push(SNAPSHOT(1, 1, 1));
	settle();
	assert_true(service->answered);
	assert_int_equal(record()->generation, 2);
}

static void an_instance_that_is_a_listener_of_ours_is_refused(void **state)
{
	struct snapshot *s = SNAPSHOT(1, 2, 7);

	(void)state;
	s->instances[2].address_text = "10.9.0.2:81";
	assert_int_equal(endpoint_parse("10.9.0.2:81", &s->instances[2].endpoint), 0);
	push(s);
	assert_int_equal(n_members(), 2);
	assert_int_equal(service->n_loops, 1);
	assert_int_equal(pinned_find(load_maps(load), service->id, "10.9.0.2:81"), 0);
}

int main(void)
{
#define WITH_MAPS(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		WITH_MAPS(the_first_push_is_in_the_maps_at_once),
		WITH_MAPS(the_same_push_again_or_reordered_writes_nothing),
		WITH_MAPS(changes_within_a_millisecond_go_out_together),
		WITH_MAPS(a_list_that_vanishes_is_held_and_comes_back_unharmed),
		WITH_MAPS(a_held_list_is_applied_when_its_time_is_up),
		WITH_MAPS(a_hold_ends_when_the_configuration_wants_none_any_more),
		WITH_MAPS(a_mark_on_an_instance_is_never_held),
		WITH_MAPS(an_operators_word_outlasts_pushes_and_disappearance),
		WITH_MAPS(an_operators_word_about_nobody_is_refused),
		WITH_MAPS(a_restart_finds_the_operators_word_and_changes_nothing),
		WITH_MAPS(an_empty_first_answer_after_a_restart_is_held),
		WITH_MAPS(an_instance_that_is_a_listener_of_ours_is_refused),
	};

	log_init(LOG_LEVEL_ERROR, false);
	pinned_enter_namespace();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
