// SPDX-License-Identifier: MIT
/* Picking: shares by chi-square over 10^6 picks, tables switched back to back under the picker, evicted members. The pick
 * runs alone in with_pick.bpf.c, linked with the product's objects. */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include "policy/table.h"
#include "rig.h"
#include "unit.h"
#include "with_pick.skel.h"

#define N_PICKS 1000000U
#define N_SWITCHES 1000000U
#define N_CONTESTED_PICKS 5000000U
#define CARELESS_RUNS 40
#define SERVICE 1
#define OTHER_SERVICE 2
#define N_REGIONS 2 /* a region is written again as soon as it has left use */

static struct with_pick *skel;
static struct rig rig;
static __u64 *seen;
static struct frame probe;

static void run_picks(const struct bpf_program *p, unsigned n)
{
	(void)rig_repeat(bpf_program__fd(p), RIG_XDP, &probe, rig.if_client, n);
}

static int set_up(void **state)
{
	(void)state;
	rig_clear(&rig);
	memset(seen, 0, sizeof(*seen) * 32768);
	rig_service(&rig, SERVICE, "10.0.0.100:80");
	rig_service(&rig, OTHER_SERVICE, "10.0.0.100:81");
	skel->bss->pick_service = SERVICE;
	skel->bss->pick_outside = skel->bss->pick_settled = skel->bss->pick_none = skel->bss->pick_torn = 0;
	return 0;
}

static void add_backends(uint32_t service, uint32_t first, uint32_t n)
{
	for (uint32_t id = first; id < first + n; id++) {
		char at[32];

		snprintf(at, sizeof(at), "10.3.%u.%u:8000", id >> 8 & 255, id & 255);
		rig_backend(&rig, id, service, at, 1);
	}
}

/* Upper bound of chi-square with k degrees of freedom, passed by chance once in some millions (Wilson and Hilferty). */
static double chi_square_limit(double k)
{
	double t = 1 - 2 / (9 * k) + 5 * sqrt(2 / (9 * k));

	return k * t * t * t;
}

/* Members with fewer than 10 expected picks are taken together. */
static void check_shares(const double *weights, uint32_t n)
{
	double sum = 0, chi = 0, rest_expected = 0;
	uint64_t total = 0, rest = 0;
	uint32_t cells = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += weights[i];
	for (uint32_t i = 0; i < n; i++) {
		double expected = weights[i] / sum * N_PICKS, d = (double)seen[i + 1] - expected;

		total += seen[i + 1];
		if (expected < 10) {
			rest += seen[i + 1];
			rest_expected += expected;
			continue;
		}
		chi += d * d / expected;
		cells++;
	}
	if (rest_expected >= 10) {
		chi += ((double)rest - rest_expected) * ((double)rest - rest_expected) / rest_expected;
		cells++;
	} else {
		assert_true((double)rest <= rest_expected + 40);
	}
	assert_int_equal(total, N_PICKS);
	if (cells > 1 && chi > chi_square_limit(cells - 1))
		fail_msg("chi-square %.1f over %u cells, at most %.1f", chi, cells, chi_square_limit(cells - 1));
}

static void pick_and_check(const double *weights, uint32_t n)
{
	uint32_t *ids = calloc(n, sizeof(*ids));

	assert_non_null(ids);
	for (uint32_t i = 0; i < n; i++)
		ids[i] = i + 1;
	add_backends(SERVICE, 1, n);
	rig_table(&rig, SERVICE, ids, weights, n);
	free(ids);
	run_picks(skel->progs.pick_count, N_PICKS);
	check_shares(weights, n);
}

static void shares_of_1_2_7(void **state)
{
	(void)state;
	pick_and_check((const double[]){ 1, 2, 7 }, 3);
}

static void shares_of_one_member(void **state)
{
	(void)state;
	pick_and_check((const double[]){ 0.3 }, 1);
}

static void shares_of_skewed_weights(void **state)
{
	double w[200];

	(void)state;
	for (int i = 0; i < 200; i++)
		w[i] = i % 50 == 7 ? 1e4 : i % 3 == 0 ? 1e-3 : i % 3 == 1 ? 1 : 25;
	pick_and_check(w, 200);
}

static void shares_of_4096_members(void **state)
{
	double *w = calloc(4096, sizeof(*w));
	uint64_t random = 7;

	(void)state;
	assert_non_null(w);
	for (int i = 0; i < 4096; i++)
		w[i] = 0.5 + (double)(unit_random(&random) >> 40) / (1 << 24);
	pick_and_check(w, 4096);
	free(w);
}

static void shares_of_16384_members(void **state)
{
	double *w = calloc(SY_MAX_MEMBERS, sizeof(*w));

	(void)state;
	assert_non_null(w);
	for (uint32_t i = 0; i < SY_MAX_MEMBERS; i++)
		w[i] = 1 + i % 5;
	pick_and_check(w, SY_MAX_MEMBERS);
	free(w);
}

/* ---- switching ---- */

/* Region images made beforehand, so that the switching thread does nothing but copy and switch. */
struct image {
	uint8_t *bytes;
	size_t size;
	uint32_t n;
};

static struct image image_make(uint32_t first, uint32_t n)
{
	struct image m = { .size = table_region_bytes(n), .n = n };
	uint32_t *bounds = calloc(n, sizeof(*bounds)), *ids = calloc(n, sizeof(*ids));
	double *w = calloc(n, sizeof(*w));

	m.bytes = calloc(1, m.size);
	assert_true(m.bytes && bounds && ids && w);
	for (uint32_t i = 0; i < n; i++) {
		ids[i] = first + i;
		w[i] = 1 + i % 3;
	}
	assert_int_equal(table_bounds(w, n, bounds), 0);
	table_region_write(m.bytes, bounds, ids, n);
	free(bounds);
	free(ids);
	free(w);
	return m;
}

static struct image even, odd, other;
static atomic_bool enough;
static atomic_uint switches;

#define REGION_BYTES 4096U

static void switch_to(uint32_t service, const struct image *m, uint32_t version)
{
	uint32_t at = version % N_REGIONS * REGION_BYTES;

	memcpy((uint8_t *)rig.maps.tables + at, m->bytes, m->size);
	__atomic_store_n(&rig.maps.services[service].table,
			 SY_TABLE_WORD(at / SY_REGION_ALIGN, m->n, version & 0x7fffff), __ATOMIC_RELEASE);
}

/* Even versions of the service's table hold ids 1..40, odd ones 41..140; now and then another service's table goes through the
 * region that just left use. */
static void *switch_tables(void *arg)
{
	(void)arg;
	for (uint32_t version = 0; !enough; version++) {
		if (version % 5 == 0)
			switch_to(OTHER_SERVICE, &other, version);
		switch_to(SERVICE, version & 1 ? &odd : &even, version);
		switches = version;
	}
	return NULL;
}

/* At least N_CONTESTED_PICKS picks and N_SWITCHES switches beside them. */
static void run_while_switching(const struct bpf_program *p)
{
	pthread_t thread;

	even = image_make(1, 40);
	odd = image_make(41, 100);
	other = image_make(1001, 120);
	add_backends(SERVICE, 1, 140);
	add_backends(OTHER_SERVICE, 1001, 120);
	skel->bss->pick_half = 40;
	skel->bss->pick_top = 140;
	enough = false;
	switches = 0;
	assert_int_equal(pthread_create(&thread, NULL, switch_tables, NULL), 0);
	for (uint32_t n = 0; n < N_CONTESTED_PICKS || switches < N_SWITCHES; n += N_PICKS)
		run_picks(p, N_PICKS); /* each call waits for RCU, so not in small portions */
	enough = true;
	pthread_join(thread, NULL);
	free(even.bytes);
	free(odd.bytes);
	free(other.bytes);
}

static void no_pick_is_outside_while_switched(void **state)
{
	(void)state;
	run_while_switching(skel->progs.pick_check);
	assert_int_equal(skel->bss->pick_outside, 0);
	assert_true(skel->bss->pick_settled > 100000);
	print_message("%u switches, %llu picks with the same table before and after, %llu found none\n", switches,
		      (unsigned long long)skel->bss->pick_settled, (unsigned long long)skel->bss->pick_none);
	/* none at all is possible here alone: the agent lets a region rest for a millisecond, this test for none */
}

static void a_careless_reader_is_caught(void **state)
{
	(void)state;
	/* on a busy machine the two threads may take turns on one CPU, and then nothing is read while it is switched: until they do meet */
	for (int i = 0; i < CARELESS_RUNS && !skel->bss->pick_torn; i++)
		run_while_switching(skel->progs.pick_careless);
	print_message("%llu torn reads\n", (unsigned long long)skel->bss->pick_torn);
	assert_true(skel->bss->pick_torn > 0);
}

/* ---- members that are out ---- */

static void table_of_four(void)
{
	add_backends(SERVICE, 1, 4);
	rig_table(&rig, SERVICE, (const uint32_t[]){ 1, 2, 3, 4 }, (const double[]){ 1, 1, 1, 97 }, 4);
}

static void an_evicted_member_gets_nothing(void **state)
{
	(void)state;
	table_of_four();
	rig_backend_state(&rig, 4, SY_EVICTED, SY_R_CHECK_FAILED);
	run_picks(skel->progs.pick_count, 100000);
	assert_int_equal(seen[4], 0);
	assert_int_equal(seen[0], 0);
	assert_int_equal(seen[1] + seen[2] + seen[3], 100000);
}

static void a_draining_member_gets_nothing(void **state)
{
	(void)state;
	table_of_four();
	rig_backend_state(&rig, 1, SY_DRAINING, SY_R_WEIGHT_0);
	run_picks(skel->progs.pick_count, 100000);
	assert_int_equal(seen[1], 0);
	assert_int_equal(seen[2] + seen[3] + seen[4], 100000);
}

static void an_endpoint_that_is_out_counts(void **state)
{
	(void)state;
	table_of_four();
	rig.maps.endpoints[4].agent = SY_R_CHECK_FAILED << 8 | SY_EVICTED;
	rig.maps.endpoints[2].program = SY_R_PASSIVE << 8 | SY_EVICTED;
	run_picks(skel->progs.pick_count, 100000);
	assert_int_equal(seen[4] + seen[2], 0);
	assert_int_equal(seen[1] + seen[3], 100000);
}

static void all_out_is_none(void **state)
{
	(void)state;
	table_of_four();
	for (uint32_t id = 1; id <= 4; id++)
		rig_backend_state(&rig, id, SY_EVICTED, SY_R_CHECK_FAILED);
	run_picks(skel->progs.pick_count, 1000);
	assert_int_equal(seen[0], 1000);
}

static void the_empty_table_is_none(void **state)
{
	(void)state;
	rig_table(&rig, SERVICE, NULL, NULL, 0);
	run_picks(skel->progs.pick_count, 1000);
	assert_int_equal(seen[0], 1000);
}

static void the_last_live_member_of_many_is_found(void **state)
{
	uint32_t ids[600];
	double w[600];

	(void)state;
	for (uint32_t i = 0; i < 600; i++) {
		ids[i] = i + 1;
		w[i] = 1;
	}
	add_backends(SERVICE, 1, 600);
	rig_table(&rig, SERVICE, ids, w, 600);
	for (uint32_t id = 1; id <= 600; id++)
		if (id != 377)
			rig_backend_state(&rig, id, SY_EVICTED, SY_R_CHECK_FAILED);
	run_picks(skel->progs.pick_count, 5000);
	assert_int_equal(seen[377], 5000);
}

#define PICK_CASE(sentence, func) { sentence, func, set_up, NULL, NULL }

int main(void)
{
	const struct CMUnitTest cases[] = {
		PICK_CASE("weights 1, 2, 7 get their shares of a million picks", shares_of_1_2_7),
		PICK_CASE("a single member gets every pick", shares_of_one_member),
		PICK_CASE("skewed weights get their shares of a million picks", shares_of_skewed_weights),
		PICK_CASE("4096 members get their shares of a million picks", shares_of_4096_members),
		PICK_CASE("16384 members get their shares of a million picks", shares_of_16384_members),
		PICK_CASE("no pick names a backend outside the table while it is switched a million times",
			  no_pick_is_outside_while_switched),
		PICK_CASE("a reader that looks at the table word once is caught by the same switching", a_careless_reader_is_caught),
		PICK_CASE("an evicted member gets nothing from the next pick on", an_evicted_member_gets_nothing),
		PICK_CASE("a draining member gets nothing from the next pick on", a_draining_member_gets_nothing),
		PICK_CASE("a member whose endpoint is out gets nothing", an_endpoint_that_is_out_counts),
		PICK_CASE("a table whose members are all out gives none", all_out_is_none),
		PICK_CASE("the empty table gives none", the_empty_table_is_none),
		PICK_CASE("the last live member of 600 is found", the_last_live_member_of_many_is_found),
	};
	int failed;

	rig_enter_namespace();
	skel = with_pick__open();
	assert_non_null(skel);
	rig_only(skel->obj, "pick_");
	rig_load(&rig, skel->obj, 64, 0);
	/* loaded through the rig, so the skeleton's own views are mapped here */
	skel->bss = rig_mmap(skel->maps.bss);
	seen = rig_mmap(skel->maps.pick_seen);
	probe = FRAME(.from = "10.1.0.2:1000", .to = "10.0.0.100:80", .flags = SYN);
	failed = cmocka_run_group_tests_name("pick", cases, NULL, NULL);
	rig_unload(&rig);
	with_pick__destroy(skel);
	return failed;
}
