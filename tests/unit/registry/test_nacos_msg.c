// SPDX-License-Identifier: MIT
/* Bodies in data/nacos were recorded from Nacos 2.5.0, 3.1.0 and r-nacos 0.8.8: {"type", "body"}. */
#include <errno.h>
#include "unit.h"
#include "base/cleanup.h"
#include "registry/nacos_msg.h"
#include "nacos_payload.pb-c.h"

DEFINE_CLEANUP(struct snapshot *, snapshot_free)

/* The recorded message, over the wire form and back. */
static struct nacos_msg recorded(const char *name)
{
	_cleanup_(nacos_bytes_done) struct nacos_bytes wire = {0};
	_cleanup_json_ cJSON *file = NULL;
	struct nacos_msg m = {0};
	const char *why = "";
	char path[512], text[16384];
	FILE *f;

	snprintf(path, sizeof(path), TEST_DATA "/nacos/%s.json", name);
	f = fopen(path, "r");
	assert_non_null(f);
	file = json_parse(text, fread(text, 1, sizeof(text), f));
	fclose(f);
	assert_non_null(file);
	assert_int_equal(nacos_msg_pack(json_string(file, "type"), cJSON_GetObjectItem(file, "body"), &wire), 0);
	assert_int_equal(nacos_msg_parse(wire.data, wire.size, &m, &why), 0);
	return m;
}

static void kinds(void **state)
{
	static const struct {
		const char *name;
		enum nacos_msg_type type;
	} rows[] = {
		{"2.5.0-server-check", NACOS_MSG_SERVER_CHECK_RESPONSE},
		{"2.5.0-setup-ack", NACOS_MSG_SETUP_ACK},
		{"3.1.0-setup-ack", NACOS_MSG_SETUP_ACK},
		{"2.5.0-subscribed", NACOS_MSG_SUBSCRIBE_RESPONSE},
		{"2.5.0-notify", NACOS_MSG_NOTIFY},
		{"3.1.0-notify", NACOS_MSG_NOTIFY},
		{"rnacos-0.8.8-notify", NACOS_MSG_NOTIFY},
		{"2.5.0-query", NACOS_MSG_QUERY_RESPONSE},
		{"2.5.0-detection", NACOS_MSG_DETECTION},
		{"2.5.0-reset", NACOS_MSG_RESET},
		{"2.5.0-unregistered", NACOS_MSG_ERROR_RESPONSE},
		{"2.5.0-health", NACOS_MSG_HEALTH_RESPONSE},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct nacos_msg m = recorded(rows[i].name);

		print_message("%s\n", rows[i].name);
		assert_int_equal(m.type, rows[i].type);
		nacos_msg_done(&m);
	}
}

static void lists(void **state)
{
	static const struct {
		const char *name;
		size_t n;
		double weight;
	} rows[] = {
		{"2.5.0-subscribed", 1, 2.5}, {"2.5.0-notify", 1, 2.5},	       {"2.5.0-notify-empty", 0, 0},
		{"3.1.0-notify", 1, 2.5},     {"rnacos-0.8.8-notify", 1, 1.0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		_cleanup_(nacos_msg_done) struct nacos_msg m = recorded(rows[i].name);
		_cleanup_(snapshot_freep) struct snapshot *s = NULL;
		const char *why = "";

		print_message("%s\n", rows[i].name);
		assert_int_equal(nacos_msg_snapshot(&m, &s, &why), 0);
		assert_string_equal(s->group, "DEFAULT_GROUP");
		assert_int_equal(s->n_instances, rows[i].n);
		if (rows[i].n)
			assert_true(s->instances[0].weight == rows[i].weight);
	}
}

static void refusals(void **state)
{
	static const struct {
		const char *name;
		int error;
	} rows[] = {
		{"2.5.0-subscribed", 0},	  {"2.5.0-health", 0},	    {"2.5.0-unregistered", 301},
		{"2.5.0-no-handler", 302},	  {"2.5.0-forbidden", 403}, {"3.1.0-forbidden", 403},
		{"rnacos-0.8.8-server-check", 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		_cleanup_(nacos_msg_done) struct nacos_msg m = recorded(rows[i].name);
		_cleanup_(snapshot_freep) struct snapshot *s = NULL;
		const char *why = "";

		print_message("%s\n", rows[i].name);
		assert_int_equal(nacos_msg_error(&m, &why), rows[i].error);
		if (rows[i].error) {
			assert_true(*why);
			assert_int_equal(nacos_msg_snapshot(&m, &s, &why), -EINVAL);
			assert_null(s);
		}
	}
}

static void odd_refusals(void **state)
{
	static const struct {
		const char *body;
		int error;
	} rows[] = {
		{"{}", EBADMSG},
		{"{\"resultCode\":\"200\"}", EBADMSG},
		{"{\"resultCode\":null}", EBADMSG},
		{"{\"resultCode\":500}", 500},
		{"{\"resultCode\":500,\"errorCode\":0}", 500},
		{"{\"resultCode\":-1,\"errorCode\":-401}", EBADMSG},
		{"{\"resultCode\":1e300,\"errorCode\":1e300}", EBADMSG},
		{"{\"resultCode\":200.0}", 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		_cleanup_(nacos_msg_done) struct nacos_msg m = {.body = json_parse(rows[i].body, strlen(rows[i].body))};
		const char *why = "";

		print_message("%s\n", rows[i].body);
		assert_int_equal(nacos_msg_error(&m, &why), rows[i].error);
	}
}

static void negotiation(void **state)
{
	_cleanup_(nacos_msg_done) struct nacos_msg with = recorded("2.5.0-server-check");
	_cleanup_(nacos_msg_done) struct nacos_msg without = recorded("rnacos-0.8.8-server-check");

	(void)state;
	assert_true(nacos_msg_negotiates(&with));
	assert_false(nacos_msg_negotiates(&without));
}

static void answers(void **state)
{
	static const struct {
		const char *name, *type, *id;
	} rows[] = {
		{"2.5.0-notify", "NotifySubscriberResponse", "1"},
		{"2.5.0-detection", "ClientDetectionResponse", "18"},
		{"2.5.0-reset", "ConnectResetResponse", "20"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		_cleanup_(nacos_msg_done) struct nacos_msg m = recorded(rows[i].name), answer = {0};
		_cleanup_(nacos_bytes_done) struct nacos_bytes wire = {0};
		const char *why = "";

		assert_int_equal(nacos_msg_answer(&m, &wire), 0);
		assert_int_equal(nacos_msg_parse(wire.data, wire.size, &answer, &why), 0);
		assert_string_equal(answer.type_name, rows[i].type);
		assert_string_equal(nacos_msg_request_id(&answer), rows[i].id);
		assert_int_equal(nacos_msg_error(&answer, &why), 0);
	}
}

static void no_answers(void **state)
{
	_cleanup_(nacos_msg_done) struct nacos_msg ack = recorded("2.5.0-setup-ack");
	struct nacos_msg other = {.type = NACOS_MSG_OTHER};
	struct nacos_bytes wire = {0};

	(void)state;
	assert_int_equal(nacos_msg_answer(&ack, &wire), -EINVAL);
	assert_int_equal(nacos_msg_answer(&other, &wire), -EINVAL);
	assert_null(wire.data);
}

static void reset_targets(void **state)
{
	static const struct {
		const char *body, *host;
		uint16_t port;
	} rows[] = {
		{"{}", "", 0},
		{"{\"serverIp\":null,\"serverPort\":null}", "", 0},
		{"{\"serverIp\":\"10.0.0.6\",\"serverPort\":\"8848\"}", "10.0.0.6", 8848},
		{"{\"serverIp\":\"10.0.0.6\",\"serverPort\":8848}", "10.0.0.6", 8848},
		{"{\"serverIp\":\"10.0.0.6\",\"serverPort\":\"88x\"}", "10.0.0.6", 0},
		{"{\"serverIp\":\"10.0.0.6\",\"serverPort\":99999}", "10.0.0.6", 0},
		{"{\"serverIp\":7,\"serverPort\":true}", "", 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		_cleanup_(nacos_msg_done) struct nacos_msg m = {.body = json_parse(rows[i].body, strlen(rows[i].body))};

		assert_string_equal(nacos_msg_reset_host(&m), rows[i].host);
		assert_int_equal(nacos_msg_reset_port(&m), rows[i].port);
	}
}

/* metadata 2 {type 3, headers 7 {a: b}, clientIp 8, a field 15 that nobody knows}, body 3 {type_url 1, value 2} */
static const uint8_t by_hand[] = "\x12\x1d\x1a\x0fSetupAckRequest\x3a\x06\x0a\x01"
				 "a\x12\x01"
				 "b\x42\x00\x78\x07"
				 "\x1a\x09\x12\x07{\"a\":1}";

static void wire_form(void **state)
{
	struct nacos_msg m = {0};
	const char *why = "";
	double a = 0;

	(void)state;
	assert_int_equal(nacos_msg_parse(by_hand, sizeof(by_hand) - 1, &m, &why), 0);
	assert_int_equal(m.type, NACOS_MSG_SETUP_ACK);
	assert_true(json_number(m.body, "a", &a) && a == 1);
	nacos_msg_done(&m);
}

static void broken_wire(void **state)
{
	struct nacos_msg m = {0};
	const char *why = NULL;

	(void)state;
	/* the cut between the two fields leaves a valid Payload without a body */
	for (size_t size = 0; size < sizeof(by_hand) - 1; size++) {
		_cleanup_free_ uint8_t *exact = malloc(size ? size : 1);

		memcpy(exact, by_hand, size);
		assert_int_equal(nacos_msg_parse(exact, size, &m, &why), -EBADMSG);
		assert_null(m.body);
		assert_true(*why);
	}
}

static void deep_body(void **state)
{
	enum { DEPTH = 10000 };
	Nacos__Metadata metadata = NACOS__METADATA__INIT;
	Nacos__Any any = NACOS__ANY__INIT;
	Nacos__Payload payload = NACOS__PAYLOAD__INIT;
	_cleanup_free_ char *json = malloc(2 * DEPTH + 6);
	_cleanup_free_ uint8_t *wire = NULL;
	struct nacos_msg m = {0};
	const char *why = NULL;
	size_t size;

	(void)state;
	memcpy(json, "{\"a\":", 5);
	memset(json + 5, '[', DEPTH);
	memset(json + 5 + DEPTH, ']', DEPTH);
	json[2 * DEPTH + 5] = '}';
	metadata.type = (char *)"NotifySubscriberRequest";
	any.value.data = (uint8_t *)json;
	any.value.len = 2 * DEPTH + 6;
	payload.metadata = &metadata;
	payload.body = &any;
	size = nacos__payload__get_packed_size(&payload);
	wire = malloc(size);
	nacos__payload__pack(&payload, wire);
	assert_int_equal(nacos_msg_parse(wire, size, &m, &why), -EBADMSG);
}

static cJSON *request(int (*build)(struct nacos_bytes *), const char *type)
{
	_cleanup_(nacos_bytes_done) struct nacos_bytes wire = {0};
	struct nacos_msg m = {0};
	const char *why = "";
	cJSON *body;

	assert_int_equal(build(&wire), 0);
	assert_int_equal(nacos_msg_parse(wire.data, wire.size, &m, &why), 0);
	assert_string_equal(m.type_name, type);
	body = TAKE_PTR(m.body);
	nacos_msg_done(&m);
	return body;
}

static int build_setup(struct nacos_bytes *ret)
{
	return nacos_msg_setup("ns", "steelyard:1", ret);
}

static int build_subscribe(struct nacos_bytes *ret)
{
	return nacos_msg_subscribe("public", "G", "a\"b", true, ret);
}

static int build_query(struct nacos_bytes *ret)
{
	return nacos_msg_query("public", "G", "s", ret);
}

static void requests(void **state)
{
	_cleanup_json_ cJSON *check = request(nacos_msg_server_check, "ServerCheckRequest");
	_cleanup_json_ cJSON *health = request(nacos_msg_health_check, "HealthCheckRequest");
	_cleanup_json_ cJSON *setup = request(build_setup, "ConnectionSetupRequest");
	_cleanup_json_ cJSON *subscribe = request(build_subscribe, "SubscribeServiceRequest");
	_cleanup_json_ cJSON *query = request(build_query, "ServiceQueryRequest");
	const cJSON *labels = cJSON_GetObjectItem(setup, "labels");

	(void)state;
	assert_string_equal(json_string(check, "module"), "internal");
	assert_string_equal(json_string(health, "module"), "internal");
	assert_string_equal(json_string(setup, "tenant"), "ns");
	assert_string_equal(json_string(setup, "clientVersion"), "steelyard:1");
	assert_string_equal(json_string(labels, "source"), "sdk");
	assert_string_equal(json_string(labels, "module"), "naming");
	assert_true(cJSON_IsObject(cJSON_GetObjectItem(setup, "abilityTable")));
	assert_string_equal(json_string(subscribe, "serviceName"), "a\"b");
	assert_string_equal(json_string(subscribe, "groupName"), "G");
	assert_string_equal(json_string(subscribe, "clusters"), "");
	assert_true(json_bool(subscribe, "subscribe", false));
	assert_string_equal(json_string(query, "namespace"), "public");
	assert_false(json_bool(query, "healthyOnly", true));
}

static long cjson_allocs_left = -1; /* before one fails; below 0: never */

static void *cjson_malloc(size_t size)
{
	return cjson_allocs_left >= 0 && cjson_allocs_left-- == 0 ? NULL : malloc(size);
}

static int build_answer(struct nacos_bytes *ret)
{
	struct nacos_msg m = {.type = NACOS_MSG_DETECTION};

	return nacos_msg_answer(&m, ret);
}

static void out_of_memory(void **state)
{
	static int (*const builders[])(struct nacos_bytes *) = {nacos_msg_server_check,
								nacos_msg_health_check,
								build_setup,
								build_subscribe,
								build_query,
								build_answer};
	cJSON_Hooks failing = {cjson_malloc, free};

	(void)state;
	cJSON_InitHooks(&failing);
	for (size_t i = 0; i < sizeof(builders) / sizeof(*builders); i++) {
		int r = -ENOMEM;

		for (long n = 0; r && n < 1000; n++) {
			struct nacos_bytes wire = {0};

			cjson_allocs_left = n;
			r = builders[i](&wire);
			cjson_allocs_left = -1;
			assert_true(r ? r == -ENOMEM && !wire.data : !!wire.data);
			nacos_bytes_done(&wire);
		}
		assert_int_equal(r, 0);
	}
	cJSON_InitHooks(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE("recorded messages are known by their type", kinds),
		CASE("a subscribe answer, a query answer and a push carry a list", lists),
		CASE("a refusal gives its code and reason and never an empty list", refusals),
		CASE("an answer that does not say success is a failure, whatever it says", odd_refusals),
		CASE("a server says whether it will acknowledge the setup", negotiation),
		CASE("each request of the server is answered with its own id", answers),
		CASE("a setup acknowledgement and an unknown request are not answered", no_answers),
		CASE("a reset names a server by text or number, or none", reset_targets),
		CASE("bytes made by hand are read, unknown fields and headers skipped", wire_form),
		CASE("a message cut at any byte is refused", broken_wire),
		CASE("a body nested 10,000 deep is refused", deep_body),
		CASE("requests have the fields that the server reads", requests),
		CASE("running out of memory while building is told and leaves nothing behind", out_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
