// SPDX-License-Identifier: MIT
#include "unit.h"
#include "base/clock.h"
#include <errno.h>

static void good_durations(void **state)
{
	static const struct {
		const char *text;
		uint64_t ns;
		const char *again;
	} cases[] = {
		{"0", 0, "0s"},
		{"0s", 0, "0s"},
		{"0ms", 0, "0s"},
		{"250ms", 250 * NS_PER_MS, "250ms"},
		{"15s", 15 * NS_PER_S, "15s"},
		{"2h4m", 7440 * NS_PER_S, "2h4m"},
		{"124m", 7440 * NS_PER_S, "2h4m"},
		{"1m30s", 90 * NS_PER_S, "1m30s"},
		{"90s", 90 * NS_PER_S, "1m30s"},
		{"1s1ns", NS_PER_S + 1, "1s1ns"},
		{"1h0m0s", 3600 * NS_PER_S, "1h"},
		{"1us", 1000, "1us"},
		{"5124095h34m33s709ms551us615ns", UINT64_MAX, "5124095h34m33s709ms551us615ns"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t ns = 42;
		char buf[32];

		assert_int_equal(duration_parse(cases[i].text, &ns), 0);
		assert_int_equal(ns, cases[i].ns);
		assert_string_equal(duration_format(ns, buf, sizeof(buf)), cases[i].again);
	}
}

static void bad_durations(void **state)
{
	static const char *const cases[] = {"",	    " ",	"5",
					    "00",   "s",	"-1s",
					    "+1s",  "1.5s",	"1 s",
					    "1s ",  "1d",	"1S",
					    "1sec", "1m1m",	"1s1h",
					    "1h s", "1h1",	"1msm",
					    "0x1s", "5124096h", "99999999999999999999s",
					    "1e3s", "1s1ms1s",	"5124095h34m33s709ms551us616ns"};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t ns = 42;

		if (duration_parse(cases[i], &ns) != -EINVAL)
			fail_msg("\"%s\" was taken", cases[i]);
		assert_int_equal(ns, 42);
	}
}

static void durations_read_back(void **state)
{
	uint64_t seed = 7;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		uint64_t ns = unit_random(&seed) >> (unit_random(&seed) % 64), again = 0;
		char buf[32];

		assert_int_equal(duration_parse(duration_format(ns, buf, sizeof(buf)), &again), 0);
		assert_int_equal(ns, again);
	}
}

static void times(void **state)
{
	char buf[32];

	(void)state;
	assert_string_equal(time_format(0, buf, sizeof(buf)), "1970-01-01T00:00:00.000Z");
	assert_string_equal(time_format(1769860800123999999ULL, buf, sizeof(buf)), "2026-01-31T12:00:00.123Z");
	assert_string_equal(time_format(1709164800000000000ULL, buf, sizeof(buf)), "2024-02-29T00:00:00.000Z");
	assert_string_equal(time_format(UINT64_MAX, buf, sizeof(buf)), "2554-07-21T23:34:33.709Z");
}

static void clocks_run_forward(void **state)
{
	uint64_t monotonic = clock_monotonic_ns(), boottime = clock_boottime_ns();

	(void)state;
	assert_true(monotonic > 0 && boottime >= monotonic / 2);
	assert_true(clock_monotonic_ns() >= monotonic);
	assert_true(clock_boottime_ns() >= boottime);
	assert_true(clock_realtime_ns() > 1600000000ULL * NS_PER_S);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE("durations are read, and printed in their shortest form", good_durations),
		CASE("anything else is refused and leaves the output untouched", bad_durations),
		CASE("every duration printed reads back the same", durations_read_back),
		CASE("times are RFC 3339 UTC with milliseconds", times),
		CASE("clocks run forward", clocks_run_forward),
	};

	return cmocka_run_group_tests_name("clock", tests, NULL, NULL);
}
