// SPDX-License-Identifier: MIT
#include "unit.h"
#include "dataplane/keyed_ids.h"
#include "dataplane/regions.h"
#include <arpa/inet.h>
#include <errno.h>

static void lowest_free_first(void **state)
{
	struct ids s;
	uint32_t id;

	(void)state;
	assert_int_equal(ids_init(&s, 130), 0);
	for (uint32_t i = 0; i < 130; i++) {
		assert_int_equal(ids_take(&s, &id), 0);
		assert_int_equal(id, i);
	}
	assert_int_equal(ids_take(&s, &id), -ENOSPC);
	ids_release(&s, 128);
	ids_release(&s, 5);
	ids_release(&s, 5);
	assert_int_equal(s.n_used, 128);
	assert_int_equal(ids_take(&s, &id), 0);
	assert_int_equal(id, 5);
	assert_true(ids_claim(&s, 128));
	assert_false(ids_claim(&s, 128));
	assert_false(ids_claim(&s, 130));
	assert_int_equal(ids_take(&s, &id), -ENOSPC);
	ids_done(&s);
}

static struct id_key key_at(uint32_t service, uint32_t addr, uint16_t port)
{
	struct endpoint e = {.addr = {.family = AF_INET, .v4 = {.s_addr = htonl(addr)}}, .port = port};
	struct id_key key;

	id_key_set(&key, service, &e);
	return key;
}

static void keys_are_told_apart(void **state)
{
	struct id_key a = key_at(1, 0x0a000001, 80), b = key_at(2, 0x0a000001, 80), c = key_at(1, 0x0a000001, 81),
		      d = a;
	struct keyed_ids k;
	uint32_t id_a, id_b;

	(void)state;
	d.ordinal = 1;
	assert_int_equal(keyed_ids_init(&k, 16, 42), 0);
	assert_int_equal(keyed_ids_take(&k, &a, &id_a), 0);
	assert_int_not_equal(id_a, 0);
	assert_int_equal(keyed_ids_find(&k, &b), 0);
	assert_int_equal(keyed_ids_find(&k, &c), 0);
	assert_int_equal(keyed_ids_find(&k, &d), 0);
	assert_int_equal(keyed_ids_take(&k, &b, &id_b), 0);
	assert_int_equal(keyed_ids_find(&k, &a), id_a);
	assert_int_equal(keyed_ids_find(&k, &b), id_b);
	assert_true(keyed_ids_has(&k, &b, id_b));
	assert_false(keyed_ids_has(&k, &b, id_a));
	assert_false(keyed_ids_has(&k, &b, 0));
	assert_false(keyed_ids_has(&k, &b, 16));
	assert_false(keyed_ids_claim(&k, &a, 9));
	assert_false(keyed_ids_claim(&k, &c, id_a));
	assert_true(keyed_ids_claim(&k, &c, 9));
	keyed_ids_release(&k, id_a);
	assert_int_equal(keyed_ids_find(&k, &a), 0);
	assert_false(keyed_ids_has(&k, &a, id_a));
	assert_int_equal(keyed_ids_find(&k, &c), 9);
	keyed_ids_done(&k);
}

/* Against a plain list: takes, claims and releases at random, all in a few chains. */
static void keyed_ids_like_a_list(void **state)
{
	enum { N = 200, KEYS = 300 };
	uint32_t by_key[KEYS] = {0}, n_used = 0, id;
	uint64_t random = 1;
	struct keyed_ids k;

	(void)state;
	assert_int_equal(keyed_ids_init(&k, N, 7), 0);
	k.mask = 7;
	for (unsigned step = 0; step < 100000; step++) {
		uint32_t n = (uint32_t)(unit_random(&random) % KEYS);
		struct id_key key = key_at(n % 3, n, 80);

		assert_int_equal(keyed_ids_find(&k, &key), by_key[n]);
		if (by_key[n]) {
			keyed_ids_release(&k, by_key[n]);
			by_key[n] = 0;
			n_used--;
		} else if (keyed_ids_take(&k, &key, &id) == 0) {
			for (unsigned other = 0; other < KEYS; other++)
				assert_int_not_equal(by_key[other], id);
			by_key[n] = id;
			n_used++;
		} else {
			assert_int_equal(n_used, N - 1);
		}
	}
	keyed_ids_done(&k);
}

static void text_hash_is_never_0(void **state)
{
	(void)state;
	assert_int_not_equal(id_key_text_hash(""), 0);
	assert_true(id_key_text_hash("a:1") != id_key_text_hash("a:2"));
}

static void retired_regions_rest(void **state)
{
	struct regions r;
	uint32_t off;

	(void)state;
	assert_int_equal(regions_init(&r, 8, 4), 0);
	assert_int_equal(regions_take(&r, 8, 0, &off), 0);
	assert_int_equal(off, 0);
	assert_int_equal(regions_take(&r, 1, 0, &off), -ENOSPC);
	assert_true(regions_retire(&r, 0, 8, 1000));
	assert_int_equal(regions_take(&r, 1, 1000 + REGION_REST_NS - 1, &off), -EAGAIN);
	assert_int_equal(regions_take(&r, 1, 1000 + REGION_REST_NS, &off), 0);
	assert_int_equal(r.n_used, 1);
	regions_done(&r);
}

static void full_ring_is_told(void **state)
{
	struct regions r;
	uint32_t off;

	(void)state;
	assert_int_equal(regions_init(&r, 100, 2), 0);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(regions_take(&r, 1, 0, &off), 0);
	assert_true(regions_retire(&r, 0, 1, 0));
	assert_true(regions_retire(&r, 1, 1, 0));
	assert_false(regions_retire(&r, 2, 1, 0));
	assert_true(regions_retire(&r, 2, 1, REGION_REST_NS));
	assert_int_equal(r.n_used, 1);
	regions_done(&r);
}

static void claimed_regions_stay(void **state)
{
	struct regions r;
	uint32_t off;

	(void)state;
	assert_int_equal(regions_init(&r, 200, 4), 0);
	assert_true(regions_claim(&r, 60, 10));
	assert_false(regions_claim(&r, 69, 2));
	assert_false(regions_claim(&r, 199, 2));
	assert_false(regions_claim(&r, 200, 1));
	assert_false(regions_claim(&r, UINT32_MAX, 1));
	assert_int_equal(regions_take(&r, 60, 0, &off), 0);
	assert_int_equal(off, 0);
	assert_int_equal(regions_take(&r, 131, 0, &off), -ENOSPC);
	assert_int_equal(regions_take(&r, 130, 0, &off), 0);
	assert_int_equal(off, 70);
	regions_release(&r, 60, 10);
	assert_int_equal(regions_take(&r, 10, 0, &off), 0);
	assert_int_equal(off, 60);
	assert_int_equal(regions_take(&r, 0, 0, &off), -ENOSPC);
	regions_done(&r);
}

/* No unit belongs to two regions, none is lost. */
static void regions_never_overlap(void **state)
{
	enum { UNITS = 1000, LIVE = 40 };
	struct {
		uint32_t off, n;
	} live[LIVE] = {0};
	uint8_t owner[UNITS] = {0};
	uint64_t random = 3, now = 0;
	struct regions r;

	(void)state;
	assert_int_equal(regions_init(&r, UNITS, 64), 0);
	for (unsigned step = 0; step < 100000; step++) {
		unsigned i = (unsigned)(unit_random(&random) % LIVE);
		uint32_t n = 1 + (uint32_t)(unit_random(&random) % 60), off;

		now += unit_random(&random) % (REGION_REST_NS / 2);
		if (live[i].n) {
			assert_true(regions_retire(&r, live[i].off, live[i].n, now));
			memset(&owner[live[i].off], 0, live[i].n);
			live[i].n = 0;
		} else if (regions_take(&r, n, now, &off) == 0) {
			assert_true(off + n <= UNITS);
			for (uint32_t u = off; u < off + n; u++)
				assert_int_equal(owner[u], 0);
			memset(&owner[off], (int)i + 1, n);
			live[i].off = off;
			live[i].n = n;
		}
	}
	for (unsigned i = 0; i < LIVE; i++)
		if (live[i].n)
			assert_true(regions_retire(&r, live[i].off, live[i].n, now));
	{
		uint32_t off;

		assert_int_equal(regions_take(&r, UNITS, now + REGION_REST_NS, &off), 0);
	}
	regions_done(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE("ids are given out lowest first, and claimed once", lowest_free_first),
		CASE("keys that differ in service, port or ordinal have ids of their own", keys_are_told_apart),
		CASE("ids by key do what a plain list does", keyed_ids_like_a_list),
		CASE("a text's hash is never 0", text_hash_is_never_0),
		CASE("a retired region is not given out for a millisecond", retired_regions_rest),
		CASE("a full ring of resting regions is told", full_ring_is_told),
		CASE("claimed regions are not given out", claimed_regions_stay),
		CASE("regions never overlap and are never lost", regions_never_overlap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
