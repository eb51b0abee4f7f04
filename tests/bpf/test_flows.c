// SPDX-License-Identifier: MIT
/* Connections from SYN to end: states, counts, source ports, evictions and ids given again; each on XDP and TC. */
#include "lines.h"
#include "scene.h"

static struct rig rig;

#define FORWARD .verdict = SY_V_FORWARD, .out = SCENE_SENT, .from = SCENE_SOURCE, .to = SCENE_BACKEND_AT
#define RETURN .verdict = SY_V_RETURN, .out = SCENE_SENT, .from = SCENE_LISTEN, .to = SCENE_CLIENT
#define NEW_FLOW .verdict = SY_V_NEW, .out = SCENE_SENT, .from = SCENE_SOURCE, .to = SCENE_BACKEND_AT

#define CLIENT_SENDS(s, FLAGS, SEQ, ACKED, ...)                                                                        \
	do {                                                                                                           \
		struct frame f_ = SCENE_CLIENT_SENDS(s, .flags = FLAGS, .seq = SEQ, .ack = ACKED);                     \
		SCENE_RUN(s, &f_, SCENE_FROM_CLIENT, __VA_ARGS__);                                                     \
	} while (0)
#define BACKEND_SENDS(s, FLAGS, SEQ, ACKED, ...)                                                                       \
	do {                                                                                                           \
		struct frame f_ = SCENE_BACKEND_SENDS(s, .flags = FLAGS, .seq = SEQ, .ack = ACKED);                    \
		SCENE_RUN(s, &f_, SCENE_FROM_BACKEND, __VA_ARGS__);                                                    \
	} while (0)

static struct sy_line *forward_line(void)
{
	struct sy_line *l = rig_find(&rig, SCENE_CLIENT, SCENE_LISTEN);

	assert_non_null(l);
	return l;
}

static void require_state(enum sy_line_state state)
{
	assert_int_equal(rig_state(forward_line()->word), state);
}

static uint64_t active(void)
{
	return rig.maps.loads[SCENE_BACKEND].active;
}

static void a_life_is_counted(struct scene *s)
{
	struct sy_backend_count c;

	scene_syn(s);
	require_state(SY_SYN);
	assert_int_equal(active(), 0);
	c = rig_backend_count(&rig, SCENE_BACKEND);
	assert_int_equal(c.picks, 1);
	assert_int_equal(c.connections, 0);
	BACKEND_SENDS(s, SYN | ACK, 9000, 1001, RETURN);
	require_state(SY_SYN);
	CLIENT_SENDS(s, ACK, 1001, 9001, FORWARD);
	require_state(SY_ESTABLISHED);
	assert_int_equal(active(), 1);
	BACKEND_SENDS(s, ACK, 9001, 1001, RETURN);
	CLIENT_SENDS(s, FIN | ACK, 1001, 9001, FORWARD);
	require_state(SY_CLIENT_CLOSED);
	assert_int_equal(active(), 1);
	/* half-closed goes on both ways */
	BACKEND_SENDS(s, ACK | PSH, 9001, 1002, RETURN);
	CLIENT_SENDS(s, ACK, 1002, 9001, FORWARD);
	require_state(SY_CLIENT_CLOSED);
	BACKEND_SENDS(s, FIN | ACK, 9001, 1002, RETURN);
	require_state(SY_CLOSING);
	assert_int_equal(active(), 0);
	CLIENT_SENDS(s, ACK, 1002, 9002, FORWARD);
	c = rig_backend_count(&rig, SCENE_BACKEND);
	assert_int_equal(c.connections, 1);
	assert_int_equal(c.picks, 1);
	assert_int_equal(c.packets, 9);
	assert_int_equal(c.bytes, 9 * 40);
}

static void a_fin_from_one_side_closes_nothing_more(struct scene *s)
{
	scene_handshake(s);
	for (int i = 0; i < 3; i++)
		BACKEND_SENDS(s, FIN | ACK, 9001, 1001, RETURN);
	require_state(SY_BACKEND_CLOSED);
	assert_int_equal(active(), 1);
	CLIENT_SENDS(s, FIN | ACK, 1001, 9002, FORWARD);
	require_state(SY_CLOSING);
}

static void a_forged_ack_does_not_establish(struct scene *s)
{
	scene_syn(s);
	CLIENT_SENDS(s, ACK, 1001, 5, FORWARD); /* before any SYN-ACK */
	require_state(SY_SYN);
	BACKEND_SENDS(s, SYN | ACK, 9000, 1001, RETURN);
	CLIENT_SENDS(s, ACK, 1001, 9000, FORWARD); /* one too low */
	require_state(SY_SYN);
	CLIENT_SENDS(s, ACK, 1001, 5, FORWARD);
	require_state(SY_SYN);
	assert_int_equal(active(), 0);
}

static void data_first_establishes(struct scene *s)
{
	struct frame f = SCENE_CLIENT_SENDS(s, .flags = ACK | PSH, .seq = 1001, .ack = 9001, .n_payload = 500);

	scene_syn_ack(s);
	SCENE_RUN(s, &f, SCENE_FROM_CLIENT, FORWARD);
	require_state(SY_ESTABLISHED);
	assert_int_equal(active(), 1);
}

static void implausible_ends_change_nothing(struct scene *s)
{
	scene_handshake(s);
	CLIENT_SENDS(s, RST, 1001 + (1U << 31), 0, FORWARD);
	CLIENT_SENDS(s, FIN | ACK, 1001 - (1U << 29), 9001, FORWARD);
	BACKEND_SENDS(s, RST | ACK, 9001 + (1U << 31), 1001, RETURN);
	BACKEND_SENDS(s, FIN | ACK, 9001 - (1U << 29), 1001, RETURN);
	require_state(SY_ESTABLISHED);
	assert_false(forward_line()->word & SY_F_RESET);
	assert_int_equal(active(), 1);
}

static void a_reset_ends_unless_traffic_goes_on(struct scene *s)
{
	scene_handshake(s);
	CLIENT_SENDS(s, RST, 1001, 0, FORWARD);
	assert_true(forward_line()->word & SY_F_RESET);
	assert_int_equal(active(), 0);
	CLIENT_SENDS(s, ACK, 1001, 9001, FORWARD);
	assert_false(forward_line()->word & SY_F_RESET);
	assert_int_equal(active(), 1);
	BACKEND_SENDS(s, RST | ACK, 9001, 1001, RETURN);
	assert_true(forward_line()->word & SY_F_RESET);
	assert_int_equal(active(), 0);
	CLIENT_SENDS(s, SYN, 5000, 0, NEW_FLOW);
	require_state(SY_SYN);
	assert_int_equal(rig_backend_count(&rig, SCENE_BACKEND).connections, 1);
}

static void a_refusal_is_counted(struct scene *s)
{
	scene_syn(s);
	BACKEND_SENDS(s, RST | ACK, 0, 77, RETURN); /* acknowledges something else: proves nothing */
	assert_int_equal(rig.maps.loads[SCENE_BACKEND].refused, 0);
	BACKEND_SENDS(s, RST | ACK, 0, 1001, RETURN);
	assert_int_equal(rig.maps.loads[SCENE_BACKEND].refused, 1);
	BACKEND_SENDS(s, RST | ACK, 0, 1001, RETURN);
	assert_int_equal(rig.maps.loads[SCENE_BACKEND].refused, 1);
	CLIENT_SENDS(s, SYN, 3000, 0, NEW_FLOW);
}

/* A backend in TIME_WAIT answers a SYN with a bare ACK, the client resets that, and its SYN sent again is taken. */
static void a_time_wait_at_the_backend_is_resolved(struct scene *s)
{
	scene_syn(s);
	BACKEND_SENDS(s, ACK, 70000, 3, RETURN);
	CLIENT_SENDS(s, RST, 3, 0, FORWARD);
	require_state(SY_SYN);
	assert_false(forward_line()->word & SY_F_RESET);
	CLIENT_SENDS(s, SYN, 1000, 0, FORWARD);
	BACKEND_SENDS(s, SYN | ACK, 9000, 1001, RETURN);
	CLIENT_SENDS(s, ACK, 1001, 9001, FORWARD);
	require_state(SY_ESTABLISHED);
}

static void a_syn_on_a_live_flow_goes_to_its_backend(struct scene *s)
{
	scene_handshake(s);
	CLIENT_SENDS(s, SYN, 123456, 0, FORWARD);
	require_state(SY_ESTABLISHED);
	assert_int_equal(active(), 1);
}

static void close_both(struct scene *s, bool backend_first)
{
	scene_handshake(s);
	if (backend_first) {
		BACKEND_SENDS(s, FIN | ACK, 9001, 1001, RETURN);
		CLIENT_SENDS(s, FIN | ACK, 1001, 9002, FORWARD);
	} else {
		CLIENT_SENDS(s, FIN | ACK, 1001, 9001, FORWARD);
		BACKEND_SENDS(s, FIN | ACK, 9001, 1002, RETURN);
	}
	require_state(SY_CLOSING);
}

static void a_syn_on_a_closed_flow_begins_anew(struct scene *s)
{
	close_both(s, false);
	/* its backend takes no new flows any more: another one gets this */
	rig_backend(&rig, 2, SCENE_SERVICE, "10.2.0.11:8002", 1);
	rig_table(&rig, SCENE_SERVICE, (const uint32_t[]){ 2 }, (const double[]){ 1 }, 1);
	CLIENT_SENDS(s, SYN, 700000, 0, .verdict = SY_V_NEW, .out = SCENE_SENT, .from = SCENE_SOURCE, .to = "10.2.0.11:8002");
	/* the port of the old flow is free at once: the client closed first, so the backend holds no TIME_WAIT */
	assert_null(rig_find(&rig, SCENE_BACKEND_AT, SCENE_SOURCE));
}

static void a_port_that_the_backend_closed_is_kept_back(struct scene *s)
{
	struct sy_line *kept;
	struct frame f = SCENE_CLIENT_SENDS(s, .flags = SYN, .seq = 700000), out;
	struct frame_view v;

	close_both(s, true);
	(void)rig_run(&rig, s->hook, &f, rig.if_client, &out);
	kept = rig_find(&rig, SCENE_BACKEND_AT, SCENE_SOURCE);
	assert_non_null(kept);
	assert_int_equal(rig_state(kept->word), SY_TIMEWAIT);
	assert_null(frame_read(&out, &v));
	assert_string_equal(v.to, SCENE_BACKEND_AT);
	assert_string_not_equal(v.from, SCENE_SOURCE);
	/* a late packet of the old connection finds no flow */
	BACKEND_SENDS(s, ACK, 9002, 1002, .verdict = SY_V_NOT_OURS, .out = SCENE_PASSED);
}

static void a_kept_port_is_given_when_there_is_no_other(struct scene *s)
{
	uint64_t counts[SY_N_COUNTERS];
	struct lines_report report;

	rig_pool(&rig, 0, (const char *const[]){ "10.2.0.1" }, 1, 5000, 5000);
	close_both(s, true);
	CLIENT_SENDS(s, SYN, 700000, 0, NEW_FLOW);
	rig_counts(&rig, counts);
	assert_true(counts[SY_C_TIMEWAIT_TAKEN] > 0);
	assert_int_equal(lines_check(&rig, &report), 0);
	assert_int_equal(report.n[SY_TIMEWAIT], 0);
}

static void source_ports_are_unique(struct scene *s)
{
	static const char *const clients[] = { "10.1.0.2:5000", "10.1.0.3:5000", "10.1.0.4:5000", "10.1.0.5:5000" };
	char seen[4][32];
	struct lines_report report;

	for (int i = 0; i < 4; i++) {
		struct frame_view v;
		struct frame out, f = scene_frame(s, SCENE_FROM_CLIENT,
						  (struct frame_spec){ .from = clients[i], .to = SCENE_LISTEN, .flags = SYN });

		(void)rig_run(&rig, s->hook, &f, rig.if_client, &out);
		assert_null(frame_read(&out, &v));
		strcpy(seen[i], v.from);
		for (int j = 0; j < i; j++)
			assert_string_not_equal(seen[i], seen[j]);
	}
	assert_string_equal(seen[0], SCENE_SOURCE); /* the client's own port while it is free */
	assert_int_equal(lines_check(&rig, &report), 0);
	assert_int_equal(report.n[SY_SYN], 4);
}

static void every_port_of_a_pool_is_given(struct scene *s)
{
	static const char *const addrs[] = { "10.2.0.1", "10.2.0.2" };
	unsigned n_new = 0, n_refused = 0;
	uint64_t verdicts[SY_N_VERDICTS];

	rig_pool(&rig, 0, addrs, 2, 30000, 30049);
	for (unsigned i = 0; i < 110; i++) {
		char from[32];
		struct frame out, f;

		snprintf(from, sizeof(from), "10.1.0.2:%u", 2000 + i);
		f = scene_frame(s, SCENE_FROM_CLIENT, (struct frame_spec){ .from = from, .to = SCENE_LISTEN, .flags = SYN });
		(void)rig_run(&rig, s->hook, &f, rig.if_client, &out);
	}
	rig_verdicts(&rig, verdicts);
	n_new = (unsigned)verdicts[SY_V_NEW];
	n_refused = (unsigned)verdicts[SY_V_PORTS_EXHAUSTED];
	assert_int_equal(n_new, 100);
	assert_int_equal(n_refused, 10);
}

static void an_evicted_backend_gets_no_next_packet(struct scene *s)
{
	uint64_t before = 0;

	rig_backend(&rig, 2, SCENE_SERVICE, "10.2.0.11:8002", 1);
	rig_table(&rig, SCENE_SERVICE, (const uint32_t[]){ 1, 2 }, (const double[]){ 99, 1 }, 2);
	for (unsigned i = 0; i < 200; i++) {
		char from[32];
		struct frame out, f;
		struct frame_view v;

		if (i == 100) {
			before = rig_backend_count(&rig, 1).picks;
			assert_true(before > 50);
			rig_backend_state(&rig, 1, SY_EVICTED, SY_R_CHECK_FAILED);
		}
		snprintf(from, sizeof(from), "10.1.0.2:%u", 2000 + i);
		f = scene_frame(s, SCENE_FROM_CLIENT, (struct frame_spec){ .from = from, .to = SCENE_LISTEN, .flags = SYN });
		(void)rig_run(&rig, s->hook, &f, rig.if_client, &out);
		assert_null(frame_read(&out, &v));
		if (i >= 100)
			assert_string_equal(v.to, "10.2.0.11:8002");
	}
	assert_int_equal(rig_backend_count(&rig, 1).picks, before);
}

static void an_id_given_again_is_another_backend(struct scene *s)
{
	scene_handshake(s);
	rig_backend(&rig, SCENE_BACKEND, SCENE_SERVICE, "10.2.0.12:8003", 2);
	CLIENT_SENDS(s, ACK, 1001, 9001, .verdict = SY_V_EVICTED_CLIENT, .out = SCENE_RESET, .from = SCENE_LISTEN,
		     .to = SCENE_CLIENT, .seq = 9001);
	BACKEND_SENDS(s, ACK, 9001, 1001, .verdict = SY_V_EVICTED_BACKEND, .out = SCENE_RESET, .from = SCENE_LISTEN,
		      .to = SCENE_CLIENT, .seq = 9001, .to_other = true, .handed_over = true);
	/* a new connection on the same ports is the newcomer's */
	rig_table(&rig, SCENE_SERVICE, (const uint32_t[]){ SCENE_BACKEND }, (const double[]){ 1 }, 1);
	{
		struct frame out, f = SCENE_CLIENT_SENDS(s, .flags = SYN, .seq = 1);
		struct frame_view v;

		(void)rig_run(&rig, s->hook, &f, rig.if_client, &out);
		assert_null(frame_read(&out, &v));
		assert_string_equal(v.to, "10.2.0.12:8003");
	}
	assert_int_equal(active(), 0);
}

static void another_services_eviction_is_not_ours(struct scene *s)
{
	rig_service(&rig, 2, "10.0.0.100:8080");
	rig_backend(&rig, 2, 2, SCENE_BACKEND_AT, 1); /* the same address, in service 2 */
	rig.maps.backends[2].endpoint = SCENE_BACKEND;
	scene_handshake(s);
	rig_backend_state(&rig, 2, SY_EVICTED, SY_R_GONE);
	CLIENT_SENDS(s, ACK, 1001, 9001, FORWARD);
	BACKEND_SENDS(s, ACK, 9001, 1001, RETURN);
	/* but a dead process is dead for all: the endpoint's word */
	rig.maps.endpoints[SCENE_BACKEND].agent = SY_R_CHECK_FAILED << 8 | SY_EVICTED;
	CLIENT_SENDS(s, ACK, 1001, 9001, .verdict = SY_V_EVICTED_CLIENT, .out = SCENE_RESET, .from = SCENE_LISTEN,
		     .to = SCENE_CLIENT, .seq = 9001);
}

static void a_table_change_moves_no_flow(struct scene *s)
{
	scene_handshake(s);
	rig_backend(&rig, 2, SCENE_SERVICE, "10.2.0.11:8002", 1);
	for (int i = 0; i < 20; i++) {
		rig_table(&rig, SCENE_SERVICE, (const uint32_t[]){ 2 }, (const double[]){ 1 }, 1);
		CLIENT_SENDS(s, ACK, 1001, 9001, FORWARD);
		BACKEND_SENDS(s, ACK, 9001, 1001, RETURN);
		rig_table(&rig, SCENE_SERVICE, NULL, NULL, 0);
		CLIENT_SENDS(s, ACK, 1001, 9001, FORWARD);
	}
	rig_backend_state(&rig, SCENE_BACKEND, SY_DRAINING, SY_R_WEIGHT_0);
	CLIENT_SENDS(s, ACK, 1001, 9001, FORWARD);
	require_state(SY_ESTABLISHED);
}

static const struct scene_body bodies[] = {
	{ "a connection's states, packets, bytes and active flows are counted exactly", a_life_is_counted },
	{ "a FIN repeated by one side closes nothing more", a_fin_from_one_side_closes_nothing_more },
	{ "an ACK that does not acknowledge the backend's number does not establish", a_forged_ack_does_not_establish },
	{ "data in place of the handshake's last ACK establishes", data_first_establishes },
	{ "a FIN or RST with an implausible number changes nothing", implausible_ends_change_nothing },
	{ "a RST ends a flow unless its traffic goes on", a_reset_ends_unless_traffic_goes_on },
	{ "a refusal is counted once, and only when it acknowledges the SYN", a_refusal_is_counted },
	{ "a TIME_WAIT at the backend is resolved by ACK and RST passing through", a_time_wait_at_the_backend_is_resolved },
	{ "a SYN on a live flow goes to its backend", a_syn_on_a_live_flow_goes_to_its_backend },
	{ "a SYN on a closed flow begins anew", a_syn_on_a_closed_flow_begins_anew },
	{ "a source port is kept back when the backend closed first", a_port_that_the_backend_closed_is_kept_back },
	{ "a port kept back is given when there is no other", a_kept_port_is_given_when_there_is_no_other },
	{ "four clients with one port get four source ports", source_ports_are_unique },
	{ "every port of every address of a pool is given before one is refused", every_port_of_a_pool_is_given },
	{ "an evicted backend gets nothing in the next packet", an_evicted_backend_gets_no_next_packet },
	{ "a flow never reaches the backend that its backend's id was given to", an_id_given_again_is_another_backend },
	{ "an eviction in one service leaves the same address in another alone", another_services_eviction_is_not_ours },
	{ "changes of the table move no flow", a_table_change_moves_no_flow },
};

int main(void)
{
	return scene_main("flows", &rig, bodies, sizeof(bodies) / sizeof(*bodies));
}
