// SPDX-License-Identifier: MIT
/* 2^32 units are dealt out by largest remainder. Each weight becomes an integer of up to 94 bits, the greatest using
 * all of them, so that quota = weight * 2^32 / sum is exact in 128 bits: floor and remainder have no rounding error to
 * speak of, whatever lies between 5e-324 and 1.8e308.
 *
 *   weights    1             2             7
 *   quota      429496729.6   858993459.2   3006477107.2      floors leave 1 unit over
 *   units      429496730     858993459     3006477107        the greatest remainder gets it
 *   bounds     429496729     1288490188    4294967295        sum of units so far, less 1
 *
 * A member whose quota is under a unit gets one all the same, taken from those that have the most.
 *
 * Cheap, though exact to the unit: a double tells each quotient to within one, and one multiplication in 128 bits puts
 * it right and leaves the remainder; the greatest remainders are found by bisecting their bits, never sorted. */
#include "table.h"
#include "../base/cleanup.h"
#include "sy_abi.h"
#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

typedef __int128 int128_t;
typedef unsigned __int128 uint128_t;

#define ALL_UNITS   (1ULL << 32)
#define WEIGHT_BITS 94 /* and 32 of the units, and a carry: within 128 */

struct quota {
	uint128_t weight; /* scaled; then the remainder */
	uint64_t units;
	uint32_t index;
};

static bool weights_are_good(const double *weights, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!isfinite(weights[i]) || !(weights[i] > 0))
			return false;
	return true;
}

/* The sum of the scaled weights. Cutting off below 2^-94 of the greatest keeps it independent of the order. */
static uint128_t scale(const double *weights, size_t n, struct quota *q)
{
	double greatest = weights[0], half, rest;
	uint128_t sum = 0;
	int exponent;

	for (size_t i = 1; i < n; i++)
		greatest = weights[i] > greatest ? weights[i] : greatest;
	(void)frexp(greatest, &exponent);
	/* 2^(94 - exponent) may be no double, its halves are; what they round off is far below a whole number */
	half = ldexp(1, (WEIGHT_BITS - exponent) / 2);
	rest = ldexp(1, WEIGHT_BITS - exponent - (WEIGHT_BITS - exponent) / 2);
	for (size_t i = 0; i < n; i++) {
		q[i].index = (uint32_t)i;
		q[i].weight = (uint128_t)(weights[i] * half * rest);
		sum += q[i].weight;
	}
	return sum;
}

/* Floor and remainder of weight * 2^32 / sum. The guess is good to 2^-18, so that its floor is off by one at most. */
static void divide(struct quota *q, uint128_t sum, double per_unit)
{
	int128_t rest;

	q->units = (uint64_t)((double)q->weight * per_unit);
	rest = (int128_t)((q->weight << 32) - q->units * sum);
	if (rest < 0) {
		q->units--;
		rest += (int128_t)sum;
	} else if (rest >= (int128_t)sum) {
		q->units++;
		rest -= (int128_t)sum;
	}
	q->weight = (uint128_t)rest;
}

/* The highest bit in which remainders of at[0..n) differ; 0 when they are all the same. */
static uint128_t highest_difference(const struct quota *q, const uint32_t *at, size_t n)
{
	uint128_t differ = 0;

	for (size_t i = 1; i < n; i++)
		differ |= q[at[i]].weight ^ q[at[0]].weight;
	if (differ >> 64)
		return (uint128_t)1 << (127 - __builtin_clzll((uint64_t)(differ >> 64)));
	return differ ? (uint128_t)1 << (63 - __builtin_clzll((uint64_t)differ)) : 0;
}

/* A unit more for the left greatest remainders, the lower index first among equals. at: every index, ascending; each
 * round either deals to the half of it with the bit set or drops the other half, and keeps the order of the rest. */
static void deal_rest(struct quota *q, uint32_t *at, size_t n, size_t left)
{
	uint128_t bit;

	while (left && (bit = highest_difference(q, at, n))) {
		size_t n_set = 0, n_kept = 0;
		bool deal;

		for (size_t i = 0; i < n; i++)
			n_set += (q[at[i]].weight & bit) != 0;
		deal = n_set <= left;
		for (size_t i = 0; i < n; i++) {
			bool is_set = (q[at[i]].weight & bit) != 0;

			q[at[i]].units += deal && is_set;
			at[n_kept] = at[i];
			n_kept += is_set != deal;
		}
		left -= deal ? n_set : 0;
		n = n_kept;
	}
	for (size_t i = 0; i < left; i++)
		q[at[i]].units++;
}

static void deal(struct quota *q, uint32_t *at, size_t n, uint128_t sum)
{
	const double per_unit = 0x1p32 / (double)sum;
	uint64_t left = ALL_UNITS;

	for (size_t i = 0; i < n; i++) {
		divide(&q[i], sum, per_unit);
		left -= q[i].units;
		at[i] = (uint32_t)i;
	}
	assert(left < n);
	deal_rest(q, at, n, left);
}

static int by_units(const void *a, const void *b)
{
	const struct quota *x = a, *y = b;

	if (x->units != y->units)
		return x->units > y->units ? -1 : 1;
	return x->index < y->index ? -1 : 1;
}

static bool has_somebody_nothing(const struct quota *q, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (q[i].units == 0)
			return true;
	return false;
}

/* Give a unit to each that has none, and lower the tops level by level to pay for them: q is sorted by units. The mean
 * is at least 2^32 / SY_MAX_MEMBERS = 2^18 units, so that no payer comes near 1. */
static void give_least(struct quota *q, size_t n)
{
	uint64_t debt = 0, level, drop;
	size_t n_top = 1;

	for (; debt < n && q[n - 1 - debt].units == 0; debt++)
		q[n - 1 - debt].units = 1;
	level = q[0].units;
	while (debt) {
		while (n_top < n && q[n_top].units == level)
			n_top++;
		drop = n_top < n ? level - q[n_top].units : UINT64_MAX;
		if (drop > debt / n_top)
			break;
		debt -= drop * n_top;
		level -= drop;
	}
	for (size_t i = 0; i < n_top; i++)
		q[i].units = level - debt / n_top - (n_top - i <= debt % n_top);
}

int table_bounds(const double *weights, size_t n, uint32_t *bounds)
{
	_cleanup_free_ struct quota *q = NULL;
	_cleanup_free_ uint32_t *at = NULL;
	uint64_t sum = 0;

	if (n == 0 || n > SY_MAX_MEMBERS || !weights_are_good(weights, n))
		return -EINVAL;
	q = calloc(n, sizeof(*q));
	at = calloc(n, sizeof(*at));
	if (!q || !at)
		return -ENOMEM;
	deal(q, at, n, scale(weights, n, q));
	if (has_somebody_nothing(q, n)) {
		qsort(q, n, sizeof(*q), by_units);
		give_least(q, n);
	}

	/* in 32 bits: only a table of one has 2^32 units, and that is 0, whose bound is 2^32 - 1 all the same */
	for (size_t i = 0; i < n; i++)
		bounds[q[i].index] = (uint32_t)q[i].units;
	for (size_t i = 0; i < n; i++) {
		sum += bounds[i];
		bounds[i] = (uint32_t)(sum - 1);
	}
	return 0;
}

unsigned table_guide_bits(size_t n)
{
	unsigned bits = 1;

	while ((1ULL << bits) < 2 * (uint64_t)n)
		bits++;
	return bits;
}

void table_guide(const uint32_t *bounds, size_t n, uint16_t *guide)
{
	unsigned bits = table_guide_bits(n);
	size_t member = 0, n_buckets = (size_t)1 << bits;

	for (size_t b = 0; b < n_buckets; b++) {
		while (bounds[member] < (uint64_t)b << (32 - bits))
			member++; /* ends: the last bound is above every bucket's edge */
		guide[b] = (uint16_t)member;
	}
	/* past the last bucket there is nobody; the last member, so that every entry is one that may be read */
	guide[n_buckets] = (uint16_t)(n - 1);
}

size_t table_pick(const uint32_t *bounds, size_t n, uint32_t r)
{
	size_t low = 0, high = n - 1;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (bounds[middle] >= r)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static size_t region_used(size_t n)
{
	return n * 2 * sizeof(uint32_t) + (((size_t)1 << table_guide_bits(n)) + 1) * sizeof(uint16_t);
}

size_t table_region_bytes(size_t n)
{
	return (region_used(n) + SY_REGION_ALIGN - 1) / SY_REGION_ALIGN * SY_REGION_ALIGN;
}

void table_region_write(void *region, const uint32_t *bounds, const uint32_t *ids, size_t n)
{
	struct sy_member *member = region;

	for (size_t i = 0; i < n; i++)
		member[i] = (struct sy_member){.bound = bounds[i], .backend = ids[i]};
	table_guide(bounds, n, (uint16_t *)(void *)&member[n]);
	memset((uint8_t *)region + region_used(n), 0, table_region_bytes(n) - region_used(n));
}
