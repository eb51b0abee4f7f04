// SPDX-License-Identifier: MIT
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/json.h"
#include "cli/decode.h"
#include "cli/field.h"
#include "sy_abi.h"

static cJSON *decode(const char *kind, const char *value)
{
	cJSON *json = NULL;
	char why[256];

	if (decode_value(kind, value, &json, why, sizeof why))
		fail_msg("%s %s: %s", kind, value, why);
	return json;
}

static uint64_t u64(const cJSON *object, const char *key)
{
	uint64_t n;

	if (!field_u64(cJSON_GetObjectItemCaseSensitive(object, key), &n))
		fail_msg("%s is no number", key);
	return n;
}

static void every_verdict_decodes_by_number_and_by_name(void **state)
{
	(void)state;
	for (unsigned i = 0; i < SY_N_VERDICTS; i++) {
		_cleanup_json_ cJSON *a = NULL, *b = NULL;
		char number[16];

		(void)snprintf(number, sizeof number, "%u", i);
		a = decode("verdict", number);
		assert_int_equal(u64(a, "number"), i);
		assert_true(*field_text(a, "name") && *field_text(a, "text") && *field_text(a, "does"));
		b = decode("verdict", field_text(a, "name"));
		assert_int_equal(u64(b, "number"), i);
	}
}

static void a_verdict_says_what_happened_to_the_packet(void **state)
{
	_cleanup_json_ cJSON *v = decode("verdict", "ttl-expired");

	(void)state;
	assert_string_equal(field_text(v, "kind"), "verdict");
	assert_string_equal(field_text(v, "does"), "drop");
	assert_int_equal(u64(v, "number"), SY_V_TTL);
}

static void lists_are_shown_whole_without_a_value(void **state)
{
	static const struct {
		const char *kind;
		int n;
	} rows[] = {{"verdict", SY_N_VERDICTS},	      {"reason", SY_N_REASONS},	  {"state", 3},
		    {"line-state", SY_N_LINE_STATES}, {"counter", SY_N_COUNTERS}, {"event", SY_N_EVENTS}};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		_cleanup_json_ cJSON *all = decode(rows[i].kind, NULL);

		assert_int_equal(cJSON_GetArraySize(all), rows[i].n);
	}
}

static void a_backend_word_is_read_as_generation_state_and_reason(void **state)
{
	_cleanup_json_ cJSON *json = NULL;
	const cJSON *w;
	char hex[24];

	(void)state;
	(void)snprintf(hex, sizeof hex, "0x%llx",
		       (unsigned long long)SY_BACKEND_WORD(0xfffffff0u, SY_EVICTED, SY_R_CHECK_FAILED));
	json = decode("backend-word", hex);
	w = cJSON_GetObjectItemCaseSensitive(json, "backend-word");
	assert_int_equal(u64(w, "generation"), 0xfffffff0u);
	assert_string_equal(field_text(w, "state"), "evicted");
	assert_string_equal(field_text(w, "reason"), "check-failed");
	assert_int_equal(cJSON_GetArraySize(json), 2); /* the word, and this reading of it alone */
}

static void a_table_word_is_read_as_region_members_and_version(void **state)
{
	_cleanup_json_ cJSON *json = NULL;
	const cJSON *w;
	char hex[24];

	(void)state;
	(void)snprintf(hex, sizeof hex, "%llx", (unsigned long long)SY_TABLE_WORD(3, 4096, 77));
	json = decode("table-word", hex);
	w = cJSON_GetObjectItemCaseSensitive(json, "table-word");
	assert_int_equal(u64(w, "offset_bytes"), 3 * SY_REGION_ALIGN);
	assert_int_equal(u64(w, "members"), 4096);
	assert_int_equal(u64(w, "version"), 77);
}

static void a_line_word_is_read_as_flow_state_and_flags(void **state)
{
	_cleanup_json_ cJSON *json = NULL;
	const cJSON *w;
	char hex[24];

	(void)state;
	(void)snprintf(hex, sizeof hex, "%llx",
		       (unsigned long long)(123456ULL << SY_ID_SHIFT | 2ULL << SY_STRIKE_SHIFT | SY_F_RESET |
					    SY_CLIENT_CLOSED));
	json = decode("line-word", hex);
	w = cJSON_GetObjectItemCaseSensitive(json, "line-word");
	assert_int_equal(u64(w, "flow"), 123456);
	assert_string_equal(field_text(w, "state"), "client-closed");
	assert_true(json_bool(w, "reset", false));
	assert_false(json_bool(w, "reaping", true));
	assert_int_equal(u64(w, "strikes"), 2);
}

static void a_next_hop_is_read_with_its_mac_in_wire_order(void **state)
{
	_cleanup_json_ cJSON *json = decode("next-hop", "0705060504030201");
	const cJSON *w = cJSON_GetObjectItemCaseSensitive(json, "next-hop");

	(void)state;
	assert_string_equal(field_text(w, "mac"), "01:02:03:04:05:06");
	assert_int_equal(u64(w, "slot"), 5);
	assert_int_equal(u64(w, "epoch"), 7);
}

static void a_plain_word_is_read_in_every_way_that_can_hold_it(void **state)
{
	_cleanup_json_ cJSON *small = decode("word", "0x2"), *large = decode("word", "ffffffffffffffff");

	(void)state;
	assert_true(cJSON_HasObjectItem(small, "endpoint-word"));
	assert_true(cJSON_HasObjectItem(small, "backend-flags"));
	assert_true(cJSON_HasObjectItem(small, "isn"));
	assert_false(cJSON_HasObjectItem(large, "endpoint-word"));
	assert_true(cJSON_HasObjectItem(large, "backend-word"));
	assert_string_equal(field_text(cJSON_GetObjectItem(large, "backend-word"), "state"), "unknown");
}

static void what_is_unknown_is_told_apart_from_what_is_no_value(void **state)
{
	static const struct {
		const char *kind, *value;
		int r;
	} rows[] = {
		{"verdict", "9999", -ENOENT},  {"verdict", "18446744073709551616", -EINVAL},
		{"verdict", "-1", -EINVAL},    {"verdict", "no-such-verdict", -EINVAL},
		{"reason", "99", -ENOENT},     {"state", "3", -ENOENT},
		{"nonsense", "1", -EINVAL},    {"word", NULL, -EINVAL},
		{"word", "xyz", -EINVAL},      {"word", "1ffffffffffffffff", -EINVAL},
		{"table-word", "-1", -EINVAL}, {"", "", -EINVAL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		cJSON *json = NULL;
		char why[256] = "";
		int r = decode_value(rows[i].kind, rows[i].value, &json, why, sizeof why);

		if (r != rows[i].r || !*why || json)
			fail_msg("%s %s: %d %s", rows[i].kind, rows[i].value, r, why);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_verdict_decodes_by_number_and_by_name),
		cmocka_unit_test(a_verdict_says_what_happened_to_the_packet),
		cmocka_unit_test(lists_are_shown_whole_without_a_value),
		cmocka_unit_test(a_backend_word_is_read_as_generation_state_and_reason),
		cmocka_unit_test(a_table_word_is_read_as_region_members_and_version),
		cmocka_unit_test(a_line_word_is_read_as_flow_state_and_flags),
		cmocka_unit_test(a_next_hop_is_read_with_its_mac_in_wire_order),
		cmocka_unit_test(a_plain_word_is_read_in_every_way_that_can_hold_it),
		cmocka_unit_test(what_is_unknown_is_told_apart_from_what_is_no_value),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
