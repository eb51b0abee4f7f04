// SPDX-License-Identifier: MIT
/* From selections to the pinned maps: what is written, in what order, what is not, and what a next agent finds. */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <errno.h>
#include "base/json.h"
#include "pinned.h"
#include "unit.h"

#define NOW    1700000000000000000ULL
#define SECOND 1000000000ULL
#define MINUTE (60 * SECOND)

static struct load *load;
static struct maps *maps;
static struct publish *publish;
static uint32_t service;

static const struct pinned_instance three[] = {
	{.at = "10.0.0.1:80", .weight = 1}, {.at = "10.0.0.2:80", .weight = 2}, {.at = "10.0.0.3:80", .weight = 7}};

static int set_up(void **state)
{
	(void)state;
	load = pinned_load();
	maps = load_maps(load);
	publish = publish_new(maps);
	return !publish || pinned_service(publish, "orders", "10.9.0.1:80", 0, &service);
}

static int tear_down(void **state)
{
	(void)state;
	publish_free(publish);
	load_close(load);
	pinned_remove();
	return 0;
}

/* The agent dies and another one adopts what is pinned. */
static void restart(void)
{
	publish_free(publish);
	load_close(load);
	load = pinned_load();
	assert_true(load_adopted(load));
	maps = load_maps(load);
	publish = publish_new(maps);
	assert_non_null(publish);
}

static struct publish_stats put(const struct pinned_instance *list, size_t n, uint64_t now_ns)
{
	struct publish_stats stats;

	assert_int_equal(pinned_publish(publish, service, list, n, now_ns, &stats), 0);
	return stats;
}

static uint32_t table_length(uint32_t id)
{
	return SY_TABLE_LEN(maps->services[id].table);
}

static double number(const cJSON *o, const char *key)
{
	double value = -1;

	assert_true(json_number(o, key, &value) || cJSON_IsRaw(cJSON_GetObjectItem(o, key)));
	if (cJSON_IsRaw(cJSON_GetObjectItem(o, key)))
		value = strtod(cJSON_GetObjectItem(o, key)->valuestring, NULL);
	return value;
}

static void weights_to_cumulative(void **state)
{
	struct inspect *i = inspect_over(maps);
	_cleanup_json_ cJSON *table = NULL, *backends = NULL;
	const cJSON *slots;

	(void)state;
	assert_true(put(three, 3, NOW).table_written);
	table = inspect_table(i, service);
	slots = cJSON_GetObjectItem(table, "slots");
	assert_string_equal(json_string(table, "service"), "DEFAULT_GROUP@@orders");
	assert_int_equal(cJSON_GetArraySize(slots), 3);
	assert_true(number(cJSON_GetArrayItem(slots, 0), "cumulative") == 0.1);
	assert_true(number(cJSON_GetArrayItem(slots, 1), "cumulative") == 0.3);
	assert_true(number(cJSON_GetArrayItem(slots, 2), "cumulative") == 1.0);
	assert_true(number(cJSON_GetArrayItem(slots, 2), "bound") == 4294967295.0);
	assert_true(number(cJSON_GetArrayItem(slots, 2), "share") == 0.7);
	backends = inspect_backends(i, -1);
	assert_int_equal(cJSON_GetArraySize(backends), 3);
	assert_string_equal(json_string(cJSON_GetArrayItem(backends, 1), "address"), "10.0.0.2:80");
	assert_string_equal(json_string(cJSON_GetArrayItem(backends, 1), "state"), "up");
	assert_string_equal(json_string(cJSON_GetArrayItem(backends, 1), "reason"), "");
	assert_true(number(cJSON_GetArrayItem(backends, 1), "share") == 0.2);
	inspect_close(i);
}

static void unchanged_writes_nothing(void **state)
{
	const struct pinned_instance reordered[] = {three[2], three[0], three[1]};
	struct publish_stats stats;
	uint64_t before;

	(void)state;
	(void)put(three, 3, NOW);
	before = pinned_digest(maps);
	stats = put(three, 3, NOW + SECOND);
	assert_int_equal(stats.apply_ns, 0);
	assert_false(stats.table_written);
	assert_true(pinned_digest(maps) == before);
	(void)put(reordered, 3, NOW + 2 * SECOND);
	assert_true(pinned_digest(maps) == before);
	publish_tick(publish, NOW + 3 * SECOND);
	assert_true(pinned_digest(maps) == before);
}

static void unhealthy_drains(void **state)
{
	struct pinned_instance list[3];
	struct publish_stats stats;
	uint32_t id;

	(void)state;
	(void)put(three, 3, NOW);
	id = pinned_find(maps, service, "10.0.0.3:80");
	memcpy(list, three, sizeof(list));
	list[2].unhealthy = true;
	stats = put(list, 3, NOW + SECOND);
	assert_int_equal(stats.n_evicted, 1);
	assert_int_equal(SY_WORD_STATE(maps->backends[id].word), SY_DRAINING);
	assert_int_equal(SY_WORD_REASON(maps->backends[id].word), SY_R_UNHEALTHY);
	assert_int_equal(maps->backends[id].since_ns, NOW + SECOND);
	assert_int_equal(table_length(service), 2);
	(void)put(three, 3, NOW + 2 * SECOND);
	assert_int_equal(maps->backends[id].word,
			 SY_BACKEND_WORD(SY_WORD_GEN(maps->backends[id].word), SY_UP, SY_R_NONE));
	assert_int_equal(table_length(service), 3);
}

/* prepare is called for a new backend after evictions and before the table: what it sees then is the order of things.
 */
struct order {
	uint32_t evicted;
	uint64_t table, word;
	bool called;
};

static int look(void *ctx, struct sy_backend *b)
{
	struct order *o = ctx;

	(void)b;
	o->called = true;
	o->table = maps->services[service].table;
	o->word = maps->backends[o->evicted].word;
	return 0;
}

static void eviction_precedes_table(void **state)
{
	const struct pinned_instance next[] = {three[0], {.at = "10.0.0.4:80", .weight = 1}};
	const struct selector_rules rules = {.cluster_fallback_all = true, .family_v4 = true};
	struct order order = {0};
	const struct publish_hooks hooks = {.prepare = look, .ctx = &order};
	struct publish_stats stats;
	uint64_t table;

	(void)state;
	(void)put(three, 3, NOW);
	table = maps->services[service].table;
	order.evicted = pinned_find(maps, service, "10.0.0.3:80");
	publish_set_hooks(publish, &hooks);
	assert_int_equal(pinned_publish_by(publish, service, next, 2, &rules, SY_EVICTED, NOW + SECOND, &stats), 0);
	assert_true(order.called);
	assert_int_equal(SY_WORD_STATE(order.word), SY_EVICTED);
	assert_int_equal(order.table, table);
	assert_int_not_equal(maps->services[service].table, table);
}

static int no_path(void *ctx, struct sy_backend *b)
{
	return *(bool *)ctx && b->addr[3] == inet_addr("10.0.0.2") ? -ENOENT : 0;
}

static void without_a_path_not_picked(void **state)
{
	bool broken = true;
	const struct publish_hooks hooks = {.prepare = no_path, .ctx = &broken};
	uint64_t before;
	uint32_t id;

	(void)state;
	publish_set_hooks(publish, &hooks);
	(void)put(three, 3, NOW);
	id = pinned_find(maps, service, "10.0.0.2:80");
	assert_int_equal(SY_WORD_REASON(maps->backends[id].word), SY_R_NO_PATH);
	assert_int_equal(table_length(service), 2);
	before = pinned_digest(maps);
	(void)put(three, 3, NOW + SECOND);
	assert_true(pinned_digest(maps) == before);
	broken = false;
	(void)put(three, 3, NOW + 2 * SECOND);
	assert_int_equal(SY_WORD_STATE(maps->backends[id].word), SY_UP);
	assert_int_equal(table_length(service), 3);
}

static void id_kept_while_active(void **state)
{
	const struct pinned_instance other[] = {three[0], three[1], {.at = "10.0.0.9:80", .weight = 1}};
	uint32_t id, generation, newcomer;

	(void)state;
	(void)put(three, 3, NOW);
	id = pinned_find(maps, service, "10.0.0.3:80");
	generation = SY_WORD_GEN(maps->backends[id].word);
	maps->loads[id].active = 1;
	maps->counters[id].connections = 5;
	maps->counters[id].packets = 50;
	(void)put(three, 2, NOW + SECOND);
	assert_int_equal(SY_WORD_REASON(maps->backends[id].word), SY_R_GONE);
	publish_tick(publish, NOW + 60 * MINUTE);
	assert_int_equal(pinned_find(maps, service, "10.0.0.3:80"), id);

	maps->loads[id].active = 0;
	publish_tick(publish, NOW + SECOND + 9 * MINUTE);
	assert_int_equal(pinned_find(maps, service, "10.0.0.3:80"), id);
	publish_tick(publish, NOW + SECOND + 10 * MINUTE);
	assert_int_equal(pinned_find(maps, service, "10.0.0.3:80"), 0);
	assert_int_equal(SY_WORD_STATE(maps->backends[id].word), SY_EVICTED);
	assert_int_equal(SY_WORD_GEN(maps->backends[id].word), generation + 1);
	assert_int_equal(maps->services[service].gone_connections, 5);
	assert_int_equal(maps->counters[id].connections, 0);

	(void)put(other, 3, NOW + 20 * MINUTE);
	newcomer = pinned_find(maps, service, "10.0.0.9:80");
	assert_int_equal(newcomer, id);
	assert_int_equal(maps->backends[id].word, SY_BACKEND_WORD(generation + 1, SY_UP, SY_R_NONE));
}

static void reappearing_keeps_id(void **state)
{
	uint32_t id;

	(void)state;
	(void)put(three, 3, NOW);
	id = pinned_find(maps, service, "10.0.0.3:80");
	(void)put(three, 2, NOW + SECOND);
	(void)put(three, 3, NOW + 2 * SECOND);
	assert_int_equal(pinned_find(maps, service, "10.0.0.3:80"), id);
	assert_int_equal(SY_WORD_STATE(maps->backends[id].word), SY_UP);
	publish_tick(publish, NOW + 60 * MINUTE);
	assert_int_equal(pinned_find(maps, service, "10.0.0.3:80"), id);
}

static void restart_changes_nothing(void **state)
{
	const struct pinned_instance list[] = {three[0],
					       three[1],
					       three[2],
					       {.at = "10.0.0.4:80", .weight = 0},
					       {.at = "10.0.0.1:80", .weight = 0.5},
					       {.at = "somewhere:80", .weight = 1},
					       {.at = "somewhere:80", .weight = 1}};
	struct publish_stats stats;
	uint64_t before;
	uint32_t again;

	(void)state;
	(void)put(list, 7, NOW);
	before = pinned_digest(maps);
	restart();
	assert_true(pinned_digest(maps) == before);
	assert_int_equal(pinned_service(publish, "orders", "10.9.0.1:80", 0, &again), 0);
	assert_int_equal(again, service);
	stats = put(list, 7, NOW + SECOND);
	assert_int_equal(stats.n_new, 0);
	assert_int_equal(stats.apply_ns, 0);
	assert_true(pinned_digest(maps) == before);
}

static void restart_finishes_a_table(void **state)
{
	struct publish_stats stats;
	double weight = 5;
	uint32_t id;

	(void)state;
	(void)put(three, 3, NOW);
	/* an agent that died after a weight and before the switch */
	id = pinned_find(maps, service, "10.0.0.1:80");
	memcpy(&maps->backends[id].weight, &weight, sizeof(weight));
	restart();
	assert_int_equal(pinned_service(publish, "orders", "10.9.0.1:80", 0, &service), 0);
	{
		struct pinned_instance list[] = {three[0], three[1], three[2]};

		list[0].weight = 5;
		stats = put(list, 3, NOW + SECOND);
	}
	assert_true(stats.table_written);
}

static void rejected_are_shown(void **state)
{
	const struct pinned_instance list[] = {
		three[0], {.at = "10.0.0.1:80", .weight = 0.5}, {.at = "nowhere", .weight = 1}};
	struct inspect *i = inspect_over(maps);
	_cleanup_json_ cJSON *backends = NULL, *after = NULL;

	(void)state;
	(void)put(list, 3, NOW);
	backends = inspect_backends(i, service);
	assert_int_equal(cJSON_GetArraySize(backends), 3);
	assert_string_equal(json_string(cJSON_GetArrayItem(backends, 1), "reason"), "duplicate");
	assert_string_equal(json_string(cJSON_GetArrayItem(backends, 2), "reason"), "bad-address");
	assert_string_equal(json_string(cJSON_GetArrayItem(backends, 2), "address"), "nowhere");
	assert_int_equal(table_length(service), 1);
	/* they had no flow, so there is nothing to keep of them */
	(void)put(list, 1, NOW + SECOND);
	after = inspect_backends(i, service);
	assert_int_equal(cJSON_GetArraySize(after), 1);
	inspect_close(i);
}

static void empty_is_a_table(void **state)
{
	uint64_t generation;

	(void)state;
	assert_true(put(NULL, 0, NOW).table_written);
	generation = maps->services[service].generation;
	assert_int_equal(generation, 1);
	assert_int_equal(table_length(service), 0);
	(void)put(three, 3, NOW + SECOND);
	(void)put(NULL, 0, NOW + 2 * SECOND);
	assert_int_equal(table_length(service), 0);
	assert_int_equal(SY_TABLE_VER(maps->services[service].table), 3);
}

static void deadline_ends_a_drain(void **state)
{
	struct pinned_instance list[3];
	uint32_t id;

	(void)state;
	assert_int_equal(pinned_service(publish, "orders", "10.9.0.1:80", 30 * SECOND, &service), 0);
	memcpy(list, three, sizeof(list));
	list[2].weight = 0;
	(void)put(three, 3, NOW);
	(void)put(list, 3, NOW + SECOND);
	id = pinned_find(maps, service, "10.0.0.3:80");
	publish_tick(publish, NOW + 30 * SECOND);
	assert_int_equal(SY_WORD_STATE(maps->backends[id].word), SY_DRAINING);
	publish_tick(publish, NOW + 31 * SECOND);
	assert_int_equal(SY_WORD_STATE(maps->backends[id].word), SY_EVICTED);
	assert_int_equal(SY_WORD_REASON(maps->backends[id].word), SY_R_WEIGHT_0);
	/* the registry saying the same again does not begin the drain anew */
	(void)put(list, 3, NOW + 40 * SECOND);
	assert_int_equal(SY_WORD_STATE(maps->backends[id].word), SY_EVICTED);
	(void)put(three, 3, NOW + 50 * SECOND);
	assert_int_equal(SY_WORD_STATE(maps->backends[id].word), SY_UP);
}

static void note_override(void *ctx, const struct endpoint *e, enum override o)
{
	char text[ADDR_TEXT_LEN];

	assert_string_equal(endpoint_format(e, text), "10.0.0.2:80");
	*(enum override *)ctx = o;
}

static void operator_is_remembered(void **state)
{
	enum override found = OVERRIDE_NONE;
	struct endpoint e;
	uint32_t id;

	(void)state;
	(void)put(three, 3, NOW);
	assert_int_equal(endpoint_parse("10.0.0.2:80", &e), 0);
	assert_int_equal(publish_override(publish, service, &e, OVERRIDE_EVICT, NOW + SECOND), 0);
	id = pinned_find(maps, service, "10.0.0.2:80");
	assert_int_equal(SY_WORD_STATE(maps->backends[id].word), SY_EVICTED);
	restart();
	publish_for_each_override(publish, service, note_override, &found);
	assert_int_equal(found, OVERRIDE_EVICT);
	assert_int_equal(endpoint_parse("10.0.0.77:80", &e), 0);
	assert_int_equal(publish_override(publish, service, &e, OVERRIDE_DRAIN, NOW), -ENOENT);
}

static void one_of_5000(void **state)
{
	static struct pinned_instance list[5000];
	static char at[5000][32];
	struct publish_stats stats;
	uint64_t other_table;
	uint32_t other;

	(void)state;
	assert_int_equal(pinned_service(publish, "other", "10.9.0.2:80", 0, &other), 0);
	assert_int_equal(pinned_publish(publish, other, three, 3, NOW, &stats), 0);
	other_table = maps->services[other].table;
	for (unsigned k = 0; k < 5000; k++) {
		snprintf(at[k], sizeof(at[k]), "10.1.%u.%u:8080", k / 250, k % 250);
		list[k] = (struct pinned_instance){.at = at[k], .weight = 1 + k % 7};
	}
	stats = put(list, 5000, NOW);
	assert_int_equal(stats.n_new, 5000);
	print_message("5000 instances: %.1f us\n", (double)stats.apply_ns / 1000);
	list[2500].weight = 3.5;
	stats = put(list, 5000, NOW + SECOND);
	assert_int_equal(stats.n_new + stats.n_evicted + stats.n_gone, 0);
	assert_int_equal(stats.n_changed, 1);
	assert_true(stats.table_written);
	print_message("one changed of 5000: %.1f us\n", (double)stats.apply_ns / 1000);
	assert_int_equal(table_length(service), 5000);
	assert_int_equal(maps->services[other].table, other_table);
}

static void many_switches(void **state)
{
	struct pinned_instance list[3];

	(void)state;
	memcpy(list, three, sizeof(list));
	/* regions go round: each is free again once it has rested */
	for (unsigned k = 0; k < 5000; k++) {
		list[0].weight = 1 + k % 100;
		assert_true(put(list, 3, NOW + k).table_written || !k);
	}
	assert_int_equal(maps->services[service].generation, 5000);
}

static void listener_has_one_owner(void **state)
{
	struct sy_listener_key key = {.addr = inet_addr("10.9.0.1"), .port = htons(80), .proto = IPPROTO_TCP};
	struct sy_listener value;
	uint32_t other, n = 0;

	(void)state;
	assert_int_equal(pinned_service(publish, "other", "10.9.0.1:80", 0, &other), -EEXIST);
	assert_int_equal(pinned_service(publish, "other", "10.9.0.1:81", 0, &other), 0);
	assert_int_equal(bpf_map_lookup_elem(maps->fd_vips4, &key.addr, &n), 0);
	assert_int_equal(n, 2);
	publish_service_remove(publish, other);
	assert_int_equal(bpf_map_lookup_elem(maps->fd_vips4, &key.addr, &n), 0);
	assert_int_equal(n, 1);
	/* its other listener */
	assert_int_equal(pinned_service(publish, "orders", "10.9.0.7:80", 0, &other), 0);
	assert_int_equal(bpf_map_lookup_elem(maps->fd_listeners4, &key, &value), -ENOENT);
	assert_int_equal(bpf_map_lookup_elem(maps->fd_vips4, &key.addr, &n), -ENOENT);
	/* after a restart the first service that asks gets it from one that nobody has claimed */
	restart();
	assert_int_equal(pinned_service(publish, "renamed", "10.9.0.7:80", 0, &other), 0);
	publish_remove_unclaimed(publish);
	key.addr = inet_addr("10.9.0.7");
	assert_int_equal(bpf_map_lookup_elem(maps->fd_listeners4, &key, &value), 0);
	assert_int_equal(value.service, other);
	assert_int_equal(bpf_map_lookup_elem(maps->fd_vips4, &key.addr, &n), 0);
	assert_int_equal(n, 1);
}

static void removed_service_outlives_flows(void **state)
{
	struct sy_service_info info;
	uint32_t id, other;

	(void)state;
	(void)put(three, 3, NOW);
	id = pinned_find(maps, service, "10.0.0.3:80");
	maps->loads[id].active = 1;
	publish_service_remove(publish, service);
	assert_int_equal(SY_WORD_STATE(maps->backends[id].word), SY_DRAINING);
	assert_int_equal(table_length(service), 0);
	publish_tick(publish, NOW + SECOND);
	assert_int_equal(pinned_find(maps, service, "10.0.0.1:80"), 0);
	assert_int_equal(pinned_find(maps, service, "10.0.0.3:80"), id);
	/* its id is not given to another meanwhile, not even by the next agent */
	restart();
	assert_int_equal(pinned_service(publish, "other", "10.9.0.1:80", 0, &other), 0);
	assert_int_not_equal(other, service);
	maps->loads[id].active = 0;
	publish_tick(publish, NOW + 2 * SECOND);
	assert_int_equal(pinned_find(maps, service, "10.0.0.3:80"), 0);
	assert_int_equal(bpf_map_lookup_elem(maps->fd_service_info, &service, &info), -ENOENT);
}

static void endpoint_is_shared(void **state)
{
	struct publish_stats stats;
	uint32_t other, a, b;

	(void)state;
	assert_int_equal(pinned_service(publish, "other", "10.9.0.2:80", 0, &other), 0);
	(void)put(three, 3, NOW);
	assert_int_equal(pinned_publish(publish, other, three, 2, NOW, &stats), 0);
	a = pinned_find(maps, service, "10.0.0.1:80");
	b = pinned_find(maps, other, "10.0.0.1:80");
	assert_int_not_equal(a, b);
	assert_int_not_equal(maps->backends[a].endpoint, 0);
	assert_int_equal(maps->backends[a].endpoint, maps->backends[b].endpoint);
	assert_int_not_equal(maps->backends[a].endpoint,
			     maps->backends[pinned_find(maps, service, "10.0.0.2:80")].endpoint);
}

static void least_timeout(void **state)
{
	const struct service_key key = {.registry = "test", .ns = "", .group = "DEFAULT_GROUP", .name = "quick"};
	struct service_settings set = {0};
	uint32_t before = maps->config->min_timeout, id;

	(void)state;
	assert_int_equal(before, 10 * maps->config->hz);
	for (unsigned t = 0; t < SY_N_TIMEOUTS; t++)
		set.timeout_ns[t] = 2 * SECOND;
	assert_int_equal(publish_service(publish, &key, &set, &id), 0);
	assert_int_equal(maps->config->min_timeout, 2 * maps->config->hz);
	publish_service_remove(publish, id);
	publish_tick(publish, NOW);
	assert_int_equal(maps->config->min_timeout, before);
}

#define C(sentence, func)                                                                                              \
	{                                                                                                              \
		sentence, func, set_up, tear_down, NULL                                                                \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		C("weights 1, 2, 7 are shown as cumulative 0.1, 0.3, 1.0", weights_to_cumulative),
		C("an unchanged or reordered selection writes no map", unchanged_writes_nothing),
		C("an unhealthy instance drains and comes back", unhealthy_drains),
		C("an eviction is stored before anything is done about the table", eviction_precedes_table),
		C("a backend without a path is not picked until it has one", without_a_path_not_picked),
		C("an id is given out again only without active flows and with a new generation", id_kept_while_active),
		C("an instance that reappears keeps its id", reappearing_keeps_id),
		C("a restart changes nothing: ids, tables, listeners, texts", restart_changes_nothing),
		C("a table that an agent died before switching is written by the next", restart_finishes_a_table),
		C("duplicates and bad addresses are shown with their reason and never picked", rejected_are_shown),
		C("an empty set is a table of length 0", empty_is_a_table),
		C("a drain ends at its deadline and does not begin anew", deadline_ends_a_drain),
		C("the operator's word is found again after a restart", operator_is_remembered),
		C("one changed of 5000 rewrites its own table only", one_of_5000),
		C("thousands of switches in a row find room", many_switches),
		C("a listener has one owner", listener_has_one_owner),
		C("a removed service's id waits for its last flow", removed_service_outlives_flows),
		C("services that share an address and port share its endpoint", endpoint_is_shared),
		C("the sweeper's least timeout follows the services", least_timeout),
	};

	pinned_enter_namespace();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
