// SPDX-License-Identifier: MIT
/* table_bounds against the same arithmetic done the plain way: every quota divided in 128 bits, every remainder sorted,
 * units for those who have none taken one by one. Each bound has to be the same. */
#include "unit.h"
#include "policy/table.h"
#include "sy_abi.h"
#include <float.h>
#include <math.h>

typedef unsigned __int128 uint128_t;

#define ALL_UNITS (1ULL << 32)

struct share {
	uint128_t rest;
	uint64_t units;
	size_t index;
};

static double weights[SY_MAX_MEMBERS];
static uint32_t bounds[SY_MAX_MEMBERS];
static struct share shares[SY_MAX_MEMBERS];

static int by_rest(const void *a, const void *b)
{
	const struct share *x = a, *y = b;

	if (x->rest != y->rest)
		return x->rest > y->rest ? -1 : 1;
	return x->index < y->index ? -1 : 1;
}

static int by_units(const void *a, const void *b)
{
	const struct share *x = a, *y = b;

	if (x->units != y->units)
		return x->units > y->units ? -1 : 1;
	return x->index < y->index ? -1 : 1;
}

static int by_index(const void *a, const void *b)
{
	const struct share *x = a, *y = b;

	return x->index < y->index ? -1 : 1;
}

static void plain_quotas(size_t n)
{
	uint64_t left = ALL_UNITS;
	uint128_t sum = 0;
	double greatest = 0;
	int exponent;

	for (size_t i = 0; i < n; i++)
		greatest = fmax(greatest, weights[i]);
	(void)frexp(greatest, &exponent);
	for (size_t i = 0; i < n; i++) {
		shares[i].rest = (uint128_t)ldexp(weights[i], 94 - exponent);
		sum += shares[i].rest;
	}
	for (size_t i = 0; i < n; i++) {
		uint128_t scaled = shares[i].rest << 32;

		shares[i] = (struct share){.rest = scaled % sum, .units = (uint64_t)(scaled / sum), .index = i};
		left -= shares[i].units;
	}
	qsort(shares, n, sizeof(*shares), by_rest);
	for (size_t i = 0; i < left; i++)
		shares[i].units++;
}

/* One unit at a time: those with the most pay in turn, the last of them first, and who they have come down to joins. */
static void plain_least(size_t n)
{
	size_t n_owed = 0, n_top = 1, payer = 0;

	qsort(shares, n, sizeof(*shares), by_units);
	while (n_owed < n && shares[n - 1 - n_owed].units == 0)
		shares[n - 1 - n_owed++].units = 1;
	for (; n_owed; n_owed--) {
		if (!payer) {
			while (n_top < n && shares[n_top].units == shares[0].units)
				n_top++;
			payer = n_top;
		}
		shares[--payer].units--;
	}
}

static void check(size_t n)
{
	uint64_t sum = 0;

	plain_quotas(n);
	plain_least(n);
	qsort(shares, n, sizeof(*shares), by_index);
	assert_int_equal(table_bounds(weights, n, bounds), 0);
	for (size_t i = 0; i < n; i++) {
		sum += shares[i].units;
		assert_int_equal(bounds[i], (uint32_t)(sum - 1));
	}
	assert_true(sum == ALL_UNITS);
}

static double any_fraction(uint64_t *seed)
{
	return (double)(unit_random(seed) >> 11) * 0x1p-53;
}

/* every finite double above 0 */
static double any_bits(uint64_t *seed)
{
	double d;

	do {
		uint64_t bits = unit_random(seed) >> 1;

		memcpy(&d, &bits, sizeof(d));
	} while (!isfinite(d) || !(d > 0));
	return d;
}

enum kind { EQUAL, SMALL, FEW, HUNDREDTHS, WIDE, BITS, NEIGHBOURS, AROUND_A_UNIT, DENORMAL, ONE_HUGE, N_KINDS };

static double draw(enum kind kind, size_t i, double base, uint64_t *seed)
{
	switch (kind) {
	case EQUAL:
		return base;
	case SMALL:
		return 1 + (double)(unit_random(seed) % 100);
	case FEW:
		return base * (1 + (double)(unit_random(seed) % 3));
	case HUNDREDTHS:
		return (double)(1 + unit_random(seed) % 10000) / 100;
	case WIDE:
		return pow(10, -6 + 314 * any_fraction(seed));
	case NEIGHBOURS: /* remainders that differ in their last bits, if at all */
		return unit_random(seed) & 1 ? base : nextafter(base, base / 2);
	case AROUND_A_UNIT: /* quotas a little under and over a unit beside a great one */
		return i ? base * 0x1p-32 * (0.9 + 0.2 * any_fraction(seed)) : base;
	case DENORMAL:
		return 5e-324 * (double)(1 + unit_random(seed) % 1000000);
	case ONE_HUGE:
		return i ? base * any_fraction(seed) * 0x1p-20 + DBL_MIN : base;
	default:
		return any_bits(seed);
	}
}

static void check_kinds(uint64_t seed, unsigned rounds, size_t most)
{
	for (unsigned round = 0; round < rounds; round++) {
		size_t n = 1 + unit_random(&seed) % most;
		enum kind kind = (enum kind)(round % N_KINDS);
		double base = ldexp(1 + any_fraction(&seed), (int)(unit_random(&seed) % 2000) - 990);

		for (size_t i = 0; i < n; i++)
			weights[i] = draw(kind, i, base, &seed);
		check(n);
	}
}

static void few_members(void **state)
{
	(void)state;
	check_kinds(1, 20000, 8);
}

static void some_members(void **state)
{
	(void)state;
	check_kinds(2, 3000, 300);
}

static void many_members(void **state)
{
	(void)state;
	check_kinds(3, 100, SY_MAX_MEMBERS);
}

static void every_count(void **state)
{
	uint64_t seed = 4;

	(void)state;
	for (size_t n = 1; n <= 600; n++) {
		for (size_t i = 0; i < n; i++)
			weights[i] = 1;
		check(n);
		for (size_t i = 0; i < n; i++)
			weights[i] = (double)(1 + unit_random(&seed) % 9);
		check(n);
	}
}

/* sums and weights that are powers of two, one less and one more: quotas that are whole or nearly so */
static void whole_quotas(void **state)
{
	(void)state;
	for (int power = 1; power < 53; power++) {
		for (int off = -1; off <= 1; off++) {
			weights[0] = ldexp(1, power) + off;
			weights[1] = 1;
			weights[2] = ldexp(1, power - 1);
			weights[3] = weights[0];
			for (size_t n = 1; n <= 4; n++)
				check(n);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE("up to 8 members of ten kinds of weights, 20,000 tables", few_members),
		CASE("up to 300 members of ten kinds of weights, 3,000 tables", some_members),
		CASE("up to 16,384 members of ten kinds of weights, 100 tables", many_members),
		CASE("every number of members up to 600", every_count),
		CASE("quotas that are whole, or a little less or more", whole_quotas),
	};

	return cmocka_run_group_tests_name("table, exact to the unit", tests, NULL, NULL);
}
