// SPDX-License-Identifier: MIT
/* The sweeper, armed and running on its timer: each state's timeout, ports kept back, lines that a claimer left half done, flows
 * that speak again, and all of it with no agent there. A second is short here: the programs are told of fewer jiffies to one. Time is
 * moved by writing when a line was last seen. */
#include <bpf/bpf.h>
#include <time.h>
#include <unistd.h>
#include "lines.h"
#include "scene.h"
#include "steelyard.skel.h"

#define HZ 50 /* a second of the programs': 200 ms where the kernel has 250 */
#define PATIENCE_S 60 /* real ones, for what must come */
#define ROUNDS 3 /* of the sweeper, for what must not */

static struct rig rig;
static struct scene scene = { .rig = &rig, .hook = RIG_TC, .step = "sweeper" };

static struct sy_sweep sweep(void)
{
	struct sy_sweep s;
	uint32_t zero = 0;

	assert_int_equal(bpf_map_lookup_elem(rig.maps.fd_sweep, &zero, &s), 0);
	return s;
}

/* Write the sweeper's record: the kernel stops the timer that was in it. */
static void stop_with(const struct sy_sweep *s)
{
	uint32_t zero = 0;

	assert_int_equal(bpf_map_update_elem(rig.maps.fd_sweep, &zero, s, BPF_ANY), 0);
}

static int arm(void)
{
	LIBBPF_OPTS(bpf_test_run_opts, o);

	return bpf_prog_test_run_opts(rig_program(&rig, "steelyard_arm"), &o) ? -1 : (int)o.retval;
}

static uint64_t counted(enum sy_counter c)
{
	uint64_t counts[SY_N_COUNTERS];

	rig_counts(&rig, counts);
	return counts[c];
}

/* Until the sweeper has gone over the table a few times. */
static void wait_rounds(void)
{
	uint64_t from = sweep().rounds;

	for (int i = 0; sweep().rounds < from + ROUNDS; i++) {
		assert_true(i < PATIENCE_S * 100);
		usleep(10000);
	}
}

#define WAIT_UNTIL(condition)                                                                                          \
	do {                                                                                                           \
		for (int i_ = 0; !(condition); i_++) {                                                                 \
			if (i_ == PATIENCE_S * 1000)                                                                   \
				fail_msg("never came: %s", #condition);                                                \
			usleep(1000);                                                                                  \
		}                                                                                                      \
	} while (0)

static struct sy_line *there(void)
{
	return rig_find(&rig, SCENE_CLIENT, SCENE_LISTEN);
}

static struct sy_line *back(void)
{
	return rig_find(&rig, SCENE_BACKEND_AT, SCENE_SOURCE);
}

static void age(uint32_t seconds)
{
	scene_age(&scene, there(), seconds);
	scene_age(&scene, back(), seconds);
}

static void send_client(uint8_t flags, uint32_t seq, uint32_t ack)
{
	struct frame f = SCENE_CLIENT_SENDS(&scene, .flags = flags, .seq = seq, .ack = ack);

	SCENE_RUN(&scene, &f, SCENE_FROM_CLIENT, .verdict = SY_V_FORWARD, .out = SCENE_SENT, .from = SCENE_SOURCE,
		  .to = SCENE_BACKEND_AT);
}

static void send_backend(uint8_t flags, uint32_t seq, uint32_t ack)
{
	struct frame f = SCENE_BACKEND_SENDS(&scene, .flags = flags, .seq = seq, .ack = ack);

	SCENE_RUN(&scene, &f, SCENE_FROM_BACKEND, .verdict = SY_V_RETURN, .out = SCENE_SENT, .from = SCENE_LISTEN,
		  .to = SCENE_CLIENT);
}

static void half_close(void)
{
	scene_handshake(&scene);
	send_client(FIN | ACK, 1001, 9001);
}

static void half_close_backend(void)
{
	scene_handshake(&scene);
	send_backend(FIN | ACK, 9001, 1001);
}

static void close_client_first(void)
{
	half_close();
	send_backend(FIN | ACK, 9001, 1002);
}

static void close_backend_first(void)
{
	half_close_backend();
	send_client(FIN | ACK, 1001, 9002);
}

static void be_reset(void)
{
	scene_handshake(&scene);
	send_client(RST, 1001, 0);
}

static void make_syn(void)
{
	scene_syn(&scene);
}

static void make_established(void)
{
	scene_handshake(&scene);
}

/* Quiet for half the timeout: stays. Quiet for longer than it: goes, is counted, and takes its count of active flows along. */
static void ends_after(void (*make)(void), uint32_t seconds)
{
	uint64_t expired;

	scene_set(&scene);
	make();
	expired = counted(SY_C_EXPIRED);
	age(seconds / 2);
	wait_rounds();
	assert_non_null(there());
	assert_int_equal(counted(SY_C_EXPIRED), expired);
	age(seconds + 5);
	WAIT_UNTIL(!there());
	WAIT_UNTIL(counted(SY_C_EXPIRED) == expired + 1);
	assert_int_equal(rig.maps.loads[SCENE_BACKEND].active, 0);
}

static void half_open_ends(void **state)
{
	(void)state;
	ends_after(make_syn, 60);
	assert_null(back());
}

static void established_ends(void **state)
{
	(void)state;
	ends_after(make_established, 7440);
	assert_null(back());
}

static void half_closed_ends(void **state)
{
	(void)state;
	ends_after(half_close, 300);
	ends_after(half_close_backend, 300);
}

static void closing_ends(void **state)
{
	(void)state;
	ends_after(close_client_first, 30);
	assert_null(back()); /* no port kept back: the client has the TIME_WAIT */
}

static void reset_ends(void **state)
{
	(void)state;
	ends_after(be_reset, 10);
	assert_null(back());
}

static void the_services_own_timeout_holds(void **state)
{
	(void)state;
	scene_set(&scene);
	make_established();
	rig.maps.services[SCENE_SERVICE].timeout[SY_T_ESTABLISHED] = 20 * HZ;
	age(25);
	WAIT_UNTIL(!there());
}

static void without_a_service_the_default_holds(void **state)
{
	(void)state;
	scene_set(&scene);
	make_established();
	rig.maps.services[SCENE_SERVICE].used = 0;
	rig.maps.config->default_timeout[SY_T_ESTABLISHED] = 20 * HZ;
	age(25);
	WAIT_UNTIL(!there());
}

static void a_flow_of_a_given_back_id_ends_soon(void **state)
{
	(void)state;
	scene_set(&scene);
	make_established();
	rig_backend(&rig, SCENE_BACKEND, SCENE_SERVICE, "10.2.0.12:8003", 2);
	age(15);
	WAIT_UNTIL(!there());
	assert_int_equal(rig.maps.loads[SCENE_BACKEND].active, 0);
}

static void one_talking_side_keeps_it(void **state)
{
	(void)state;
	scene_set(&scene);
	make_established();
	scene_age(&scene, there(), 8000);
	wait_rounds();
	assert_non_null(there());
	scene_age(&scene, there(), 1);
	scene_age(&scene, back(), 8000);
	wait_rounds();
	assert_non_null(there());
	assert_int_equal(rig.maps.loads[SCENE_BACKEND].active, 1);
}

static bool is_gone_or_reaping(void)
{
	const struct sy_line *l = there();

	return !l || l->word & SY_F_REAPING;
}

static void traffic_saves_a_flow_about_to_end(void **state)
{
	(void)state;
	for (int side = 0; side < 2; side++) {
		uint64_t unreaped;
		int tries = 0;

		/* the second between the sweeper's two visits may be missed on a busy machine: make another flow then */
		do {
			assert_true(tries++ < 20);
			scene_set(&scene);
			make_established();
			send_backend(ACK, 9001, 1001);
			assert_int_equal(rig_state(back()->word), SY_USED_ESTABLISHED);
			unreaped = counted(SY_C_UNREAPED);
			age(8000);
			WAIT_UNTIL(is_gone_or_reaping());
		} while (!there() || !back());
		/* its hint was taken back first, so that the backend's packet looks at the flow's state */
		assert_int_equal(rig_state(back()->word), SY_USED);
		if (side == 0)
			send_client(ACK, 1001, 9001);
		else
			send_backend(ACK, 9001, 1001);
		assert_false(there()->word & SY_F_REAPING);
		wait_rounds();
		assert_non_null(there());
		assert_int_equal(rig_state(there()->word), SY_ESTABLISHED);
		assert_int_equal(rig.maps.loads[SCENE_BACKEND].active, 1);
		assert_true(counted(SY_C_UNREAPED) > unreaped);
	}
}

static void a_port_is_kept_back_for_a_minute(void **state)
{
	uint64_t freed;

	(void)state;
	ends_after(close_backend_first, 30);
	freed = counted(SY_C_TIMEWAIT_EXPIRED);
	assert_non_null(back());
	assert_int_equal(rig_state(back()->word), SY_TIMEWAIT);
	scene_age(&scene, back(), 30);
	wait_rounds();
	assert_non_null(back());
	scene_age(&scene, back(), 65);
	WAIT_UNTIL(!back());
	assert_int_equal(counted(SY_C_TIMEWAIT_EXPIRED), freed + 1);
}

/* What a claimer that died leaves: its return line alone, or with a forward line that never became live. */
static void leftovers_are_freed(void **state)
{
	static const enum sy_line_state left[] = { SY_BUSY, SY_NEW };

	(void)state;
	for (int i = 0; i < 2; i++) {
		uint64_t freed;
		struct lines_report report;

		scene_set(&scene);
		make_syn();
		freed = counted(SY_C_ORPHANS_FREED);
		there()->word = (there()->word & ~0xffULL) | left[i];
		WAIT_UNTIL(!there());
		scene_age(&scene, back(), 6);
		WAIT_UNTIL(!back());
		WAIT_UNTIL(counted(SY_C_ORPHANS_FREED) == freed + 2);
		assert_int_equal(lines_check(&rig, &report), 0);
	}
}

static void a_young_claim_is_left_alone(void **state)
{
	(void)state;
	scene_set(&scene);
	make_syn();
	there()->word = 0; /* the return line is claimed, the forward line not yet */
	scene_age(&scene, back(), 0);
	wait_rounds();
	assert_non_null(back());
	rig_clear(&rig);
}

/* A round that began long ago and was held up in the middle: the lines behind that place are visited now, and not again before a second
 * has gone by. The timer stands still while the stage is set. */
static void two_visits_are_a_second_apart(void **state)
{
	struct sy_sweep s = sweep();
	uint32_t from;

	(void)state;
	stop_with(&s);
	scene_set(&scene);
	make_established();
	age(8000);
	s.cursor = rig_index(&rig, there()) & ~(SY_SWEEP_LINES_PLAIN - 1U);
	from = rig_jiffies();
	s.last_visit = from - 10 * HZ;
	stop_with(&s);
	assert_int_equal(arm(), 0);
	WAIT_UNTIL(!there());
	assert_true(rig_jiffies() - from >= HZ);
	/* the whole table visited, the last line just now */
	s = sweep();
	stop_with(&s);
	s.cursor = SCENE_GROUPS * SY_LINES_PER_GROUP;
	s.last_visit = from = rig_jiffies();
	stop_with(&s);
	assert_int_equal(arm(), 0);
	WAIT_UNTIL(sweep().rounds > s.rounds);
	assert_true((uint32_t)sweep().jiffies - from >= HZ);
}

/* A flow whose forward line was left half done, and the sweeper about to begin a round, with a suspect noted a minute ago. */
static uint64_t stuck_with_suspect(struct sy_sweep *s, enum sy_line_state left)
{
	uint64_t freed;

	*s = sweep();
	stop_with(s);
	scene_set(&scene);
	make_syn();
	freed = counted(SY_C_ORPHANS_FREED);
	there()->word = (there()->word & ~0xffULL) | left;
	s->cursor = 0;
	s->suspect_word = there()->word;
	s->suspect_index = rig_index(&rig, there());
	s->suspect_since = rig_jiffies() - 60 * HZ;
	return freed;
}

/* In a large table a line's next visit may be a minute away. */
static void a_suspect_is_kept_over_a_long_round(void **state)
{
	static const enum sy_line_state left[] = { SY_BUSY, SY_NEW };

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct sy_sweep s;
		uint64_t freed = stuck_with_suspect(&s, left[i]);

		stop_with(&s);
		assert_int_equal(arm(), 0);
		WAIT_UNTIL(sweep().rounds > s.rounds);
		assert_null(there());
		assert_true(counted(SY_C_ORPHANS_FREED) > freed);
		rig_clear(&rig);
	}
}

static void a_suspect_that_is_gone_makes_way(void **state)
{
	struct sy_sweep s;
	uint64_t freed = stuck_with_suspect(&s, SY_NEW);

	(void)state;
	s.suspect_word += 1 << SY_ID_SHIFT; /* another, which is nowhere any more */
	stop_with(&s);
	assert_int_equal(arm(), 0);
	WAIT_UNTIL(sweep().rounds > s.rounds);
	assert_int_equal(sweep().suspect_word, s.suspect_word);
	s = sweep();
	s.suspect_since -= 100 * HZ;
	stop_with(&s);
	assert_int_equal(arm(), 0);
	WAIT_UNTIL(!there());
	assert_true(counted(SY_C_ORPHANS_FREED) > freed);
	rig_clear(&rig);
}

static void the_agents_beat_is_heard(void **state)
{
	uint32_t old;

	(void)state;
	scene_set(&scene);
	rig.maps.config->beat_jiffies = old = rig_jiffies() - 100 * HZ;
	wait_rounds();
	assert_int_equal(rig.maps.config->beat_jiffies, old); /* silent: as it was */
	rig.maps.config->beat++;
	WAIT_UNTIL(rig.maps.config->beat_jiffies != old);
	assert_true(rig_jiffies() - rig.maps.config->beat_jiffies < 60U * 250);
}

/* With the agent silent a next hop that it resolved is not believed any more: the kernel is asked. */
static void a_dead_agents_next_hop_is_not_used(void **state)
{
	static const uint8_t gone[6] = { 0x02, 0, 0, 0x02, 0, 0x77 };
	struct frame out, f = SCENE_CLIENT_SENDS(&scene, .flags = ACK, .seq = 1001, .ack = 9001);
	struct frame_view v;

	(void)state;
	scene_set(&scene);
	make_established();
	rig.maps.backends[SCENE_BACKEND].nh = rig_next_hop(&rig, rig.if_backend, gone);
	rig_beat(&rig);
	(void)rig_run(&rig, RIG_TC, &f, rig.if_client, &out);
	assert_null(frame_read(&out, &v));
	assert_memory_equal(v.to_mac, gone, 6);
	rig.maps.config->beat_jiffies = rig_jiffies() - 3 * HZ;
	(void)rig_run(&rig, RIG_TC, &f, rig.if_client, &out);
	assert_null(frame_read(&out, &v));
	assert_int_equal(v.to_mac[5], 0x0a);
}

/* Many short connections and nobody there but the sweeper: the table does not fill. */
static void a_table_without_an_agent_does_not_fill(void **state)
{
	struct lines_report report;
	uint64_t verdicts[SY_N_VERDICTS];

	(void)state;
	scene_set(&scene);
	for (unsigned i = 0; i < 4000; i++) {
		char from[32];
		struct frame out, f;

		snprintf(from, sizeof(from), "10.1.0.%u:%u", 2 + i % 4, 2000 + i);
		f = scene_frame(&scene, SCENE_FROM_CLIENT,
				(struct frame_spec){ .from = from, .to = SCENE_LISTEN, .flags = SYN });
		(void)rig_run(&rig, RIG_TC, &f, rig.if_client, &out);
	}
	rig_verdicts(&rig, verdicts);
	assert_int_equal(verdicts[SY_V_NEW], 4000);
	for (uint32_t i = 0; i < SCENE_GROUPS * SY_LINES_PER_GROUP; i++)
		rig_line(&rig, i)->seen -= 100 * HZ;
	for (int i = 0; i == 0 || report.n[SY_SYN]; i++) {
		assert_true(i < PATIENCE_S * 100);
		usleep(10000);
		assert_int_equal(lines_check_settled(&rig, &report), 0);
	}
	assert_int_equal(report.n[SY_USED], 0);
}

int main(void)
{
	const struct CMUnitTest cases[] = {
		CASE("a half-open flow ends after 60 s", half_open_ends),
		CASE("an established flow ends after 7440 s", established_ends),
		CASE("a half-closed flow ends after 300 s", half_closed_ends),
		CASE("a closing flow ends after 30 s", closing_ends),
		CASE("a reset flow ends after 10 s", reset_ends),
		CASE("a service's own timeout holds", the_services_own_timeout_holds),
		CASE("without a service the default timeout holds", without_a_service_the_default_holds),
		CASE("a flow whose backend's id was given back ends after 10 s", a_flow_of_a_given_back_id_ends_soon),
		CASE("a flow of which one side talks is kept", one_talking_side_keeps_it),
		CASE("a packet from either side saves a flow that is about to end", traffic_saves_a_flow_about_to_end),
		CASE("a port whose flow the backend closed first is kept back for 60 s", a_port_is_kept_back_for_a_minute),
		CASE("lines that a claimer left half done are freed", leftovers_are_freed),
		CASE("a claim that is under way is left alone", a_young_claim_is_left_alone),
		CASE("two visits of a line are a second apart though ticks come late", two_visits_are_a_second_apart),
		CASE("a line left half done is freed though a round takes a minute", a_suspect_is_kept_over_a_long_round),
		CASE("a suspect that is gone makes way for the next", a_suspect_that_is_gone_makes_way),
		CASE("the agent's beat is heard, and its silence too", the_agents_beat_is_heard),
		CASE("a silent agent's next hops are not believed", a_dead_agents_next_hop_is_not_used),
		CASE("a table with no agent there does not fill", a_table_without_an_agent_does_not_fill),
	};
	struct steelyard_bpf *skel;
	int failed;

	rig_enter_namespace();
	skel = steelyard_bpf__open();
	rig_load(&rig, skel ? skel->obj : NULL, SCENE_GROUPS, HZ);
	if (arm()) {
		fputs("the sweeper cannot be armed\n", stderr);
		return 1;
	}
	failed = cmocka_run_group_tests_name("sweeper", cases, NULL, NULL);
	rig_unload(&rig);
	steelyard_bpf__destroy(skel);
	return failed;
}
