// SPDX-License-Identifier: MIT
#include "unit.h"
#include "base/backoff.h"
#include <limits.h>

static void doubles_to_the_cap(void **state)
{
	struct backoff b = {.min_ns = 100, .max_ns = 1000};
	static const uint64_t full[] = {100, 200, 400, 800, 1000, 1000};

	(void)state;
	for (size_t i = 0; i < 6; i++) {
		struct backoff twin = b;

		assert_int_equal(backoff_next(&twin, 0), full[i] / 2);
		assert_in_range(backoff_next(&b, UINT32_MAX), full[i] - 1, full[i]);
	}
	backoff_reset(&b);
	assert_int_equal(backoff_next(&b, 0), 50);
}

static void always_within(void **state)
{
	uint64_t seed = 8;

	(void)state;
	for (int i = 0; i < 10000; i++) {
		struct backoff b = {.max_ns = unit_random(&seed) >> (unit_random(&seed) % 64),
				    .n_failures = (unsigned)(unit_random(&seed) % 200)};
		uint64_t delay;

		b.min_ns = b.max_ns >> (unit_random(&seed) % 64);
		delay = backoff_next(&b, (uint32_t)unit_random(&seed));
		assert_true(delay <= b.max_ns && delay >= b.min_ns / 2);
	}
}

static void extremes(void **state)
{
	struct backoff b = {.min_ns = UINT64_MAX / 2 + 1, .max_ns = UINT64_MAX, .n_failures = UINT_MAX};

	(void)state;
	assert_true(backoff_next(&b, UINT32_MAX) > UINT64_MAX / 2);
	assert_int_equal(b.n_failures, UINT_MAX);
	b = (struct backoff){.min_ns = 0, .max_ns = 0, .n_failures = UINT_MAX};
	assert_int_equal(backoff_next(&b, UINT32_MAX), 0);
	b = (struct backoff){.min_ns = 500, .max_ns = 100}; /* the cap holds */
	assert_in_range(backoff_next(&b, UINT32_MAX), 50, 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE("the delay doubles up to its cap, the upper half of it by chance", doubles_to_the_cap),
		CASE("the delay is never over the cap nor under half the least", always_within),
		CASE("great failure counts and delays do not overflow", extremes),
	};

	return cmocka_run_group_tests_name("backoff", tests, NULL, NULL);
}
