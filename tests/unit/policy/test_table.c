// SPDX-License-Identifier: MIT
#include "unit.h"
#include "policy/table.h"
#include "sy_abi.h"
#include <errno.h>
#include <float.h>
#include <math.h>

#define ALL_UNITS (1ULL << 32)

static double weights[SY_MAX_MEMBERS + 1];
static uint32_t bounds[SY_MAX_MEMBERS + 1];
static uint16_t guide[2 * SY_MAX_MEMBERS + 1];

static uint64_t units_of(size_t i)
{
	return i ? (uint64_t)bounds[i] - bounds[i - 1] : (uint64_t)bounds[0] + 1;
}

/* Everything that must hold of any table: strictly ascending, the last bound at the end, so all shares above 0 and
 * their sum exactly 1. */
static void assert_is_table(size_t n)
{
	for (size_t i = 1; i < n; i++)
		assert_true(bounds[i] > bounds[i - 1]);
	assert_int_equal(bounds[n - 1], UINT32_MAX);
}

static void build(size_t n)
{
	assert_int_equal(table_bounds(weights, n, bounds), 0);
	assert_is_table(n);
}

/* Largest remainder spelled out over small integers, without scaling or sorting: what table_bounds has to agree with.
 */
static void reference(const uint32_t *w, size_t n, uint64_t *units)
{
	uint64_t sum = 0, left = ALL_UNITS;
	uint64_t rest[64];

	for (size_t i = 0; i < n; i++)
		sum += w[i];
	for (size_t i = 0; i < n; i++) {
		units[i] = ((uint64_t)w[i] << 32) / sum;
		rest[i] = ((uint64_t)w[i] << 32) % sum + 1; /* 0 is: has had its extra unit */
		left -= units[i];
	}
	for (; left; left--) {
		size_t best = 0;

		for (size_t i = 1; i < n; i++)
			if (rest[i] > rest[best])
				best = i;
		units[best]++;
		rest[best] = 0;
	}
}

static void weights_1_2_7(void **state)
{
	(void)state;
	weights[0] = 1, weights[1] = 2, weights[2] = 7;
	build(3);
	/* 0.1 and 0.3 of 2^32 are 429496729.6 and 1288490188.8: rounded to the unit, and the last unit of each counts
	 */
	assert_int_equal(bounds[0] + 1ULL, llround(0.1 * 0x1p32));
	assert_int_equal(bounds[1] + 1ULL, llround(0.3 * 0x1p32));
	assert_int_equal(bounds[2] + 1ULL, ALL_UNITS);
}

static void picks_at_bounds(void **state)
{
	(void)state;
	weights[0] = 1, weights[1] = 2, weights[2] = 7;
	build(3);
	assert_int_equal(table_pick(bounds, 3, 0), 0);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(table_pick(bounds, 3, bounds[i] - 1), i);
		assert_int_equal(table_pick(bounds, 3, bounds[i]), i);
		if (i < 2)
			assert_int_equal(table_pick(bounds, 3, bounds[i] + 1), i + 1);
	}
}

static void one_member(void **state)
{
	static const double any[] = {1, 5e-324, DBL_MAX, 0.1, 1e-6};

	(void)state;
	for (size_t i = 0; i < sizeof(any) / sizeof(any[0]); i++) {
		weights[0] = any[i];
		build(1);
		assert_int_equal(table_pick(bounds, 1, 0), 0);
		assert_int_equal(table_pick(bounds, 1, UINT32_MAX), 0);
	}
}

static void halves(void **state)
{
	(void)state;
	weights[0] = 0.5, weights[1] = 1.5;
	build(2);
	assert_int_equal(units_of(0), ALL_UNITS / 4);
	assert_int_equal(units_of(1), ALL_UNITS / 4 * 3);
}

static void one_to_six(void **state)
{
	(void)state;
	weights[0] = 1, weights[1] = 6;
	build(2);
	assert_int_equal(units_of(0), llround(0x1p32 / 7));
}

static void equal_weights(void **state)
{
	static const size_t sizes[] = {2, 3, 7, 4096, SY_MAX_MEMBERS - 1, SY_MAX_MEMBERS};

	(void)state;
	for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
		size_t n = sizes[k], n_more = ALL_UNITS % n;

		for (size_t i = 0; i < n; i++)
			weights[i] = 0.3;
		build(n);
		/* the units left over go to the first ones */
		for (size_t i = 0; i < n; i++)
			assert_int_equal(units_of(i), ALL_UNITS / n + (i < n_more));
	}
}

static void agrees_with_reference(void **state)
{
	uint64_t seed = 1, units[64];
	uint32_t w[64];

	(void)state;
	for (int round = 0; round < 20000; round++) {
		size_t n = 1 + unit_random(&seed) % 64;
		uint32_t most = 1U << (1 + unit_random(&seed) % 25); /* keeps every share above 2^-32 */

		for (size_t i = 0; i < n; i++)
			weights[i] = w[i] = 1 + (uint32_t)(unit_random(&seed) % most);
		build(n);
		reference(w, n, units);
		for (size_t i = 0; i < n; i++)
			assert_int_equal(units_of(i), units[i]);
	}
}

static void scale_does_not_matter(void **state)
{
	static const int exponents[] = {-1070, -1022, -500, -1, 1, 40, 500, 1018};
	uint32_t plain[5];

	(void)state;
	for (size_t i = 0; i < 5; i++)
		weights[i] = (double)(i * i + 3);
	build(5);
	memcpy(plain, bounds, sizeof(plain));
	for (size_t k = 0; k < sizeof(exponents) / sizeof(exponents[0]); k++) {
		for (size_t i = 0; i < 5; i++)
			weights[i] = ldexp((double)(i * i + 3), exponents[k]);
		build(5);
		assert_memory_equal(bounds, plain, sizeof(plain));
	}
}

/* log-uniform over the whole range: most members have shares far below a unit */
static void wild_doubles(void **state)
{
	uint64_t seed = 2;

	(void)state;
	for (int round = 0; round < 200; round++) {
		size_t n = 1 + unit_random(&seed) % 4096;

		for (size_t i = 0; i < n; i++)
			weights[i] = pow(10, -6 + 314 * ((double)(unit_random(&seed) >> 11) * 0x1p-53));
		build(n);
	}
}

/* shares within one unit of the quotient, in the wider long double, when none is so small that it has to be raised */
static void shares_within_a_unit(void **state)
{
	uint64_t seed = 3;

	(void)state;
	for (int round = 0; round < 300; round++) {
		size_t n = 2 + unit_random(&seed) % 4095;
		long double sum = 0;

		for (size_t i = 0; i < n; i++) {
			weights[i] = pow(10, 4 * ((double)(unit_random(&seed) >> 11) * 0x1p-53)) * 1e300;
			sum += weights[i];
		}
		build(n);
		for (size_t i = 0; i < n; i++)
			assert_true(fabsl((long double)units_of(i) - weights[i] / sum * 0x1p32L) < 1.0L + 1e-6L);
	}
}

/* each a little over a unit beside a great one: what is cut off each of them must not add up to units of the great one
 */
static void fractions_add_up(void **state)
{
	long double sum = 1;

	(void)state;
	weights[0] = 1;
	for (size_t i = 1; i < SY_MAX_MEMBERS; i++)
		sum += weights[i] = 0x1p-32 * (1 + 0x0.ffp-8);
	build(SY_MAX_MEMBERS);
	for (size_t i = 0; i < SY_MAX_MEMBERS; i++)
		assert_true(fabsl((long double)units_of(i) - weights[i] / sum * 0x1p32L) < 1.0L);
}

static void sums_stay_finite(void **state)
{
	(void)state;
	for (size_t i = 0; i < SY_MAX_MEMBERS; i++)
		weights[i] = DBL_MAX;
	build(SY_MAX_MEMBERS);
	assert_int_equal(units_of(0), ALL_UNITS / SY_MAX_MEMBERS);
	for (size_t i = 0; i < SY_MAX_MEMBERS; i++)
		weights[i] = 5e-324;
	build(SY_MAX_MEMBERS);
	assert_int_equal(units_of(SY_MAX_MEMBERS - 1), ALL_UNITS / SY_MAX_MEMBERS);
}

static void tiny_beside_huge(void **state)
{
	(void)state;
	weights[0] = 5e-324, weights[1] = DBL_MAX, weights[2] = 1e-6;
	build(3);
	assert_int_equal(units_of(0), 1);
	assert_int_equal(units_of(1), ALL_UNITS - 2);
	assert_int_equal(units_of(2), 1);
}

static void many_tiny_beside_huge(void **state)
{
	(void)state;
	for (size_t i = 0; i < SY_MAX_MEMBERS; i++)
		weights[i] = i == 5 ? 1e308 : 1e-6;
	build(SY_MAX_MEMBERS);
	for (size_t i = 0; i < SY_MAX_MEMBERS; i++)
		assert_int_equal(units_of(i), i == 5 ? ALL_UNITS - (SY_MAX_MEMBERS - 1) : 1);
}

/* 16,000 units are owed: three great ones pay about alike, a middling one nothing */
static void greatest_pay_for_the_least(void **state)
{
	uint64_t a, b, c;

	(void)state;
	for (size_t i = 0; i < 16004; i++)
		weights[i] = i < 3 ? 10 : i == 3 ? 1 : 1e-300;
	build(16004);
	a = units_of(0), b = units_of(1), c = units_of(2);
	assert_true(a >= b && b >= c && a - c <= 1);
	assert_int_equal(units_of(3), llround(0x1p32 / 31));
	assert_int_equal(a + b + c, ALL_UNITS - units_of(3) - 16000);
	for (size_t i = 4; i < 16004; i++)
		assert_int_equal(units_of(i), 1);
}

static void levels_are_lowered_in_turn(void **state)
{
	(void)state;
	/* the first is 2 units above the second: it pays 2 alone, then both pay in turn, the later one first */
	weights[0] = 2147483649, weights[1] = 2147483647;
	for (size_t i = 2; i < 7; i++)
		weights[i] = 1e-300;
	build(7);
	assert_int_equal(units_of(0), 2147483646);
	assert_int_equal(units_of(1), 2147483645);
}

static void bad_weights(void **state)
{
	static const double bad[] = {NAN, INFINITY, -INFINITY, -1, -0.0, 0, -5e-324};

	(void)state;
	for (size_t k = 0; k < sizeof(bad) / sizeof(bad[0]); k++) {
		weights[0] = 1, weights[1] = bad[k], weights[2] = 7;
		bounds[0] = 42;
		assert_int_equal(table_bounds(weights, 3, bounds), -EINVAL);
		assert_int_equal(bounds[0], 42);
	}
	for (size_t i = 0; i < 3; i++)
		weights[i] = 0;
	assert_int_equal(table_bounds(weights, 3, bounds), -EINVAL);
}

static void bad_sizes(void **state)
{
	(void)state;
	for (size_t i = 0; i <= SY_MAX_MEMBERS; i++)
		weights[i] = 1;
	assert_int_equal(table_bounds(weights, 0, bounds), -EINVAL);
	assert_int_equal(table_bounds(weights, SY_MAX_MEMBERS + 1, bounds), -EINVAL);
}

static size_t linear_pick(size_t n, uint32_t r)
{
	size_t i = 0;

	while (i < n - 1 && bounds[i] < r)
		i++;
	return i;
}

static void pick_agrees_with_linear(void **state)
{
	uint64_t seed = 4;

	(void)state;
	for (int round = 0; round < 200; round++) {
		size_t n = 1 + unit_random(&seed) % 300;

		for (size_t i = 0; i < n; i++)
			weights[i] = exp2((double)(unit_random(&seed) % 60));
		build(n);
		for (int k = 0; k < 500; k++) {
			uint32_t r = (uint32_t)unit_random(&seed);

			assert_int_equal(table_pick(bounds, n, r), linear_pick(n, r));
		}
	}
}

/* The pick as the guide allows it: a search between the two entries around r's bucket. */
static size_t guided_pick(size_t n, uint32_t r)
{
	unsigned bits = table_guide_bits(n);
	size_t low = guide[r >> (32 - bits)], high = guide[(r >> (32 - bits)) + 1];

	assert_true(low <= high && high < n);
	return low + table_pick(bounds + low, high - low + 1, r);
}

static void check_guide(size_t n)
{
	unsigned bits = table_guide_bits(n);

	table_guide(bounds, n, guide);
	for (uint64_t b = 0; b <= 1ULL << bits; b++) {
		uint64_t edge = b << (32 - bits);

		if (b < 1ULL << bits)
			assert_int_equal(guide[b], table_pick(bounds, n, (uint32_t)edge));
		for (int64_t r = (int64_t)edge - 1; r <= (int64_t)edge + 1; r++)
			if (r >= 0 && r <= UINT32_MAX)
				assert_int_equal(guided_pick(n, (uint32_t)r), table_pick(bounds, n, (uint32_t)r));
	}
	for (size_t i = 0; i < n; i++)
		for (int64_t r = (int64_t)bounds[i] - 1; r <= (int64_t)bounds[i] + 1; r++)
			if (r >= 0 && r <= UINT32_MAX)
				assert_int_equal(guided_pick(n, (uint32_t)r), table_pick(bounds, n, (uint32_t)r));
}

static void guide_bits(void **state)
{
	static const struct {
		size_t n;
		unsigned bits;
	} cases[] = {{1, 1}, {2, 2}, {3, 3}, {4, 3}, {5, 4}, {4096, 13}, {4097, 14}, {16384, 15}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(table_guide_bits(cases[i].n), cases[i].bits);
}

static void guide_agrees(void **state)
{
	static const size_t sizes[] = {1, 2, 3, 4, 5, 64, 65, 1000, 4096, SY_MAX_MEMBERS};
	uint64_t seed = 5;

	(void)state;
	for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
		size_t n = sizes[k];

		for (size_t i = 0; i < n; i++)
			weights[i] = 1;
		build(n);
		check_guide(n);
		for (size_t i = 0; i < n; i++)
			weights[i] = 1 + (double)(unit_random(&seed) % 1000);
		build(n);
		check_guide(n);
		/* skewed: one bucket holds nearly everybody, at the start, in the middle, at the end */
		for (size_t at = 0; at<n; at += n> 2 ? n / 2 : 1) {
			for (size_t i = 0; i < n; i++)
				weights[i] = i == at ? 1e308 : 1e-6;
			build(n);
			check_guide(n);
		}
		for (size_t i = 0; i < n; i++)
			weights[i] = exp2((double)(i % 1000));
		build(n);
		check_guide(n);
	}
}

static void region_layout(void **state)
{
	static const size_t sizes[] = {1, 2, 3, 10, 4096, SY_MAX_MEMBERS};

	(void)state;
	for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
		size_t n = sizes[k], n_guide = ((size_t)1 << table_guide_bits(n)) + 1;
		size_t used = 8 * n + 2 * n_guide, size = table_region_bytes(n);
		uint32_t *ids = malloc(4 * n);
		uint8_t *region = malloc(size);

		assert_non_null(ids);
		assert_non_null(region);
		assert_int_equal(size % SY_REGION_ALIGN, 0);
		assert_true(size >= used && size - used < SY_REGION_ALIGN);
		for (size_t i = 0; i < n; i++) {
			weights[i] = (double)(i % 9 + 1);
			ids[i] = (uint32_t)(1000 + i);
		}
		build(n);
		table_guide(bounds, n, guide);
		memset(region, 0xa5, size);
		table_region_write(region, bounds, ids, n);
		for (size_t i = 0; i < n; i++) {
			struct sy_member m;

			memcpy(&m, region + i * sizeof(m), sizeof(m));
			assert_int_equal(m.bound, bounds[i]);
			assert_int_equal(m.backend, ids[i]);
		}
		assert_memory_equal(region + 8 * n, guide, 2 * n_guide);
		for (size_t i = used; i < size; i++)
			assert_int_equal(region[i], 0);
		free(ids);
		free(region);
	}
}

static void region_fits_the_area(void **state)
{
	(void)state;
	/* a table of the greatest size is named by a table word */
	assert_true(table_region_bytes(SY_MAX_MEMBERS) < SY_TABLE_BYTES);
	assert_int_equal(SY_TABLE_LEN(SY_TABLE_WORD(0, SY_MAX_MEMBERS, 1)), SY_MAX_MEMBERS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE("weights 1, 2, 7 give cumulative 0.1, 0.3, 1.0 to the unit", weights_1_2_7),
		CASE("a pick on or below a bound is its member, above it the next", picks_at_bounds),
		CASE("one member has the whole table, whatever its weight", one_member),
		CASE("0.5 and 1.5 are 1 to 3", halves),
		CASE("1 and 6 are 1/7 and 6/7", one_to_six),
		CASE("equal weights differ by a unit at most, up to 16,384 members", equal_weights),
		CASE("integer weights agree with largest remainder spelled out", agrees_with_reference),
		CASE("a common factor from 2^-1070 to 2^1018 changes nothing", scale_does_not_matter),
		CASE("weights from 1e-6 to 1e308 make a table in which nobody has nothing", wild_doubles),
		CASE("every share is within a unit of weight over sum", shares_within_a_unit),
		CASE("fractions of units of 16,383 small weights add up", fractions_add_up),
		CASE("16,384 of the greatest or the least double still sum up", sums_stay_finite),
		CASE("the least double beside the greatest gets one unit", tiny_beside_huge),
		CASE("16,383 tiny weights beside a huge one get one unit each", many_tiny_beside_huge),
		CASE("units for the least are taken evenly from the greatest", greatest_pay_for_the_least),
		CASE("the greatest pays alone until it is level with the next", levels_are_lowered_in_turn),
		CASE("NaN, infinite, negative and zero weights are refused", bad_weights),
		CASE("no member and too many members are refused", bad_sizes),
		CASE("the binary search picks what a linear one picks", pick_agrees_with_linear),
		CASE("the guide has at least two buckets a member", guide_bits),
		CASE("a pick by the guide is the plain pick at every bucket's edge and bound", guide_agrees),
		CASE("a region is bounds, ids, guide and zeros", region_layout),
		CASE("the greatest region fits the area and the table word", region_fits_the_area),
	};

	return cmocka_run_group_tests_name("table", tests, NULL, NULL);
}
