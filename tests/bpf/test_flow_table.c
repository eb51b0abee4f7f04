// SPDX-License-Identifier: MIT
/* The flow table under two CPUs and the sweeper at once: random packets of random flows through the whole path, delays at
 * the race points, evictions and id changes between them; every twentieth of a second both stop and the table is held against what
 * must be true of it at rest (lib/lines.h). Then the same with each known fault put in, which has to be caught. */
#include <bpf/bpf.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>
#include "lines.h"
#include "unit.h"
#include "with_flowstress.skel.h"

#define N_OPERATIONS 10000000ULL
#define MAX_SECONDS 50
#define MUTANT_SECONDS 25
#define N_THREADS 2
#define BATCH 1000
#define ROUND_NS 50000000ULL
#define HZ 16 /* jiffies that the programs take for a second: 64 ms where the kernel has 250 */
#define ROOMY 1024 /* groups */
#define CROWDED 8 /* new flows displace others all the time */
#define N_BACKENDS 4
#define SERVICE 1

struct stress {
	struct with_flowstress *skel;
	struct rig rig;
	pthread_barrier_t start, stop;
	atomic_bool running, quit;
	pthread_t threads[N_THREADS];
	struct lines_report report;
	uint32_t faults;
};

struct worker {
	struct stress *s;
	int cpu;
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct frame in = FRAME(.from = "10.64.0.0:2000", .to = "10.0.0.100:80", .flags = SYN, .short_frame = true);
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(w->cpu, &cpus);
	(void)sched_setaffinity(0, sizeof(cpus), &cpus); /* with a single CPU both share it */
	for (;;) {
		pthread_barrier_wait(&w->s->start);
		if (w->s->quit)
			return NULL;
		while (w->s->running)
			(void)rig_repeat(bpf_program__fd(w->s->skel->progs.flowstress_random), RIG_XDP, &in,
					 w->s->rig.if_client, BATCH);
		pthread_barrier_wait(&w->s->stop);
	}
}

static void use_backends(struct stress *s, uint32_t n)
{
	const uint32_t ids[N_BACKENDS] = { 1, 2, 3, 4 };
	const double weights[N_BACKENDS] = { 1, 1, 1, 1 };

	for (uint32_t id = 1; id <= N_BACKENDS; id++)
		rig_backend_state(&s->rig, id, SY_UP, SY_R_NONE);
	rig_table(&s->rig, SERVICE, ids, weights, n);
	s->skel->bss->stress_backends = n - 1;
}

static void fill_maps(struct stress *s)
{
	struct sy_service *service = &s->rig.maps.services[SERVICE];
	const uint32_t timeout[SY_N_TIMEOUTS] = { 60, 160, 80, 24, 16 };

	rig_service(&s->rig, SERVICE, "10.0.0.100:80");
	memcpy(service->timeout, timeout, sizeof(timeout));
	s->rig.maps.config->min_timeout = 16;
	rig_pool(&s->rig, 0, (const char *const[]){ "10.2.0.1" }, 1, 2000, 2999);
	for (uint32_t i = 0; i < N_BACKENDS; i++) {
		char at[32];

		snprintf(at, sizeof(at), "10.3.0.%u:%u", i + 1, 8000 + i + 1);
		rig_backend(&s->rig, i + 1, SERVICE, at, 1);
	}
}

static struct stress *stress_start(enum sy_mutant mutant, uint32_t n_groups)
{
	static struct worker workers[N_THREADS];
	struct stress *s = calloc(1, sizeof(*s));
	struct sy_test *test;
	LIBBPF_OPTS(bpf_test_run_opts, o);

	assert_non_null(s);
	s->skel = with_flowstress__open();
	assert_non_null(s->skel);
	test = rig_global(s->skel->obj, "sy_test", sizeof(*test));
	assert_non_null(test);
	*test = (struct sy_test){ .mutant = mutant, .delay = 1 };
	bpf_program__set_autoload(s->skel->progs.steelyard_xdp, false);
	bpf_program__set_autoload(s->skel->progs.steelyard_tc, false);
	bpf_program__set_autoload(s->skel->progs.flowstress_plain, false);
	rig_load(&s->rig, s->skel->obj, n_groups, HZ);
	s->skel->bss = rig_mmap(s->skel->maps.bss);
	s->skel->bss->drive_shared_ports = 1;
	memcpy(&s->skel->bss->drive_to, s->rig.mac_client_if, 6);
	fill_maps(s);
	assert_int_equal(bpf_prog_test_run_opts(bpf_program__fd(s->skel->progs.steelyard_arm), &o), 0);
	assert_int_equal(o.retval, 0);
	pthread_barrier_init(&s->start, NULL, N_THREADS + 1);
	pthread_barrier_init(&s->stop, NULL, N_THREADS + 1);
	for (int i = 0; i < N_THREADS; i++) {
		workers[i] = (struct worker){ s, i };
		assert_int_equal(pthread_create(&s->threads[i], NULL, work, &workers[i]), 0);
	}
	return s;
}

static void stress_end(struct stress *s)
{
	s->quit = true;
	pthread_barrier_wait(&s->start);
	for (int i = 0; i < N_THREADS; i++)
		pthread_join(s->threads[i], NULL);
	rig_unload(&s->rig);
	with_flowstress__destroy(s->skel);
	free(s);
}

/* One round: both CPUs run, stop, the table is checked. Few flows make them meet on one key, many fill the table. */
static uint32_t stress_round(struct stress *s, uint32_t round)
{
	static const uint32_t flows[] = { 4, 40, 1000 };
	uint64_t end = now_ns() + ROUND_NS, verdicts[SY_N_VERDICTS];

	s->skel->bss->stress_flows = flows[round % 3];
	s->skel->bss->stress_acts = round % 4 == 3 ? UINT32_MAX : 0;
	use_backends(s, round % 5 < 2 ? 1 : N_BACKENDS);
	rig_beat(&s->rig);
	s->running = true;
	pthread_barrier_wait(&s->start);
	while (now_ns() < end)
		usleep(5000);
	s->running = false;
	pthread_barrier_wait(&s->stop);
	s->faults = lines_check_settled(&s->rig, &s->report);
	rig_verdicts(&s->rig, verdicts);
	return s->faults + (uint32_t)s->skel->bss->drive_torn + (uint32_t)verdicts[SY_V_ERROR];
}

static void print_run(const struct stress *s, uint32_t rounds)
{
	static const char *const names[] = {
#define X(NAME, name, text) name,
		SY_COUNTERS(X)
#undef X
	};
	static const char *const verdict_names[] = {
#define X(NAME, name, kind, text) name,
		SY_VERDICTS(X)
#undef X
	};
	uint64_t counts[SY_N_COUNTERS], verdicts[SY_N_VERDICTS];

	rig_counts(&s->rig, counts);
	rig_verdicts(&s->rig, verdicts);
	print_message("%llu operations in %u rounds, %llu sent, %llu torn\n%s\n",
		      (unsigned long long)s->skel->bss->stress_operations, rounds,
		      (unsigned long long)s->skel->bss->drive_sent, (unsigned long long)s->skel->bss->drive_torn,
		      lines_text(&s->report));
	for (int i = 0; i < SY_N_COUNTERS; i++)
		if (counts[i])
			print_message("%s %llu  ", names[i], (unsigned long long)counts[i]);
	print_message("\n");
	for (int i = 0; i < SY_N_VERDICTS; i++)
		if (verdicts[i])
			print_message("%s %llu  ", verdict_names[i], (unsigned long long)verdicts[i]);
	print_message("\n");
}

static void holds(uint32_t n_groups)
{
	struct stress *s = stress_start(MUTANT_NONE, n_groups);
	uint64_t end = now_ns() + MAX_SECONDS * 1000000000ULL, counts[SY_N_COUNTERS], verdicts[SY_N_VERDICTS], operations;
	uint32_t faults = 0, round = 0;

	for (; !faults && now_ns() < end && s->skel->bss->stress_operations < N_OPERATIONS; round++)
		faults = stress_round(s, round);
	print_run(s, round);
	rig_counts(&s->rig, counts);
	rig_verdicts(&s->rig, verdicts);
	operations = s->skel->bss->stress_operations;
	stress_end(s);
	assert_int_equal(faults, 0);
	/* it did what it is there for */
	assert_true(operations >= N_OPERATIONS);
	assert_true(counts[SY_C_CAS_LOST] > 0);
	assert_true(counts[SY_C_CLAIM_WITHDRAWN] > 0);
	assert_true(counts[SY_C_HALF_OPEN_TAKEN] > 0);
	assert_true(verdicts[SY_V_COLLISION] > 0);
	assert_true(verdicts[SY_V_LOST] > 0);
}

static void holds_in_a_roomy_table(void **state)
{
	(void)state;
	holds(ROOMY);
}

static void holds_in_a_crowded_table(void **state)
{
	(void)state;
	holds(CROWDED);
}

/* Everything ends when nobody sends any more: no line is left but those kept back, and those go too. */
static void empties_by_itself(void **state)
{
	struct stress *s = stress_start(MUTANT_NONE, ROOMY);
	uint64_t end;
	uint32_t left = 1;

	(void)state;
	for (uint32_t round = 0; round < 9; round++)
		assert_int_equal(stress_round(s, round), 0);
	for (end = now_ns() + 60 * 1000000000ULL; left && now_ns() < end; usleep(50000)) {
		left = 0;
		(void)lines_check(&s->rig, &s->report);
		for (int i = 1; i < SY_N_LINE_STATES; i++)
			left += s->report.n[i];
	}
	if (left)
		print_run(s, 9);
	for (uint32_t b = 1; b <= N_BACKENDS; b++)
		assert_int_equal(s->rig.maps.loads[b].active, 0);
	stress_end(s);
	assert_int_equal(left, 0);
}

static void catches(enum sy_mutant mutant, uint32_t n_groups)
{
	struct stress *s = stress_start(mutant, n_groups);
	uint64_t end = now_ns() + MUTANT_SECONDS * 1000000000ULL;
	uint32_t faults = 0, round = 0;

	for (; !faults && now_ns() < end; round++)
		faults = stress_round(s, round);
	print_run(s, round);
	stress_end(s);
	assert_true(faults > 0);
}

static void catches_no_second_look(void **state)
{
	(void)state;
	catches(MUTANT_NO_SECOND_LOOK, ROOMY);
}

static void catches_live_before_look(void **state)
{
	(void)state;
	catches(MUTANT_LIVE_BEFORE_LOOK, ROOMY);
}

static void catches_late_mate(void **state)
{
	(void)state;
	catches(MUTANT_LATE_MATE, CROWDED);
}

int main(void)
{
	const struct CMUnitTest cases[] = {
		CASE("ten million operations on two CPUs and the sweeper leave whole flows, single keys, exact counts",
		     holds_in_a_roomy_table),
		CASE("the same holds in a table where new flows displace others all the time", holds_in_a_crowded_table),
		CASE("a table that nobody uses any more empties by itself", empties_by_itself),
		CASE("a claim without the second look is caught", catches_no_second_look),
		CASE("a forward line that is live before its second look is caught", catches_live_before_look),
		CASE("a return line that learns its mate too late is caught", catches_late_mate),
	};

	rig_enter_namespace();
	return cmocka_run_group_tests_name("flow table", cases, NULL, NULL);
}
