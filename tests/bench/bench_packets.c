// SPDX-License-Identifier: MIT
/* Nanoseconds a packet, ours and the floor programs', in one run: rounds are interleaved, so that a noisy neighbour or a
 * clock that changes hits all alike; medians of rounds. All work on one flow table and its flows, since two tables of the same
 * shape differ by up to twice by where their memory lies. It is aged: filled, then an eighth of the flows ended and begun
 * anew elsewhere, again and again, and so is the kernel's hash beside it. After each measurement a counter must say that every iteration did its work.
 *
 *   net = ns less what the driver (which writes each packet anew) and the test run itself take: see floor_driver
 *   ratio = net of ours over net of the floor */
#include <bpf/bpf.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "floor.skel.h"
#include "rig.h"
#include "with_bench.skel.h"
#include "with_benchtc.skel.h"

#define ROUNDS 9
#define N_GROUPS 131072U /* 524,288 lines */
#define N_FLOWS 81920U /* established ones: a third full */
#define N_FRESH 16384U /* connections begun in one measurement; a power of two */
#define FIRST_FRESH N_FLOWS
#define N_CHURNS 12
#define REPEAT 1000000U
#define N_BACKENDS 64U
#define SERVICE 1

/* As in drive.bpf.h, which only clang for BPF can read. */
enum { OP_SYN, OP_SYNACK, OP_ACK, OP_DATA };
struct step {
	uint32_t flow;
	uint16_t op, gen;
};
#define N_STEPS (1U << 20)

/* One of the three loaded objects with its driver's maps and variables. */
struct side {
	enum rig_hook kind;
	int ifindex;
	struct step *steps;
	volatile uint64_t *next;
	volatile uint32_t *mask;
};

static struct with_bench *ours;
static struct with_benchtc *ours_tc;
static struct floor *base;
static struct rig rig, rig_tc;
static struct side xdp, tc, base_side;
static struct frame packet;
static uint16_t gen[1 << 19]; /* of each flow */
static int failures;

/* All but a few: two flows of the floor's may want one key, and a full group refuses one in thousands. */
static void check(const char *what, uint64_t got, uint64_t wanted)
{
	if (got >= wanted - wanted / 1000)
		return;
	printf("bench: %s: %" PRIu64 " of %" PRIu64 " iterations did their work\n", what, got, wanted);
	failures++;
}

static double cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ns a packet by thread CPU time: wall time would count the waits for RCU around a test run. */
static double run(struct side *s, const struct bpf_program *p, unsigned n)
{
	double from;

	*s->next = 0;
	from = cpu_seconds();
	(void)rig_repeat(bpf_program__fd(p), s->kind, &packet, s->ifindex, n);
	return (cpu_seconds() - from) * 1e9 / n;
}

static uint32_t mask_for(uint32_t n)
{
	uint32_t m = 1;

	while (m < n)
		m <<= 1;
	return m - 1;
}

static void steps_list(struct side *s, const uint32_t *flows, uint32_t n, unsigned op)
{
	for (uint32_t i = 0; i < n; i++)
		s->steps[i] = (struct step){ flows[i], (uint16_t)op, gen[flows[i]] };
	*s->mask = mask_for(n);
}

/* The first n flows in an order that no prefetcher follows. */
static void steps_range(struct side *s, uint32_t first, uint32_t n, unsigned op)
{
	for (uint32_t i = 0; i < n; i++) {
		uint32_t flow = first + (uint32_t)((i * 2654435761ULL) % n);

		s->steps[i] = (struct step){ flow, (uint16_t)op, gen[flow] };
	}
	*s->mask = mask_for(n);
}

static void shuffle(uint32_t *v, uint32_t n)
{
	for (uint32_t i = n - 1; i > 0; i--) {
		uint32_t j = (uint32_t)random() % (i + 1), t = v[i];

		v[i] = v[j];
		v[j] = t;
	}
}

/* ---- filling and ageing ---- */

static void begin(const uint32_t *flows, uint32_t n)
{
	static const unsigned ops[] = { OP_SYN, OP_SYNACK, OP_ACK, OP_DATA };

	for (size_t i = 0; i < sizeof(ops) / sizeof(*ops); i++) {
		steps_list(&xdp, flows, n, ops[i]);
		run(&xdp, ours->progs.bench_learn, n);
	}
	steps_list(&base_side, flows, n, OP_ACK);
	run(&base_side, base->progs.floor_insert, n);
}

static void end(const uint32_t *flows, uint32_t n)
{
	steps_list(&xdp, flows, n, OP_ACK);
	run(&xdp, ours->progs.bench_end, n);
	steps_list(&base_side, flows, n, OP_ACK);
	run(&base_side, base->progs.floor_remove, n);
	for (uint32_t i = 0; i < n; i++)
		gen[flows[i]]++;
}

static void age(void)
{
	uint32_t *flows = calloc(N_FLOWS, sizeof(*flows));

	if (!flows)
		abort();
	for (uint32_t i = 0; i < N_FLOWS; i++)
		flows[i] = i;
	shuffle(flows, N_FLOWS);
	begin(flows, N_FLOWS);
	for (int churn = 0; churn < N_CHURNS; churn++) {
		shuffle(flows, N_FLOWS);
		end(flows, N_FLOWS / 8);
		begin(flows, N_FLOWS / 8);
	}
	free(flows);
}

static uint32_t count_lines(const struct sy_group *groups, uint32_t n_groups, bool established_only)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < n_groups * SY_LINES_PER_GROUP; i++) {
		uint64_t state = groups[i / SY_LINES_PER_GROUP].line[i % SY_LINES_PER_GROUP].word & SY_STATE_MASK;

		n += established_only ? state == SY_ESTABLISHED : state != SY_FREE;
	}
	return n;
}

/* ---- setting up ---- */

static void fill_service(struct rig *r)
{
	static const uint8_t mac[6] = { 0x02, 0, 0, 0x02, 0, 0x0a };
	uint32_t ids[N_BACKENDS];
	double weights[N_BACKENDS];

	rig_service(r, SERVICE, "10.0.0.100:80");
	for (uint32_t i = 0; i < N_BACKENDS; i++) {
		char at[32];

		ids[i] = i + 1;
		weights[i] = 1 + i % 3;
		snprintf(at, sizeof(at), "10.3.%u.%u:%u", (i + 1) >> 8, (i + 1) & 255, 8000 + ((i + 1) & 1023));
		rig_backend(r, i + 1, SERVICE, at, 1);
		r->maps.backends[i + 1].nh = rig_next_hop(r, r->if_client, mac);
	}
	rig_table(r, SERVICE, ids, weights, N_BACKENDS);
}

/* All maps of an object that the XDP side has too are the XDP side's. */
static void share_maps(struct bpf_object *object)
{
	struct bpf_map *map;

	bpf_object__for_each_map(map, object) {
		struct bpf_map *same = bpf_object__find_map_by_name(ours->obj, bpf_map__name(map));

		if (!bpf_map__is_internal(map) && same && bpf_map__reuse_fd(map, bpf_map__fd(same)))
			abort();
	}
}

static struct side side_make(enum rig_hook kind, int ifindex, struct bpf_map *ops)
{
	struct side s = { .kind = kind, .ifindex = ifindex, .steps = rig_mmap(ops) };

	return s;
}

static void set_up(void)
{
	rig_enter_namespace();
	ours = with_bench__open();
	ours_tc = with_benchtc__open();
	base = floor__open();
	if (!ours || !ours_tc || !base)
		abort();
	rig_only(ours->obj, "bench_");
	rig_only(ours_tc->obj, "benchtc_");
	rig_load(&rig, ours->obj, N_GROUPS, 0);
	share_maps(ours_tc->obj);
	rig_load(&rig_tc, ours_tc->obj, N_GROUPS, 0);
	base->rodata->floor_mask = N_GROUPS - 1;
	for (int i = 0; i < 4; i++)
		base->rodata->floor_secret[i] = rig.maps.config->secret[i];
	share_maps(base->obj);
	if (bpf_map__reuse_fd(base->maps.floor_lines, rig.maps.fd_lines) || floor__load(base)) {
		fprintf(stderr, "bench: the floor programs do not load\n");
		exit(1);
	}
	ours->bss = rig_mmap(ours->maps.bss);
	ours_tc->bss = rig_mmap(ours_tc->maps.bss);
	xdp = side_make(RIG_XDP, rig.if_client, ours->maps.drive_ops);
	xdp.next = (volatile uint64_t *)&ours->bss->drive_next;
	xdp.mask = &ours->bss->drive_mask;
	tc = side_make(RIG_TC, rig_tc.if_client, ours_tc->maps.drive_ops);
	tc.next = (volatile uint64_t *)&ours_tc->bss->drive_next;
	tc.mask = &ours_tc->bss->drive_mask;
	base_side = side_make(RIG_XDP, rig.if_client, base->maps.drive_ops);
	base_side.next = (volatile uint64_t *)&base->bss->drive_next;
	base_side.mask = &base->bss->drive_mask;
	packet = FRAME(.from = "10.64.0.0:2000", .to = "10.0.0.100:80", .flags = ACK, .short_frame = true);
	memcpy(packet.data, rig.mac_client_if, 6);
	memcpy(&ours->bss->drive_to, rig.mac_client_if, 6);
	memcpy(&ours_tc->bss->drive_to, rig_tc.mac_client_if, 6);
	memcpy(&base->bss->drive_to, rig.mac_client_if, 6);
	fill_service(&rig);
	age();
	printf("%u flows established, %u of %u lines used\n\n", count_lines(rig.maps.groups, N_GROUPS, true),
	       count_lines(rig.maps.groups, N_GROUPS, false), N_GROUPS * SY_LINES_PER_GROUP);
}

/* The agent's heart: without it next hops are looked up again, which is another measurement. */
static void *beat(void *arg)
{
	for (;;) {
		rig_beat(&rig);
		usleep(100000);
	}
	return arg;
}

/* ---- measuring ---- */

struct figure {
	double ns[ROUNDS];
};

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(const struct figure *f)
{
	double v[ROUNDS];

	memcpy(v, f->ns, sizeof(v));
	qsort(v, ROUNDS, sizeof(*v), by_value);
	return v[ROUNDS / 2];
}

/* Median of the rounds' own ratios: what disturbs a round disturbs both. */
static double ratio(const struct figure *a, const struct figure *a_driver, const struct figure *b, const struct figure *b_driver)
{
	struct figure r;

	for (int i = 0; i < ROUNDS; i++)
		r.ns[i] = (a->ns[i] - a_driver->ns[i]) / (b->ns[i] - b_driver->ns[i]);
	return median(&r);
}

static void line(const char *what, const struct figure *f, const struct figure *driver)
{
	printf("  %-58s %8.1f", what, median(f));
	if (driver)
		printf(" %8.1f", median(f) - median(driver));
	printf("\n");
}

static void target(const char *what, double measured, double limit)
{
	printf("target: %-62s %6.2f  <= %-5.2f %s\n", what, measured, limit, measured <= limit ? "reached" : "missed");
}

static double floor_run(const struct bpf_program *p, enum rig_hook kind, unsigned n)
{
	uint64_t done = base->bss->floor_done;
	double ns;

	base_side.kind = kind;
	ns = run(&base_side, p, n);
	base_side.kind = RIG_XDP;
	check(bpf_program__name(p), base->bss->floor_done - done, n);
	return ns;
}

static double our_run(struct side *s, const struct bpf_program *p, unsigned n, enum sy_verdict verdict)
{
	const struct rig *r = s == &xdp ? &rig : &rig_tc;
	uint64_t before[SY_N_VERDICTS], after[SY_N_VERDICTS], counts[2][SY_N_COUNTERS], done;
	double ns;

	rig_verdicts(r, before);
	rig_counts(r, counts[0]);
	ns = run(s, p, n);
	rig_verdicts(r, after);
	rig_counts(r, counts[1]);
	done = after[verdict] - before[verdict];
	if (verdict != SY_V_NEW) /* an established packet's next hop has to be at hand; a new client's is looked up */
		done -= counts[1][SY_C_FIB_LOOKUPS] - counts[0][SY_C_FIB_LOOKUPS];
	check(bpf_program__name(p), done, n);
	return ns;
}

static double counted_run(const struct bpf_program *p, unsigned n)
{
	uint64_t done = ours->bss->bench_done;
	double ns = run(&xdp, p, n);

	done = ours->bss->bench_done - done;
	check(bpf_program__name(p), done, n);
	return ns;
}

static void established(uint32_t n, const char *text, double xdp_limit, double tc_limit)
{
	struct figure driver, parse, hit, hash, ack, data, tc_driver, tc_hit, tc_ack;
	char what[96];

	for (int i = 0; i < ROUNDS; i++) {
		steps_range(&base_side, 0, n, OP_ACK); /* the list is one for all; the masks are each their own */
		*xdp.mask = *tc.mask = *base_side.mask;
		driver.ns[i] = floor_run(base->progs.floor_driver, RIG_XDP, REPEAT);
		parse.ns[i] = floor_run(base->progs.floor_parse, RIG_XDP, REPEAT);
		hit.ns[i] = floor_run(base->progs.floor_hit_line, RIG_XDP, REPEAT);
		ack.ns[i] = our_run(&xdp, ours->progs.bench_xdp, REPEAT, SY_V_FORWARD);
		hash.ns[i] = floor_run(base->progs.floor_hit_hash, RIG_XDP, REPEAT);
		tc_driver.ns[i] = floor_run(base->progs.floor_tc_driver, RIG_TC, REPEAT);
		tc_hit.ns[i] = floor_run(base->progs.floor_tc_hit_line, RIG_TC, REPEAT);
		tc_ack.ns[i] = our_run(&tc, ours_tc->progs.benchtc_run, REPEAT, SY_V_FORWARD);
		steps_range(&xdp, 0, n, OP_DATA);
		data.ns[i] = our_run(&xdp, ours->progs.bench_xdp, REPEAT, SY_V_RETURN);
	}
	printf("established packet, %s%45s\n", text, "ns      net");
	line("driver and test run", &driver, NULL);
	line("floor: parse, swap MACs, XDP_TX", &parse, &driver);
	line("floor: line hit and rewrite", &hit, &driver);
	line("floor: the kernel's HASH instead", &hash, &driver);
	line("steelyard XDP, client to backend", &ack, &driver);
	line("steelyard XDP, backend to client", &data, &driver);
	line("TC: driver and test run", &tc_driver, NULL);
	line("TC floor: line hit, checksums by the helpers", &tc_hit, &tc_driver);
	line("steelyard TC, client to backend", &tc_ack, &tc_driver);
	printf("  ratios with the driver: XDP %.2f, TC %.2f\n\n", median(&ack) / median(&hit), median(&tc_ack) / median(&tc_hit));
	if (xdp_limit > 0) {
		snprintf(what, sizeof(what), "established packet, XDP, over the line hit, %s", text);
		target(what, ratio(&ack, &driver, &hit, &driver), xdp_limit);
	}
	if (tc_limit > 0) {
		snprintf(what, sizeof(what), "established packet, TC, over its floor, %s", text);
		target(what, ratio(&tc_ack, &tc_driver, &tc_hit, &tc_driver), tc_limit);
	}
	printf("\n");
}

static void connections(void)
{
	struct figure driver, claims, syn, ending;
	uint32_t *fresh = calloc(N_FRESH, sizeof(*fresh));

	for (uint32_t i = 0; fresh && i < N_FRESH; i++)
		fresh[i] = FIRST_FRESH + i;
	for (int i = 0; fresh && i < ROUNDS; i++) {
		shuffle(fresh, N_FRESH);
		steps_list(&base_side, fresh, N_FRESH, OP_ACK);
		(void)floor_run(base->progs.floor_driver, RIG_XDP, N_FRESH);
		driver.ns[i] = floor_run(base->progs.floor_driver, RIG_XDP, N_FRESH);
		claims.ns[i] = floor_run(base->progs.floor_claims, RIG_XDP, N_FRESH);
		steps_list(&xdp, fresh, N_FRESH, OP_SYN);
		syn.ns[i] = our_run(&xdp, ours->progs.bench_xdp, N_FRESH, SY_V_NEW);
		ending.ns[i] = counted_run(ours->progs.bench_end, N_FRESH);
		for (uint32_t f = 0; f < N_FRESH; f++)
			gen[fresh[f]]++;
	}
	free(fresh);
	printf("new connection%58s\n", "ns      net");
	line("driver and test run", &driver, NULL);
	line("floor: two line claims and releases", &claims, &driver);
	line("steelyard XDP, SYN: pick, port, two claims, record", &syn, &driver);
	line("find and end a flow", &ending, &driver);
	printf("\n");
	target("new connection's packet over two bare claims", ratio(&syn, &driver, &claims, &driver), 1.6);
	printf("\n");
}

static void others(void)
{
	struct figure driver, miss, ours_miss;

	for (int i = 0; i < ROUNDS; i++) {
		steps_range(&base_side, 0, 65536, OP_ACK);
		steps_range(&xdp, 0, 65536, OP_ACK);
		driver.ns[i] = floor_run(base->progs.floor_driver, RIG_XDP, REPEAT);
		miss.ns[i] = floor_run(base->progs.floor_miss, RIG_XDP, REPEAT);
		ours_miss.ns[i] = counted_run(ours->progs.bench_others, REPEAT);
	}
	printf("not ours, 64K flows%53s\n", "ns      net");
	line("driver and test run", &driver, NULL);
	line("floor: parse and two missed lookups", &miss, &driver);
	line("steelyard XDP, passed", &ours_miss, &driver);
	printf("\n");
	target("not ours, over parse and two missed lookups", ratio(&ours_miss, &driver, &miss, &driver), 1.5);
	printf("\n");
}

static void pick_table(uint32_t service, uint32_t n, bool skewed)
{
	uint32_t *ids = calloc(n, sizeof(*ids));
	double *weights = calloc(n, sizeof(*weights));
	char listen[32];

	if (!ids || !weights)
		abort();
	snprintf(listen, sizeof(listen), "10.0.0.100:%u", 1000 + service);
	rig_service(&rig, service, listen);
	for (uint32_t i = 0; i < n; i++) {
		ids[i] = 10000 * service + i;
		weights[i] = skewed ? (i % 64 ? 0.01 + i % 7 : 5000) : 1 + i % 3;
		rig_backend(&rig, ids[i], service, "10.3.0.1:8001", 1);
	}
	rig_table(&rig, service, ids, weights, n);
	free(ids);
	free(weights);
}

static void picks(void)
{
	struct figure none, few, many, skewed;

	pick_table(2, 4, false);
	pick_table(3, 4096, false);
	pick_table(4, 4096, true);
	for (int i = 0; i < ROUNDS; i++) {
		none.ns[i] = counted_run(ours->progs.bench_no_pick, REPEAT);
		ours->bss->bench_service = 2;
		few.ns[i] = counted_run(ours->progs.bench_pick, REPEAT);
		ours->bss->bench_service = 3;
		many.ns[i] = counted_run(ours->progs.bench_pick, REPEAT);
		ours->bss->bench_service = 4;
		skewed.ns[i] = counted_run(ours->progs.bench_pick, REPEAT);
		ours->bss->bench_service = 0;
	}
	printf("pick%68s\n", "ns      net");
	line("a random number and the test run", &none, NULL);
	line("pick of 4", &few, &none);
	line("pick of 4096", &many, &none);
	line("pick of 4096, skewed weights", &skewed, &none);
	printf("\n");
	target("pick of 4096 over pick of 4", ratio(&many, &none, &few, &none), 1.3);
	target("pick of 4096 with skewed weights over pick of 4", ratio(&skewed, &none, &few, &none), 1.3);
	printf("\n");
}

int main(void)
{
	pthread_t heart;
	cpu_set_t cpus;

	setvbuf(stdout, NULL, _IOLBF, 0);
	CPU_ZERO(&cpus);
	CPU_SET((size_t)sysconf(_SC_NPROCESSORS_ONLN) - 1, &cpus);
	(void)sched_setaffinity(0, sizeof(cpus), &cpus);
	set_up();
	if (pthread_create(&heart, NULL, beat, NULL))
		return 1;
	established(1, "1 flow", 2.0, 0);
	established(1024, "1K flows", 0, 1.6);
	established(65536, "64K flows", 1.4, 0);
	connections();
	others();
	picks();
	return failures != 0;
}
