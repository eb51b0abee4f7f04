// SPDX-License-Identifier: MIT
#include "unit.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "model/service_info.h"
#include <errno.h>
#include <math.h>

static struct snapshot *parse_text(const char *text)
{
	_cleanup_json_ cJSON *json = json_parse(text, strlen(text));
	struct snapshot *s = NULL;
	const char *why = NULL;

	assert_non_null(json);
	if (service_info_parse(json, &s, &why) != 0)
		fail_msg("%s: %s", text, why);
	return s;
}

static void assert_refused(const char *text, const char *sentence)
{
	_cleanup_json_ cJSON *json = json_parse(text, strlen(text));
	struct snapshot *untouched = (struct snapshot *)(uintptr_t)1;
	const char *why = NULL;

	assert_non_null(json);
	assert_int_equal(service_info_parse(json, &untouched, &why), -EINVAL);
	assert_ptr_equal(untouched, (struct snapshot *)(uintptr_t)1);
	assert_string_equal(why, sentence);
	assert_int_equal(service_info_parse(json, &untouched, NULL), -EINVAL);
}

static struct snapshot *parse_file(const char *name)
{
	_cleanup_free_ char *path = NULL, *text = calloc(1, 65536);
	_cleanup_fclose_ FILE *f = NULL;

	assert_true(asprintf(&path, "%s/%s", TEST_DATA, name) > 0);
	f = fopen(path, "re");
	assert_non_null(f);
	assert_non_null(text);
	assert_true(fread(text, 1, 65535, f) > 0);
	return parse_text(text);
}

/* A service of one host with these fields. */
static struct snapshot *parse_host_fields(const char *fields)
{
	_cleanup_free_ char *text = NULL;
	struct snapshot *s;

	assert_true(asprintf(&text, "{\"name\":\"svc\",\"hosts\":[{%s}]}", fields) > 0);
	s = parse_text(text);
	assert_int_equal(s->n_instances, 1);
	return s;
}

static void assert_instance(const struct instance *i, const char *address, double weight)
{
	char buf[ADDR_TEXT_LEN];

	assert_int_equal(i->reject, SY_R_NONE);
	assert_string_equal(endpoint_format(&i->endpoint, buf), address);
	assert_string_equal(i->address_text, address);
	assert_true(i->weight == weight);
}

/* ---- recorded from real servers, whose addresses are all loopback: listed, and refused as backends ---- */

static void recorded_pushes(void **state)
{
	static const char *const files[] = {"nacos-2.5.0-push.json", "nacos-3.1.0-push.json"};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct snapshot *s = parse_file(files[i]);

		assert_string_equal(s->group, "DEFAULT_GROUP");
		assert_string_equal(s->name, "svc1796002633");
		assert_false(s->protection);
		assert_int_equal(s->n_instances, 1);
		assert_int_equal(s->instances[0].reject, SY_R_BAD_ADDRESS);
		assert_string_equal(s->instances[0].address_text, "127.0.0.1:9001");
		assert_string_equal(s->instances[0].instance_id, "127.0.0.1#9001#DEFAULT#DEFAULT_GROUP@@svc1796002633");
		assert_string_equal(s->instances[0].cluster, "DEFAULT");
		assert_true(s->instances[0].weight == 2.5);
		assert_true(s->instances[0].healthy && s->instances[0].enabled);
		snapshot_free(s);
	}
}

static void recorded_others(void **state)
{
	struct snapshot *s;

	(void)state;
	s = parse_file("nacos-2.5.0-protection.json");
	assert_true(s->protection);
	assert_int_equal(s->n_instances, 3);
	snapshot_free(s);

	s = parse_file("nacos-3.1.0-three-hosts.json");
	assert_int_equal(s->n_instances, 3);
	assert_true(s->instances[0].weight + s->instances[1].weight + s->instances[2].weight == 6);
	snapshot_free(s);

	s = parse_file("nacos-2.5.0-host-name.json");
	assert_string_equal(s->instances[0].address_text, "not-an-ip:9012");
	assert_int_equal(s->instances[0].reject, SY_R_BAD_ADDRESS);
	snapshot_free(s);

	s = parse_file("nacos-2.5.0-negative-weight.json");
	assert_string_equal(s->instances[0].address_text, "127.0.0.1:9003");
	assert_int_equal(s->n_instances, 1);
	snapshot_free(s);

	s = parse_file("nacos-2.5.0-udp.json"); /* GROUP@@name, no groupName */
	assert_string_equal(s->group, "DEFAULT_GROUP");
	assert_string_equal(s->name, "udp1796001977");
	snapshot_free(s);

	s = parse_file("nacos-2.5.0-empty.json");
	assert_int_equal(s->n_instances, 0);
	snapshot_free(s);

	s = parse_file("rnacos-0.8.8-push.json");
	assert_string_equal(s->instances[0].instance_id, "127.0.0.1#9001");
	snapshot_free(s);
}

/* ---- fields ---- */

static void defaults(void **state)
{
	static const char *const forms[] = {
		"\"ip\":\"10.0.0.1\",\"port\":80",
		"\"ip\":\"10.0.0.1\",\"port\":80,\"weight\":null,\"healthy\":null,\"enabled\":null,\"clusterName\":"
		"null,"
		"\"instanceId\":null,\"metadata\":null",
	};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct snapshot *s = parse_host_fields(forms[i]);

		assert_instance(&s->instances[0], "10.0.0.1:80", 1);
		assert_true(s->instances[0].healthy && s->instances[0].enabled);
		assert_string_equal(s->instances[0].cluster, "DEFAULT");
		assert_string_equal(s->instances[0].instance_id, "");
		snapshot_free(s);
	}
}

static void good_weights(void **state)
{
	static const struct {
		const char *text;
		double weight;
	} cases[] = {
		{"1", 1},
		{"1.0", 1},
		{"1e0", 1},
		{"0", 0},
		{"0.0", 0},
		{"-0.0", 0},
		{"0.5", 0.5},
		{"1.5", 1.5},
		{"0.01", 0.01},
		{"20000.0", 20000},
		{"1e308", 1e308},
		{"5e-324", 5e-324},
		{"0.10000000149011612", 0.10000000149011612},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		_cleanup_free_ char *fields = NULL;
		struct snapshot *s;

		assert_true(asprintf(&fields, "\"ip\":\"10.0.0.1\",\"port\":80,\"weight\":%s", cases[i].text) > 0);
		s = parse_host_fields(fields);
		assert_instance(&s->instances[0], "10.0.0.1:80", cases[i].weight);
		assert_false(signbit(s->instances[0].weight));
		snapshot_free(s);
	}
}

static void bad_weights(void **state)
{
	static const char *const cases[] = {"\"NaN\"", "\"Infinity\"", "\"-Infinity\"", "\"20\"", "-5.0", "-5e-324",
					    "1e400",   "-1e400",       "true",		"false",  "{}",	  "[1]"};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		_cleanup_free_ char *text = NULL;
		struct snapshot *s;

		assert_true(asprintf(&text,
				     "{\"name\":\"svc\",\"hosts\":[{\"ip\":\"10.0.0.1\",\"port\":80,\"weight\":%s},"
				     "{\"ip\":\"10.0.0.2\",\"port\":80,\"weight\":3}]}",
				     cases[i]) > 0);
		s = parse_text(text);
		assert_int_equal(s->instances[0].reject, SY_R_BAD_WEIGHT);
		assert_string_equal(s->instances[0].address_text, "10.0.0.1:80");
		assert_int_equal(s->instances[0].endpoint.port, 80);
		assert_instance(&s->instances[1], "10.0.0.2:80", 3);
		snapshot_free(s);
	}
}

static void marks(void **state)
{
	static const struct {
		const char *text;
		bool value;
	} cases[] = {{"true", true},	  {"false", false}, {"null", true}, {"\"false\"", false},
		     {"\"true\"", false}, {"0", false},	    {"1", false},   {"[]", false}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		_cleanup_free_ char *fields = NULL;
		struct snapshot *s;

		assert_true(asprintf(&fields, "\"ip\":\"10.0.0.1\",\"port\":80,\"healthy\":%s", cases[i].text) > 0);
		s = parse_host_fields(fields);
		assert_int_equal(s->instances[0].healthy, cases[i].value);
		assert_true(s->instances[0].enabled);
		snapshot_free(s);
		memcpy(strstr(fields, "healthy"), "enabled", 7);
		s = parse_host_fields(fields);
		assert_int_equal(s->instances[0].enabled, cases[i].value);
		assert_true(s->instances[0].healthy);
		snapshot_free(s);
	}
}

static void ipv6(void **state)
{
	struct snapshot *s = parse_text("{\"name\":\"svc\",\"hosts\":[{\"ip\":\"fd00::1\",\"port\":80},"
					"{\"ip\":\"[fd00::1]\",\"port\":80},{\"ip\":\"FD00:0:0::0001\",\"port\":80}]}");

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(s->instances[i].reject, SY_R_NONE);
		assert_int_equal(endpoint_compare(&s->instances[0].endpoint, &s->instances[i].endpoint), 0);
	}
	assert_string_equal(s->instances[0].address_text, "[fd00::1]:80");
	snapshot_free(s);
}

static void bad_addresses(void **state)
{
	static const struct {
		const char *fields, *text;
	} cases[] = {
		{"\"ip\":\"svc.example\",\"port\":80", "svc.example:80"},
		{"\"ip\":\"10.0.0.1\",\"port\":0", "10.0.0.1:0"},
		{"\"ip\":\"10.0.0.1\",\"port\":70000", "10.0.0.1:70000"},
		{"\"ip\":\"10.0.0.1\",\"port\":65536", "10.0.0.1:65536"},
		{"\"ip\":\"10.0.0.1\",\"port\":-1", "10.0.0.1:-1"},
		{"\"ip\":\"10.0.0.1\",\"port\":80.5", "10.0.0.1:80.5"},
		{"\"ip\":\"10.0.0.1\",\"port\":1e400", "10.0.0.1:inf"},
		{"\"ip\":\"10.0.0.1\",\"port\":\"80\"", "10.0.0.1:80"},
		{"\"ip\":\"10.0.0.1\",\"port\":null", "10.0.0.1:?"},
		{"\"ip\":\"10.0.0.1\"", "10.0.0.1:?"},
		{"\"port\":80", "?:80"},
		{"\"ip\":\"\",\"port\":80", ":80"},
		{"\"ip\":null,\"port\":80", "?:80"},
		{"\"ip\":167772161,\"port\":80", "?:80"},
		{"\"ip\":\"10.0.0\",\"port\":80", "10.0.0:80"},
		{"\"ip\":\"10.0.0.01\",\"port\":80", "10.0.0.01:80"},
		{"\"ip\":\" 10.0.0.1\",\"port\":80", " 10.0.0.1:80"},
		{"\"ip\":\"10.0.0.1/24\",\"port\":80", "10.0.0.1/24:80"},
		{"\"ip\":\"127.0.0.1\",\"port\":80", "127.0.0.1:80"},
		{"\"ip\":\"0.0.0.0\",\"port\":80", "0.0.0.0:80"},
		{"\"ip\":\"224.0.0.1\",\"port\":80", "224.0.0.1:80"},
		{"\"ip\":\"255.255.255.255\",\"port\":80", "255.255.255.255:80"},
		{"\"ip\":\"::1\",\"port\":80", "[::1]:80"},
		{"\"ip\":\"fe80::1%eth0\",\"port\":80", "[fe80::1%eth0]:80"},
		{"\"ip\":\"[10.0.0.1]\",\"port\":80", "[10.0.0.1]:80"},
		{"\"ip\":\"a\\nb\\u001b[1m\\u00e9\",\"port\":80", "a?b?[1m??:80"},
		{"\"ip\":\"0123456789012345678901234567890123456789012345678901234567890123456789\",\"port\":80",
		 "012345678901234567890123456789012345678901234567890123456789012"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct snapshot *s = parse_host_fields(cases[i].fields);

		assert_int_equal(s->instances[0].reject, SY_R_BAD_ADDRESS);
		assert_string_equal(s->instances[0].address_text, cases[i].text);
		snapshot_free(s);
	}
}

static void bad_host_costs_itself(void **state)
{
	struct snapshot *s =
		parse_text("{\"name\":\"svc\",\"hosts\":[null,7,\"x\",[],{},{\"ip\":\"10.0.0.1\",\"port\":80}]}");

	(void)state;
	assert_int_equal(s->n_instances, 6);
	for (size_t i = 0; i < 5; i++) {
		assert_int_equal(s->instances[i].reject, SY_R_BAD_ADDRESS);
		assert_string_equal(s->instances[i].address_text, "?:?");
	}
	assert_instance(&s->instances[5], "10.0.0.1:80", 1);
	snapshot_free(s);
}

static void bad_address_outweighs_bad_weight(void **state)
{
	struct snapshot *s = parse_host_fields("\"ip\":\"svc.example\",\"port\":80,\"weight\":\"NaN\"");

	(void)state;
	assert_int_equal(s->instances[0].reject, SY_R_BAD_ADDRESS);
	snapshot_free(s);
}

static void clusters(void **state)
{
	static const struct {
		const char *text, *cluster;
	} cases[] = {
		{"\"\"", ""},
		{"\"BJ/\\u5317\\u4eac @@ x\"", "BJ/北京 @@ x"},
		{"7", "DEFAULT"},
		/* 21 characters of three bytes are 63; the 22nd goes whole */
		{"\"北北北北北北北北北北北北北北北北北北北北北北\"", "北北北北北北北北北北北北北北北北北北北北北"},
		{"\"x北北北北北北北北北北北北北北北北北北北北北\"", "x北北北北北北北北北北北北北北北北北北北北"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		_cleanup_free_ char *fields = NULL;
		struct snapshot *s;

		assert_true(asprintf(&fields, "\"ip\":\"10.0.0.1\",\"port\":80,\"clusterName\":%s", cases[i].text) > 0);
		s = parse_host_fields(fields);
		assert_string_equal(s->instances[0].cluster, cases[i].cluster);
		snapshot_free(s);
	}
}

static void names(void **state)
{
	static const struct {
		const char *fields, *group, *name;
	} cases[] = {
		{"\"name\":\"svc\"", "DEFAULT_GROUP", "svc"},
		{"\"name\":\"svc\",\"groupName\":null", "DEFAULT_GROUP", "svc"},
		{"\"name\":\"svc\",\"groupName\":\"\"", "DEFAULT_GROUP", "svc"},
		{"\"name\":\"svc\",\"groupName\":\"G\"", "G", "svc"},
		{"\"name\":\"DEFAULT_GROUP@@svc\",\"groupName\":null", "DEFAULT_GROUP", "svc"},
		{"\"name\":\"G@@svc\"", "G", "svc"},
		{"\"name\":\"G@@svc\",\"groupName\":\"G\"", "G", "svc"},
		{"\"name\":\"G@@svc\",\"groupName\":\"H\"", "H", "svc"},
		{"\"name\":\"a@@b@@c\"", "a", "b@@c"},
		{"\"name\":\"@@svc\"", "DEFAULT_GROUP", "svc"},
		{"\"name\":\"a/b:c\\u2010\"", "DEFAULT_GROUP", "a/b:c\xe2\x80\x90"},
		{"\"name\":\"SVC\"", "DEFAULT_GROUP", "SVC"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		_cleanup_free_ char *text = NULL;
		struct snapshot *s;

		assert_true(asprintf(&text, "{%s,\"hosts\":[]}", cases[i].fields) > 0);
		s = parse_text(text);
		assert_string_equal(s->group, cases[i].group);
		assert_string_equal(s->name, cases[i].name);
		snapshot_free(s);
	}
}

static void not_a_service_info(void **state)
{
	(void)state;
	assert_refused("{\"name\":\"svc\"}", "it has no hosts");
	assert_refused("{\"name\":\"svc\",\"hosts\":null}", "it has no hosts");
	assert_refused("{\"name\":\"svc\",\"hosts\":{}}", "its hosts are not a list");
	assert_refused("{\"name\":\"svc\",\"hosts\":\"[]\"}", "its hosts are not a list");
	assert_refused("{\"hosts\":[]}", "it has no name");
	assert_refused("{\"name\":7,\"hosts\":[]}", "it has no name");
	assert_refused("{\"name\":\"\",\"hosts\":[]}", "it has no name");
	assert_refused("{\"name\":\"G@@\",\"hosts\":[]}", "it has no name");
	assert_refused("[]", "it is not an object");
	assert_refused("null", "it is not an object");
	assert_int_equal(service_info_parse(NULL, NULL, NULL), -EINVAL);
}

static void times_do_not_count(void **state)
{
	struct snapshot *a =
		parse_text("{\"name\":\"svc\",\"hosts\":[{\"ip\":\"10.0.0.1\",\"port\":80}],\"lastRefTime\":0}");
	struct snapshot *b =
		parse_text("{\"name\":\"svc\",\"hosts\":[{\"ip\":\"10.0.0.1\",\"port\":80,\"unknown\":[{}]}],"
			   "\"lastRefTime\":1796002634462,\"unknown\":{\"a\":[1]},\"checksum\":\"x\"}");

	(void)state;
	assert_true(snapshot_equal(a, b));
	snapshot_free(a);
	snapshot_free(b);
}

static void great_metadata(void **state)
{
	_cleanup_free_ char *text = NULL, *value = malloc((1 << 20) + 1);
	struct snapshot *s;

	(void)state;
	assert_non_null(value);
	memset(value, 'x', 1 << 20);
	value[1 << 20] = '\0';
	assert_true(asprintf(&text,
			     "{\"name\":\"svc\",\"hosts\":[{\"ip\":\"10.0.0.1\",\"port\":80,\"metadata\":{\"k\":\"%s\","
			     "\"null\":null,\"zero\":\"a\\u0000b\"}}]}",
			     value) > 0);
	s = parse_text(text);
	assert_instance(&s->instances[0], "10.0.0.1:80", 1);
	snapshot_free(s);
}

static void five_thousand_hosts(void **state)
{
	_cleanup_free_ char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	struct snapshot *s;

	(void)state;
	assert_non_null(f);
	(void)fprintf(f, "{\"name\":\"svc\",\"hosts\":[");
	for (unsigned i = 0; i < 5000; i++)
		(void)fprintf(f, "%s{\"ip\":\"10.0.%u.%u\",\"port\":80,\"weight\":%u}", i ? "," : "", i / 250,
			      i % 250 + 1, i);
	(void)fprintf(f, "]}");
	assert_int_equal(fclose(f), 0);
	s = parse_text(text);
	assert_int_equal(s->n_instances, 5000);
	assert_instance(&s->instances[4999], "10.0.19.250:80", 4999);
	snapshot_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE("pushes of Nacos 2.5.0 and 3.1.0 are read", recorded_pushes),
		CASE("protection, UDP, empty and r-nacos bodies are read", recorded_others),
		CASE("missing and null fields take Nacos's defaults", defaults),
		CASE("any finite number of 0 or more is a weight", good_weights),
		CASE("text, NaN, infinite and negative weights cost that host its place", bad_weights),
		CASE("healthy and enabled are false unless true, null or absent", marks),
		CASE("an IPv6 address with and without brackets is one backend", ipv6),
		CASE("a host name, a bad port and an unusable address are listed as bad", bad_addresses),
		CASE("a host that is no object costs itself only", bad_host_costs_itself),
		CASE("an entry with a bad address and a bad weight has a bad address",
		     bad_address_outweighs_bad_weight),
		CASE("a cluster is any string, cut at 63 bytes between characters", clusters),
		CASE("group and name are told apart in every spelling", names),
		CASE("what is not a ServiceInfo is refused with a sentence", not_a_service_info),
		CASE("lastRefTime and unknown fields are no content", times_do_not_count),
		CASE("a megabyte of metadata is passed over", great_metadata),
		CASE("5,000 hosts in one push are read", five_thousand_hosts),
	};

	return cmocka_run_group_tests_name("service_info", tests, NULL, NULL);
}
