/* SPDX-License-Identifier: MIT */
/* Next fit over a bitmap: a search goes on where the last one ended, so that units rest long after they are free too,
 * and the bitmap of 16 MiB of tables is 32 KiB. */
#include "regions.h"
#include <errno.h>
#include <stdlib.h>

int regions_init(struct regions *r, uint32_t n_units, uint32_t ring)
{
	struct regions fresh = {.n_units = n_units, .ring = ring};

	fresh.used = calloc(((size_t)n_units + 63) / 64, sizeof(*fresh.used));
	fresh.resting = calloc(ring, sizeof(*fresh.resting));
	if (!fresh.used || !fresh.resting) {
		regions_done(&fresh);
		return -ENOMEM;
	}
	*r = fresh;
	return 0;
}

void regions_done(struct regions *r)
{
	free(r->used);
	free(r->resting);
	*r = (struct regions){0};
}

static bool is_used(const struct regions *r, uint32_t unit)
{
	return r->used[unit / 64] >> (unit % 64) & 1;
}

static void set(struct regions *r, uint32_t off, uint32_t n)
{
	for (uint32_t u = off; u < off + n; u++)
		r->used[u / 64] |= 1ULL << (u % 64);
	r->n_used += n;
}

void regions_release(struct regions *r, uint32_t off, uint32_t n)
{
	for (uint32_t u = off; u < off + n; u++)
		r->used[u / 64] &= ~(1ULL << (u % 64));
	r->n_used -= n;
}

static void wake(struct regions *r, uint64_t now_ns)
{
	while (r->n_resting && r->resting[r->head].until_ns <= now_ns) {
		regions_release(r, r->resting[r->head].off, r->resting[r->head].n);
		r->head = (r->head + 1) % r->ring;
		r->n_resting--;
	}
}

/* First run of n free units that begins in [from, to). */
static bool search(const struct regions *r, uint32_t from, uint32_t to, uint32_t n, uint32_t *ret_off)
{
	uint32_t run = 0;

	for (uint32_t u = from; u < r->n_units && (run || u < to);) {
		if (!(u % 64) && r->used[u / 64] == UINT64_MAX) {
			run = 0;
			u += 64;
			continue;
		}
		run = is_used(r, u) ? 0 : run + 1;
		u++;
		if (run == n) {
			*ret_off = u - n;
			return true;
		}
	}
	return false;
}

int regions_take(struct regions *r, uint32_t n, uint64_t now_ns, uint32_t *ret_off)
{
	uint32_t off;

	wake(r, now_ns);
	if (!n || n > r->n_units)
		return -ENOSPC;
	if (!search(r, r->cursor, r->n_units, n, &off) && !search(r, 0, r->cursor, n, &off))
		return r->n_resting ? -EAGAIN : -ENOSPC;
	set(r, off, n);
	r->cursor = off + n;
	*ret_off = off;
	return 0;
}

bool regions_claim(struct regions *r, uint32_t off, uint32_t n)
{
	if (off >= r->n_units || n > r->n_units - off)
		return false;
	for (uint32_t u = off; u < off + n; u++)
		if (is_used(r, u))
			return false;
	set(r, off, n);
	return true;
}

bool regions_retire(struct regions *r, uint32_t off, uint32_t n, uint64_t now_ns)
{
	wake(r, now_ns);
	if (r->n_resting == r->ring)
		return false;
	r->resting[(r->head + r->n_resting) % r->ring] =
		(struct region_resting){.until_ns = now_ns + REGION_REST_NS, .off = off, .n = n};
	r->n_resting++;
	return true;
}
