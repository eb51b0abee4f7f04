/* SPDX-License-Identifier: MIT */
/* Weights to 32-bit cumulative bounds by largest remainder, and the region's guide index. Pure. */
#pragma once
#include <stddef.h>
#include <stdint.h>

/* bounds[i], ascending and strictly so, bounds[n - 1] = UINT32_MAX: member i is picked for r in (bounds[i-1],
 * bounds[i]], the first one from 0. Shares are weight / sum to 2^-32, sums exact; a positive weight never gets nothing.
 * Ties of remainders go to the lower index. Weights from 5e-324 to 1.8e308 (scaled by the greatest, so that sums stay
 * finite). 0; -EINVAL: n is 0 or over SY_MAX_MEMBERS, or a weight is not finite and above 0; -ENOMEM (bounds
 * untouched). */
int table_bounds(const double *weights, size_t n, uint32_t *bounds);

/* Bits of the guide: 2^bits >= 2n buckets, at least 1. */
unsigned table_guide_bits(size_t n);
/* guide[(1 << bits) + 1] from bounds; the last entry is n - 1. The pick for r of bucket b = r >> (32 - bits) lies in
 * guide[b]..guide[b + 1], both included. */
void table_guide(const uint32_t *bounds, size_t n, uint16_t *guide);
/* The reference pick, as the kernel does it. */
size_t table_pick(const uint32_t *bounds, size_t n, uint32_t r);
/* Bytes of a region of n members, rounded up to SY_REGION_ALIGN. */
size_t table_region_bytes(size_t n);
/* Write a whole region (bounds, ids, guide) of table_region_bytes(n) at region. */
void table_region_write(void *region, const uint32_t *bounds, const uint32_t *ids, size_t n);
