// SPDX-License-Identifier: MIT
/* Reports from the pinned maps alone, as `steelyard --json` prints them with the agent dead. */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <errno.h>
#include "base/json.h"
#include "pinned.h"
#include "unit.h"

#define NOW 1700000000000000000ULL

static struct load *load;
static struct maps *maps;
static struct publish *publish;
static uint32_t service;
static char why[512];

static const struct pinned_instance two[] = {{.at = "10.0.0.1:80", .weight = 1, .cluster = "BJ"},
					     {.at = "10.0.0.2:80", .weight = 3}};

static int set_up(void **state)
{
	struct publish_stats stats;

	(void)state;
	load = pinned_load();
	maps = load_maps(load);
	publish = publish_new(maps);
	return !publish || pinned_service(publish, "orders", "10.9.0.1:80", 0, &service) ||
	       pinned_publish(publish, service, two, 2, NOW, &stats);
}

static int tear_down(void **state)
{
	(void)state;
	publish_free(publish);
	load_close(load);
	pinned_remove();
	return 0;
}

/* The report as text, so that its whole shape is compared; the agent is gone by then. */
static char *text_of(cJSON *json)
{
	char *text = cJSON_PrintUnformatted(json);

	assert_non_null(text);
	cJSON_Delete(json);
	return text;
}

static struct inspect *look(void)
{
	struct inspect *i = inspect_open(pinned_dir(), why, sizeof(why));

	assert_non_null(i);
	return i;
}

static struct sy_line *line_at(uint32_t index)
{
	return &maps->groups[index / SY_LINES_PER_GROUP].line[index % SY_LINES_PER_GROUP];
}

/* A flow as the programs leave it, its lines in two groups of their own. */
static void add_flow(uint32_t n, uint64_t state, uint16_t client_port, uint32_t backend)
{
	uint32_t forward = n * 2 * SY_LINES_PER_GROUP, back = forward + SY_LINES_PER_GROUP, zero = 0;
	struct sy_line *f = line_at(forward), *r = line_at(back);
	struct sy_sweep sweep;

	assert_int_equal(bpf_map_lookup_elem(maps->fd_sweep, &zero, &sweep), 0);
	*f = (struct sy_line){.saddr = inet_addr("10.1.0.2"),
			      .daddr = inet_addr("10.9.0.1"),
			      .sport = htons(client_port),
			      .dport = htons(80),
			      .proto = IPPROTO_TCP,
			      .new_saddr = inet_addr("10.2.0.1"),
			      .new_daddr = maps->backends[backend].addr[3],
			      .new_sport = htons((uint16_t)(client_port + 1)),
			      .new_dport = htons(80),
			      .mate = back,
			      .seen = (uint32_t)sweep.jiffies - 1000 * maps->config->hz,
			      .backend = backend,
			      .backend_gen = SY_WORD_GEN(maps->backends[backend].word)};
	*r = (struct sy_line){.saddr = f->new_daddr,
			      .daddr = f->new_saddr,
			      .sport = f->new_dport,
			      .dport = f->new_sport,
			      .proto = IPPROTO_TCP,
			      .mate = forward,
			      .seen = (uint32_t)sweep.jiffies,
			      .backend = backend,
			      .backend_gen = f->backend_gen};
	r->word = (100ULL + n) << SY_ID_SHIFT | SY_USED;
	f->word = (100ULL + n) << SY_ID_SHIFT | state;
}

static void remove_flow(uint32_t n)
{
	line_at(n * 2 * SY_LINES_PER_GROUP)->word = 0;
	line_at((n * 2 + 1) * SY_LINES_PER_GROUP)->word = 0;
}

static void services_without_an_agent(void **state)
{
	struct inspect *i = look();
	cJSON *services, *one;
	double age = 0;

	(void)state;
	maps->counters[pinned_find(maps, service, "10.0.0.1:80")].connections = 9007199254740993ULL;
	services = inspect_services(i);
	one = cJSON_GetArrayItem(services, 0);
	assert_true(json_number(one, "age_s", &age) || cJSON_IsRaw(cJSON_GetObjectItem(one, "age_s")));
	cJSON_DeleteItemFromObject(one, "age_s");
	cJSON_DeleteItemFromObject(one, "apply_us");
	{
		char *text = text_of(services);

		/* 2^53 + 1 is no double */
		assert_string_equal(text,
				    "[{\"service\":\"DEFAULT_GROUP@@orders\",\"listen\":[\"10.9.0.1:80/tcp\"],"
				    "\"mode\":\"full-nat\",\"algorithm\":\"weighted-random\",\"backends\":2,"
				    "\"eligible\":2,\"generation\":1,\"connections\":9007199254740993,\"active\":0,"
				    "\"packets\":0,\"bytes\":0,\"source\":\"live\"}]");
		free(text);
	}
	inspect_close(i);
}

static void backends_with_shares(void **state)
{
	struct inspect *i = look();
	char *text;

	(void)state;
	maps->loads[pinned_find(maps, service, "10.0.0.2:80")].active = 4;
	maps->loads[pinned_find(maps, service, "10.0.0.2:80")].refused = 2;
	text = text_of(inspect_backends(i, service));
	assert_string_equal(text,
			    "[{\"service\":\"DEFAULT_GROUP@@orders\",\"address\":\"10.0.0.1:80\",\"weight\":1,"
			    "\"share\":0.25,\"state\":\"up\",\"reason\":\"\",\"cluster\":\"BJ\",\"connections\":0,"
			    "\"active\":0,\"packets\":0,\"bytes\":0,\"refused\":0},"
			    "{\"service\":\"DEFAULT_GROUP@@orders\",\"address\":\"10.0.0.2:80\",\"weight\":3,"
			    "\"share\":0.75,\"state\":\"up\",\"reason\":\"\",\"cluster\":\"DEFAULT\",\"connections\":0,"
			    "\"active\":4,\"packets\":0,\"bytes\":0,\"refused\":2}]");
	free(text);
	inspect_close(i);
}

static void flows_once_each(void **state)
{
	struct inspect_flow_filter filter = {.service = -1};
	uint32_t a = pinned_find(maps, service, "10.0.0.1:80"), b = pinned_find(maps, service, "10.0.0.2:80");
	struct inspect *i = look();
	cJSON *flows, *flow;
	double idle = -1;

	(void)state;
	add_flow(1, SY_SYN, 5001, a);
	add_flow(2, SY_ESTABLISHED, 5002, b);
	add_flow(3, SY_BACKEND_CLOSED, 5003, b);
	add_flow(4, SY_ESTABLISHED | SY_F_RESET, 5004, b);
	add_flow(5, SY_NEW, 5005, b);
	flows = inspect_flows(i, &filter);
	assert_int_equal(cJSON_GetArraySize(flows), 4);
	flow = cJSON_GetArrayItem(flows, 1);
	assert_string_equal(json_string(flow, "client"), "10.1.0.2:5002");
	assert_string_equal(json_string(flow, "listen"), "10.9.0.1:80");
	assert_string_equal(json_string(flow, "backend"), "10.0.0.2:80");
	assert_string_equal(json_string(flow, "snat"), "10.2.0.1:5003");
	assert_string_equal(json_string(flow, "state"), "established");
	/* its backend was heard just now */
	idle = strtod(cJSON_GetObjectItem(flow, "idle_s")->valuestring
			      ? cJSON_GetObjectItem(flow, "idle_s")->valuestring
			      : "0",
		      NULL);
	assert_true(idle >= 0 && idle < 500);
	assert_string_equal(json_string(cJSON_GetArrayItem(flows, 0), "state"), "syn");
	assert_string_equal(json_string(cJSON_GetArrayItem(flows, 2), "state"), "half-closed");
	assert_string_equal(json_string(cJSON_GetArrayItem(flows, 3), "state"), "reset");
	cJSON_Delete(flows);

	filter.backend = "10.0.0.2";
	filter.limit = 2;
	flows = inspect_flows(i, &filter);
	assert_int_equal(cJSON_GetArraySize(flows), 2);
	cJSON_Delete(flows);
	filter = (struct inspect_flow_filter){.service = service, .client = "10.1.0.2:5004"};
	flows = inspect_flows(i, &filter);
	assert_int_equal(cJSON_GetArraySize(flows), 1);
	cJSON_Delete(flows);
	filter = (struct inspect_flow_filter){.service = service + 1};
	flows = inspect_flows(i, &filter);
	assert_int_equal(cJSON_GetArraySize(flows), 0);
	cJSON_Delete(flows);
	{
		char *text = text_of(inspect_flow_counts(i));

		assert_string_equal(text, "{\"established\":2,\"half_open\":1,\"capacity\":1024}");
		free(text);
	}
	for (uint32_t n = 1; n <= 5; n++)
		remove_flow(n);
	inspect_close(i);
}

static void names_only_as_long_as_needed(void **state)
{
	static const struct service_key keys[] = {{"lab", "", "DEFAULT_GROUP", "orders"},
						  {"nacos", "a", "G", "users"},
						  {"nacos", "b", "G", "users"},
						  {"nacos", "a", "H", "users"}};
	struct service_settings set = {0};
	uint32_t ids[4], found = 0;
	struct inspect *i;

	(void)state;
	for (unsigned t = 0; t < SY_N_TIMEOUTS; t++)
		set.timeout_ns[t] = 60000000000ULL;
	for (unsigned k = 0; k < 4; k++)
		assert_int_equal(publish_service(publish, &keys[k], &set, &ids[k]), 0);
	i = look();
	{
		char *a = inspect_service_name(i, ids[0]), *b = inspect_service_name(i, ids[2]),
		     *c = inspect_service_name(i, ids[3]);

		assert_string_equal(a, "lab/DEFAULT_GROUP@@orders");
		assert_string_equal(b, "nacos/b/G@@users");
		assert_string_equal(c, "H@@users");
		free(a);
		free(b);
		free(c);
	}
	assert_int_equal(inspect_find_service(i, "nacos/b/G@@users", &found, why, sizeof(why)), 0);
	assert_int_equal(found, ids[2]);
	assert_int_equal(inspect_find_service(i, "H@@users", &found, why, sizeof(why)), 0);
	assert_int_equal(found, ids[3]);
	assert_int_equal(inspect_find_service(i, "test/DEFAULT_GROUP@@orders", &found, why, sizeof(why)), 0);
	assert_int_equal(found, service);
	assert_int_equal(inspect_find_service(i, "orders", &found, why, sizeof(why)), -EEXIST);
	assert_non_null(strstr(why, "lab/DEFAULT_GROUP@@orders"));
	assert_int_equal(inspect_find_service(i, "nothing", &found, why, sizeof(why)), -ENOENT);
	inspect_close(i);
}

static void stats_name_every_verdict(void **state)
{
	struct inspect *i = look();
	cJSON *stats = inspect_stats(i), *verdicts = cJSON_GetObjectItem(stats, "verdicts");

	(void)state;
	assert_int_equal(cJSON_GetArraySize(verdicts), SY_N_VERDICTS);
	assert_non_null(cJSON_GetObjectItem(verdicts, "evicted-backend"));
	assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(stats, "counts")), SY_N_COUNTERS);
	cJSON_Delete(stats);
	inspect_close(i);
}

static void every_map_is_decoded(void **state)
{
	struct inspect *i = look();
	cJSON *all, *map;
	unsigned n = 0;

	(void)state;
	add_flow(1, SY_ESTABLISHED, 5001, pinned_find(maps, service, "10.0.0.1:80"));
	all = inspect_maps(i);
	cJSON_ArrayForEach(map, all) {
		double id = 0, layout = 0, used = -1;
		const char *name = json_string(map, "name");

		assert_true(json_number(map, "id", &id) && id > 0);
		assert_true(json_number(map, "layout", &layout) && layout == SY_LAYOUT_VERSION);
		assert_true(json_number(map, "use", &used));
		if (!strcmp(name, "lines") || !strcmp(name, "backends") || !strcmp(name, "backend_info"))
			assert_true(used == 2);
		if (!strcmp(name, "listeners4") || !strcmp(name, "vips4") || !strcmp(name, "config") ||
		    !strcmp(name, "services"))
			assert_true(used == 1);
		n++;
	}
	assert_int_equal(n, 20);
	cJSON_Delete(all);
	remove_flow(1);
	inspect_close(i);
}

static void nothing_pinned_is_told(void **state)
{
	(void)state;
	assert_null(inspect_open("/sys/fs/bpf/sy_test_none", why, sizeof(why)));
	assert_int_equal(errno, ENOENT);
	assert_non_null(strstr(why, "nothing is pinned"));
}

#define C(sentence, func)                                                                                              \
	{                                                                                                              \
		sentence, func, set_up, tear_down, NULL                                                                \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		C("services are told with exact integers", services_without_an_agent),
		C("backends are told with their shares of the published table", backends_with_shares),
		C("flows are told once each, and filtered", flows_once_each),
		C("services are named no longer than needed, and found by any form", names_only_as_long_as_needed),
		C("stats name every verdict", stats_name_every_verdict),
		C("every pinned map is decoded", every_map_is_decoded),
		C("a folder where nothing is pinned is told", nothing_pinned_is_told),
	};

	pinned_enter_namespace();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
