// SPDX-License-Identifier: MIT
/* Source ports down to the last one: every port of every address is given out before a connection is refused, and ports that are
 * kept back, or whose flow is closed, only when there is no other. */
#include "lines.h"
#include "scene.h"

static struct rig rig;

#define N_ADDRS SY_MAX_POOL_ADDRS
#define N_PORTS 8
#define FIRST_PORT 30000
#define CLIENT_PORT 2000 /* none of the pool's, so that no client's own port is taken first */

static void pool_of(unsigned n_addrs, unsigned n_ports)
{
	char text[N_ADDRS][16];
	const char *addrs[N_ADDRS];

	for (unsigned i = 0; i < n_addrs; i++) {
		snprintf(text[i], sizeof(text[i]), "10.2.1.%u", i + 1);
		addrs[i] = text[i];
	}
	rig_pool(&rig, 0, addrs, n_addrs, FIRST_PORT, (uint16_t)(FIRST_PORT + n_ports - 1));
}

/* Connection n: its SYN must be answered so. Where it was sent from is *ret, if it was sent. */
static void connects(struct scene *s, unsigned n, enum sy_verdict verdict, struct frame_view *ret)
{
	uint64_t before[SY_N_VERDICTS], after[SY_N_VERDICTS];
	struct frame_view v;
	struct frame out, f;
	char from[32];

	snprintf(from, sizeof(from), "10.1.0.3:%u", CLIENT_PORT + n);
	f = scene_frame(s, SCENE_FROM_CLIENT,
			(struct frame_spec){ .from = from, .to = SCENE_LISTEN, .flags = SYN, .seq = 1000 });
	rig_verdicts(&rig, before);
	(void)rig_run(&rig, s->hook, &f, rig.if_client, &out);
	rig_verdicts(&rig, after);
	if (after[verdict] != before[verdict] + 1)
		fail_msg("connection %u did not come out as verdict %d", n, verdict);
	if (frame_read(&out, &v))
		fail_msg("connection %u: %s", n, frame_read(&out, &v));
	if (verdict == SY_V_NEW)
		assert_string_equal(v.to, SCENE_BACKEND_AT);
	if (ret)
		*ret = v;
}

static void the_last_of_16_addresses_is_used_up(struct scene *s)
{
	bool given[N_ADDRS][N_PORTS] = { 0 };
	struct lines_report report;

	pool_of(N_ADDRS, N_PORTS);
	for (unsigned i = 0; i < N_ADDRS * N_PORTS; i++) {
		struct frame_view v;
		unsigned addr, port;

		connects(s, i, SY_V_NEW, &v);
		addr = (ntohl(v.saddr) & 0xff) - 1;
		port = v.sport - FIRST_PORT;
		assert_true(addr < N_ADDRS && port < N_PORTS);
		assert_false(given[addr][port]);
		given[addr][port] = true;
	}
	for (unsigned i = 0; i < 3; i++)
		connects(s, N_ADDRS * N_PORTS + i, SY_V_PORTS_EXHAUSTED, NULL);
	assert_int_equal(lines_check(&rig, &report), 0);
	assert_int_equal(report.n[SY_SYN], N_ADDRS * N_PORTS);
}

static void a_freed_port_anywhere_is_found(struct scene *s)
{
	struct frame_view v;

	pool_of(N_ADDRS, N_PORTS);
	for (unsigned i = 0; i < N_ADDRS * N_PORTS; i++)
		connects(s, i, SY_V_NEW, NULL);
	for (unsigned i = 0; i < N_ADDRS; i++) {
		char source[32];
		struct sy_line *r, *f;

		snprintf(source, sizeof(source), "10.2.1.%u:%u", i + 1, FIRST_PORT + i % N_PORTS);
		r = rig_find(&rig, SCENE_BACKEND_AT, source);
		assert_non_null(r);
		f = rig_line(&rig, r->mate);
		f->word = r->word = 0;
		connects(s, N_ADDRS * N_PORTS + i, SY_V_NEW, &v);
		assert_string_equal(v.from, source);
		connects(s, 2 * N_ADDRS * N_PORTS, SY_V_PORTS_EXHAUSTED, NULL);
	}
}

/* The line of the port that connection n has. */
static struct sy_line *port_of(unsigned n)
{
	struct sy_line *f;
	char from[32];

	snprintf(from, sizeof(from), "10.1.0.3:%u", CLIENT_PORT + n);
	f = rig_find(&rig, from, SCENE_LISTEN);
	assert_non_null(f);
	return rig_line(&rig, f->mate);
}

/* As the sweeper leaves it when the backend closed first. */
static void keep_back(struct sy_line *r)
{
	rig_line(&rig, r->mate)->word = 0;
	r->word = (r->word & ~0xffULL) | SY_TIMEWAIT;
	r->seen = rig_jiffies();
}

static void ports_kept_back_are_the_last_given(struct scene *s)
{
	const unsigned n = 4 * N_PORTS, n_kept = 5;
	uint64_t counts[SY_N_COUNTERS];
	struct lines_report report;
	unsigned i = n_kept;

	pool_of(4, N_PORTS);
	for (unsigned j = 0; j < n_kept; j++) {
		connects(s, j, SY_V_NEW, NULL);
		keep_back(port_of(j));
	}
	for (; i < n; i++)
		connects(s, i, SY_V_NEW, NULL);
	rig_counts(&rig, counts);
	assert_int_equal(counts[SY_C_TIMEWAIT_TAKEN], 0);
	(void)lines_check(&rig, &report);
	assert_int_equal(report.n[SY_TIMEWAIT], n_kept);
	for (unsigned taken = 1; taken <= n_kept; taken++, i++) {
		connects(s, i, SY_V_NEW, NULL);
		rig_counts(&rig, counts);
		assert_int_equal(counts[SY_C_TIMEWAIT_TAKEN], taken);
	}
	connects(s, i, SY_V_PORTS_EXHAUSTED, NULL);
	assert_int_equal(lines_check(&rig, &report), 0);
	assert_int_equal(report.n[SY_TIMEWAIT], 0);
}

static void ports_of_closed_flows_are_given_when_there_is_no_other(struct scene *s)
{
	const unsigned n = 2 * N_PORTS;
	uint64_t counts[SY_N_COUNTERS];
	struct frame_view v;
	char source[32];
	struct sy_line *r;

	pool_of(2, N_PORTS);
	connects(s, 0, SY_V_NEW, &v);
	strcpy(source, v.from);
	r = port_of(0);
	rig_line(&rig, r->mate)->word = (r->word & ~0xffULL) | SY_CLOSING;
	for (unsigned i = 1; i < n; i++)
		connects(s, i, SY_V_NEW, NULL);
	rig_counts(&rig, counts);
	assert_int_equal(counts[SY_C_CLOSED_TAKEN], 0);
	connects(s, n, SY_V_NEW, &v);
	assert_string_equal(v.from, source);
	rig_counts(&rig, counts);
	assert_int_equal(counts[SY_C_CLOSED_TAKEN], 1);
	/* the rest are live: nobody loses a port to a newcomer */
	connects(s, n + 1, SY_V_PORTS_EXHAUSTED, NULL);
}

static const struct scene_body bodies[] = {
	{ "all ports of 16 addresses are given before one connection is refused", the_last_of_16_addresses_is_used_up },
	{ "the one free port of 128 is found, whichever it is", a_freed_port_anywhere_is_found },
	{ "ports kept back are given when nothing else is left, and then all of them", ports_kept_back_are_the_last_given },
	{ "the port of a closed flow is given when nothing else is left", ports_of_closed_flows_are_given_when_there_is_no_other },
};

int main(void)
{
	return scene_main("ports", &rig, bodies, sizeof(bodies) / sizeof(*bodies));
}
