// SPDX-License-Identifier: MIT
#include "unit.h"
#include "base/json.h"
#include "base/utf8.h"
#include <float.h>
#include <math.h>

static bool parses(const char *text, size_t size)
{
	/* a copy with nothing behind it, so that a read past its end is seen */
	_cleanup_free_ char *copy = malloc(size ? size : 1);
	_cleanup_json_ cJSON *json = NULL;

	assert_non_null(copy);
	memcpy(copy, text, size);
	json = json_parse(copy, size);
	return json != NULL;
}

static void one_value(void **state)
{
	static const char *const good[] = {
		"{}", "[]", "null", "1", "\"x\"", " {\"a\":1}\r\n\t ", "{\"a\":{\"b\":[1,2]}}", "\"\\u0041\""};
	static const char *const bad[] = {"",
					  " ",
					  "{",
					  "{}}",
					  "{} x",
					  "{}{}",
					  "[1,]",
					  "{\"a\":}",
					  "nul",
					  "NaN",
					  "Infinity",
					  "[-Infinity]",
					  "{\"a\":NaN}",
					  "'a'",
					  "{a:1}",
					  "\"\\ud800\"",
					  "\"abc",
					  "{\"a\":1",
					  "/**/",
					  "\"\xff\"",
					  "\"\xc0\x80\"",
					  "\"\xed\xa0\x80\"",
					  "\"\xf4\x90\x80\x80\""};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		if (!parses(good[i], strlen(good[i])))
			fail_msg("%s was refused", good[i]);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (parses(bad[i], strlen(bad[i])))
			fail_msg("%s was taken", bad[i]);
	assert_null(json_parse(NULL, 0));
}

static void zeros(void **state)
{
	static const char inside[] = "{\"a\":\"b\0c\"}", behind[] = "{}\0", alone[] = "\0\0\0\0";

	(void)state;
	assert_false(parses(inside, sizeof(inside) - 1));
	assert_false(parses(behind, sizeof(behind) - 1));
	assert_false(parses(alone, 4));
	assert_true(parses(behind, 2)); /* exactly size bytes */
}

static void truncated(void **state)
{
	static const char text[] =
		"{\"name\":\"s\\u00e9\",\"hosts\":[{\"ip\":\"10.0.0.1\",\"port\":80,\"weight\":1.5e0}]}";

	(void)state;
	assert_true(parses(text, sizeof(text) - 1));
	for (size_t n = 0; n < sizeof(text) - 1; n++)
		assert_false(parses(text, n));
}

static void deep(void **state)
{
	enum { DEPTH = 10000 };
	_cleanup_free_ char *arrays = malloc(2 * DEPTH), *objects = malloc(6 * DEPTH);

	(void)state;
	assert_non_null(arrays);
	assert_non_null(objects);
	memset(arrays, '[', DEPTH);
	memset(arrays + DEPTH, ']', DEPTH);
	assert_false(parses(arrays, 2 * DEPTH));
	assert_false(parses(arrays, DEPTH));
	assert_true(parses(arrays + DEPTH - 500, 1000));
	for (size_t i = 0; i < DEPTH; i++)
		memcpy(objects + 5 * i, "{\"a\":", 5);
	memset(objects + 5 * DEPTH, '}', DEPTH);
	assert_false(parses(objects, 6 * DEPTH));
}

static void getters(void **state)
{
	static const char text[] =
		"{\"s\":\"x\",\"n\":-1.5,\"t\":true,\"f\":false,\"null\":null,\"o\":{},\"inf\":1e999}";
	_cleanup_json_ cJSON *json = json_parse(text, sizeof(text) - 1);
	double d = 42;

	(void)state;
	assert_string_equal(json_string(json, "s"), "x");
	assert_null(json_string(json, "S"));
	assert_null(json_string(json, "n"));
	assert_null(json_string(json, "null"));
	assert_null(json_string(NULL, "s"));
	assert_true(json_bool(json, "t", false));
	assert_false(json_bool(json, "f", true));
	for (int otherwise = 0; otherwise < 2; otherwise++) {
		assert_int_equal(json_bool(json, "null", otherwise), otherwise);
		assert_int_equal(json_bool(json, "n", otherwise), otherwise);
		assert_int_equal(json_bool(json, "absent", otherwise), otherwise);
	}
	assert_false(json_number(json, "s", &d));
	assert_false(json_number(json, "absent", &d));
	assert_true(d == 42);
	assert_true(json_number(json, "n", &d) && d == -1.5);
	assert_true(json_number(json, "inf", &d) && isinf(d));
}

static void exact_integers(void **state)
{
	static const uint64_t cases[] = {0,
					 1,
					 INT32_MAX,
					 UINT32_MAX,
					 123456789012345,
					 999999999999999,
					 1000000000000000,
					 9007199254740991,
					 9007199254740993,
					 INT64_MAX,
					 UINT64_MAX};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		_cleanup_json_ cJSON *json = cJSON_CreateObject();
		_cleanup_free_ char *text = NULL;
		char want[64];

		assert_non_null(json_add_u64(json, "n", cases[i]));
		text = cJSON_PrintUnformatted(json);
		(void)snprintf(want, sizeof(want), "{\"n\":%llu}", (unsigned long long)cases[i]);
		assert_string_equal(text, want);
	}
}

static void assert_double(double value, const char *want)
{
	_cleanup_json_ cJSON *json = cJSON_CreateObject(), *again = NULL;
	_cleanup_free_ char *text = NULL;
	double read = 0;

	assert_non_null(json_add_double(json, "n", value));
	text = cJSON_PrintUnformatted(json);
	if (want)
		assert_string_equal(text, want);
	again = json_parse(text, strlen(text));
	assert_non_null(again);
	if (isfinite(value)) {
		assert_true(json_number(again, "n", &read));
		assert_true(read == value);
	}
}

static void exact_doubles(void **state)
{
	uint64_t seed = 9;

	(void)state;
	assert_double(0.1, "{\"n\":0.1}");
	assert_double(1, "{\"n\":1}");
	assert_double(1.0 / 3, "{\"n\":0.3333333333333333}");
	assert_double(0.10000000149011612, "{\"n\":0.10000000149011612}");
	assert_double(5e-324, NULL);
	assert_double(DBL_MAX, NULL);
	assert_double(nextafter(1, 2), NULL);
	assert_double(NAN, "{\"n\":null}");
	assert_double(INFINITY, "{\"n\":null}");
	for (int i = 0; i < 5000; i++) {
		uint64_t bits = unit_random(&seed);
		double d;

		memcpy(&d, &bits, sizeof(d));
		assert_double(d, NULL);
	}
}

static void utf8(void **state)
{
	static const char text[] = "a\xc3\xa9\xe5\x8c\x97\xf0\x9f\x98\x80";
	static const size_t cuts[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 10};

	(void)state;
	assert_true(utf8_valid(text, sizeof(text) - 1));
	for (size_t max = 0; max < sizeof(cuts) / sizeof(cuts[0]); max++)
		assert_int_equal(utf8_cut(text, max), cuts[max]);
	assert_int_equal(utf8_char(text, 10), 1);
	assert_int_equal(utf8_char(text + 1, 9), 2);
	assert_int_equal(utf8_char(text + 3, 7), 3);
	assert_int_equal(utf8_char(text + 6, 4), 4);
	assert_int_equal(utf8_char(text + 6, 3), 0);
	assert_int_equal(utf8_char(text + 2, 8), 0);
	assert_int_equal(utf8_char(text, 0), 0);
	assert_false(utf8_valid("\xe0\x80\x80", 3));
	assert_false(utf8_valid("\xf8\x88\x80\x80\x80", 5));
	assert_true(utf8_valid("\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf", 10));
}

/* plain ASCII is taken eight bytes at a time: one wrong byte is found wherever it is, and a right character is one */
static void utf8_in_the_middle(void **state)
{
	char line[40];

	(void)state;
	for (size_t size = 1; size <= sizeof(line); size++) {
		for (size_t at = 0; at < size; at++) {
			memset(line, 'a', size);
			line[at] = (char)0xc3;
			assert_false(utf8_valid(line, size));
			if (at + 1 < size)
				line[at + 1] = (char)0xa9;
			assert_int_equal(utf8_valid(line, size), at + 1 < size);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE("one value of UTF-8 is taken, and nothing behind it but blanks", one_value),
		CASE("zeros inside and behind are refused", zeros),
		CASE("a text cut off anywhere is refused", truncated),
		CASE("10,000 levels of nesting are refused, 500 are taken", deep),
		CASE("getters give nothing for what is absent, null or of another type", getters),
		CASE("integers up to 2^64 - 1 are printed exactly", exact_integers),
		CASE("a double is printed in the shortest text that reads back the same", exact_doubles),
		CASE("a cut never splits a character", utf8),
		CASE("a byte that is no UTF-8 is found wherever it stands", utf8_in_the_middle),
	};

	return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
