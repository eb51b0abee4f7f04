// SPDX-License-Identifier: MIT
/* What somebody who does not see the connection can do with guessed numbers, and that numbers which are right but unusual are taken:
 * a handshake is completed by who saw the backend's ISN, a flow is ended by who knows where its sequence stands. */
#include "scene.h"

static struct rig rig;

#define FORWARD .verdict = SY_V_FORWARD, .out = SCENE_SENT, .from = SCENE_SOURCE, .to = SCENE_BACKEND_AT
#define RETURN .verdict = SY_V_RETURN, .out = SCENE_SENT, .from = SCENE_LISTEN, .to = SCENE_CLIENT
#define NEW_FLOW .verdict = SY_V_NEW, .out = SCENE_SENT, .from = SCENE_SOURCE, .to = SCENE_BACKEND_AT

#define ISN_AHEAD (1U << 20) /* bytes that a backend may have sent before the client's first ACK */
#define WINDOW (1U << 25) /* ahead of the last number kept, which is still believed */
#define FAR (1U << 30) /* from any number that is believed */
#define QUIET_S 2 /* more than the second within which a packet leaves no trace of its number */

static struct sy_line *there(void)
{
	struct sy_line *l = rig_find(&rig, SCENE_CLIENT, SCENE_LISTEN);

	assert_non_null(l);
	return l;
}

static struct sy_line *back(void)
{
	struct sy_line *l = rig_find(&rig, SCENE_BACKEND_AT, SCENE_SOURCE);

	assert_non_null(l);
	return l;
}

static void client_sends(struct scene *s, uint8_t flags, uint32_t seq, uint32_t ack)
{
	struct frame f = SCENE_CLIENT_SENDS(s, .flags = flags, .seq = seq, .ack = ack);

	SCENE_RUN(s, &f, SCENE_FROM_CLIENT, FORWARD);
}

static void backend_sends(struct scene *s, uint8_t flags, uint32_t seq, uint32_t ack)
{
	struct frame f = SCENE_BACKEND_SENDS(s, .flags = flags, .seq = seq, .ack = ack);

	SCENE_RUN(s, &f, SCENE_FROM_BACKEND, RETURN);
}

static void require_state(enum sy_line_state state)
{
	assert_int_equal(rig_state(there()->word), state);
}

static void require_reset(bool reset)
{
	assert_int_equal(!!(there()->word & SY_F_RESET), reset);
}

static void be_quiet(struct scene *s)
{
	scene_age(s, there(), QUIET_S);
	scene_age(s, back(), QUIET_S);
}

/* One side of an established flow, for bodies that hold for both. */
struct side {
	void (*sends)(struct scene *s, uint8_t flags, uint32_t seq, uint32_t ack);
	uint32_t seq, ack; /* where it stands after the handshake */
	enum sy_line_state closed;
};

static const struct side sides[] = {
	{ client_sends, SCENE_CLIENT_ISN + 1, SCENE_BACKEND_ISN + 1, SY_CLIENT_CLOSED },
	{ backend_sends, SCENE_BACKEND_ISN + 1, SCENE_CLIENT_ISN + 1, SY_BACKEND_CLOSED },
};
#define N_SIDES (sizeof(sides) / sizeof(*sides))

/* ---- the handshake ---- */

static void a_guessed_ack_does_not_establish(struct scene *s)
{
	const uint32_t n = 64, first = SCENE_BACKEND_ISN + 1 + ISN_AHEAD, step = (uint32_t)((UINT32_MAX - ISN_AHEAD) / (n - 1));

	scene_syn_ack(s);
	for (uint32_t i = 0; i < n; i++) {
		client_sends(s, ACK, SCENE_CLIENT_ISN + 1, first + i * step);
		require_state(SY_SYN);
	}
	assert_int_equal(rig.maps.loads[SCENE_BACKEND].active, 0);
	assert_int_equal(rig_backend_count(&rig, SCENE_BACKEND).connections, 0);
	client_sends(s, ACK, SCENE_CLIENT_ISN + 1, SCENE_BACKEND_ISN + 1);
	require_state(SY_ESTABLISHED);
}

static void what_follows_the_isn_establishes(struct scene *s)
{
	static const uint32_t ahead[] = { 1, 2, 1461, 65536, ISN_AHEAD };

	for (size_t i = 0; i < sizeof(ahead) / sizeof(*ahead); i++) {
		scene_set(s);
		scene_syn_ack(s);
		client_sends(s, ACK, SCENE_CLIENT_ISN + 1, SCENE_BACKEND_ISN + ahead[i]);
		require_state(SY_ESTABLISHED);
		assert_int_equal(rig.maps.loads[SCENE_BACKEND].active, 1);
	}
}

/* The client gave up and began again from the same port, before the first attempt was answered or after. */
static void a_second_syn_with_another_isn_is_followed(struct scene *s)
{
	const uint32_t isn = 500000, backend_isn = 77000;

	for (int answered = 0; answered < 2; answered++) {
		scene_set(s);
		if (answered)
			scene_syn_ack(s);
		else
			scene_syn(s);
		client_sends(s, SYN, isn, 0);
		require_state(SY_SYN);
		/* the answer to the first, late: passed on, but it is not what the client's ACK will be held against */
		backend_sends(s, SYN | ACK, SCENE_BACKEND_ISN, SCENE_CLIENT_ISN + 1);
		backend_sends(s, SYN | ACK, backend_isn, isn + 1);
		backend_sends(s, SYN | ACK, SCENE_BACKEND_ISN, SCENE_CLIENT_ISN + 1);
		client_sends(s, ACK, isn + 1, SCENE_BACKEND_ISN + 1);
		require_state(SY_SYN);
		client_sends(s, ACK, isn + 1, backend_isn + 1);
		require_state(SY_ESTABLISHED);
		client_sends(s, RST, isn + 1, 0);
		require_reset(true);
	}
}

static void syn_with_data(struct scene *s, size_t n_payload)
{
	struct frame f = SCENE_CLIENT_SENDS(s, .flags = SYN, .seq = SCENE_CLIENT_ISN, .n_payload = n_payload);

	scene_set(s);
	SCENE_RUN(s, &f, SCENE_FROM_CLIENT, NEW_FLOW);
}

static const size_t fast_open[] = { 1, 100, 1420 };
#define N_FAST_OPEN (sizeof(fast_open) / sizeof(*fast_open))

static void data_in_the_syn_may_be_acknowledged(struct scene *s)
{
	for (size_t i = 0; i < N_FAST_OPEN; i++) {
		uint32_t next = SCENE_CLIENT_ISN + 1 + (uint32_t)fast_open[i];

		syn_with_data(s, fast_open[i]);
		backend_sends(s, SYN | ACK, SCENE_BACKEND_ISN, next);
		client_sends(s, ACK, next, SCENE_BACKEND_ISN + 1);
		require_state(SY_ESTABLISHED);
		/* a backend that takes no data with the SYN acknowledges the SYN alone */
		syn_with_data(s, fast_open[i]);
		backend_sends(s, SYN | ACK, SCENE_BACKEND_ISN, SCENE_CLIENT_ISN + 1);
		client_sends(s, ACK, SCENE_CLIENT_ISN + 1, SCENE_BACKEND_ISN + 1);
		require_state(SY_ESTABLISHED);
	}
}

static void a_refusal_may_acknowledge_data_in_the_syn(struct scene *s)
{
	for (size_t i = 0; i < N_FAST_OPEN; i++) {
		syn_with_data(s, fast_open[i]);
		backend_sends(s, RST | ACK, 0, SCENE_CLIENT_ISN);
		backend_sends(s, RST | ACK, 0, SCENE_CLIENT_ISN + FAR);
		require_reset(false);
		backend_sends(s, RST | ACK, 0, SCENE_CLIENT_ISN + 1 + (uint32_t)fast_open[i]);
		require_reset(true);
		assert_int_equal(rig.maps.loads[SCENE_BACKEND].refused, 1);
	}
}

/* ---- an established flow ---- */

/* First a packet with a guessed number to a flow that has been quiet, then a RST with the same: the first must not be what the second
 * is measured by. */
static void a_guess_prepares_no_reset(struct scene *s)
{
	static const uint8_t first[] = { ACK, ACK | PSH, RST, RST | ACK, FIN | ACK };

	for (size_t side = 0; side < N_SIDES; side++)
		for (size_t i = 0; i < sizeof(first); i++) {
			const struct side *p = &sides[side];

			scene_set(s);
			scene_handshake(s);
			p->sends(s, ACK, p->seq, p->ack);
			for (uint32_t guess = p->seq + FAR; guess != p->seq; guess += FAR) {
				be_quiet(s);
				p->sends(s, first[i], guess, p->ack);
				p->sends(s, RST, guess, 0);
				be_quiet(s);
				p->sends(s, RST, guess, 0);
				require_reset(false);
				require_state(SY_ESTABLISHED);
			}
			p->sends(s, RST, p->seq, 0);
			require_reset(true);
			assert_int_equal(rig.maps.loads[SCENE_BACKEND].active, 0);
		}
}

/* A plausible RST is no place to go on from: a walk of RSTs, each a little less than a window further, leads nowhere, and the
 * number where the flow stands stays believed. */
static void resets_do_not_move_what_is_believed(struct scene *s)
{
	for (size_t side = 0; side < N_SIDES; side++) {
		const struct side *p = &sides[side];

		scene_set(s);
		scene_handshake(s);
		for (uint32_t i = 1; i < 8; i++) {
			be_quiet(s);
			p->sends(s, RST, p->seq + i * (WINDOW / 2 + WINDOW / 4), 0);
			require_reset(i == 1);
			client_sends(s, ACK, SCENE_CLIENT_ISN + 1, SCENE_BACKEND_ISN + 1); /* it lives after all */
			require_reset(false);
		}
		p->sends(s, RST, p->seq, 0);
		require_reset(true);
	}
}

static void a_guessed_fin_closes_nothing(struct scene *s)
{
	for (size_t side = 0; side < N_SIDES; side++)
		for (int quiet = 0; quiet < 2; quiet++) {
			const struct side *p = &sides[side];

			scene_set(s);
			scene_handshake(s);
			p->sends(s, ACK, p->seq, p->ack);
			for (uint32_t guess = p->seq + FAR; guess != p->seq; guess += FAR) {
				if (quiet)
					be_quiet(s);
				p->sends(s, FIN | ACK, guess, p->ack);
				p->sends(s, FIN | ACK, guess, p->ack);
				require_state(SY_ESTABLISHED);
			}
			p->sends(s, FIN | ACK, p->seq, p->ack);
			require_state(p->closed);
		}
}

/* Within one second, so that the number is followed for having moved, not for the time. */
static void a_fin_after_much_data_is_believed(struct scene *s)
{
	static const uint32_t steps[] = { 1U << 24, 1U << 22, WINDOW - 2 };

	for (size_t side = 0; side < N_SIDES; side++)
		for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
			const struct side *p = &sides[side];
			uint32_t sent = 0;

			scene_set(s);
			scene_handshake(s);
			p->sends(s, ACK, p->seq, p->ack);
			while (sent < 1U << 28) {
				scene_age(s, there(), 0);
				scene_age(s, back(), 0);
				sent += steps[i];
				p->sends(s, ACK, p->seq + sent, p->ack);
			}
			p->sends(s, FIN | ACK, p->seq + sent, p->ack);
			require_state(p->closed);
			p->sends(s, RST, p->seq + sent + 1, p->ack);
			require_reset(true);
		}
}

/* The backend answers a SYN in the middle with an ACK of where it stands, and the client, if it has forgotten the connection, with a
 * RST that has that number: it has to be believed, however far away the SYN was. */
static void a_syn_in_the_middle_is_answered_by_a_true_reset(struct scene *s)
{
	for (int quiet = 0; quiet < 2; quiet++) {
		scene_set(s);
		scene_handshake(s);
		if (quiet)
			be_quiet(s);
		client_sends(s, SYN, SCENE_CLIENT_ISN + FAR, 0);
		require_state(SY_ESTABLISHED);
		backend_sends(s, ACK, SCENE_BACKEND_ISN + 1, SCENE_CLIENT_ISN + 1);
		client_sends(s, RST, SCENE_CLIENT_ISN + 1, 0);
		require_reset(true);
		assert_int_equal(rig.maps.loads[SCENE_BACKEND].active, 0);
		/* and its SYN sent again begins anew */
		syn_with_data(s, 0);
	}
}

static const struct scene_body bodies[] = {
	{ "an ACK that guesses the backend's ISN does not establish", a_guessed_ack_does_not_establish },
	{ "an ACK of the ISN and what a backend may have sent after it establishes", what_follows_the_isn_establishes },
	{ "a second SYN with another ISN is followed, answers to the first are not", a_second_syn_with_another_isn_is_followed },
	{ "a SYN-ACK may acknowledge data that came with the SYN", data_in_the_syn_may_be_acknowledged },
	{ "a refusal may acknowledge data that came with the SYN", a_refusal_may_acknowledge_data_in_the_syn },
	{ "a guessed number to a quiet flow makes no later RST believed", a_guess_prepares_no_reset },
	{ "a RST does not move what is believed", resets_do_not_move_what_is_believed },
	{ "a FIN with a guessed number closes nothing", a_guessed_fin_closes_nothing },
	{ "a FIN after hundreds of MB is believed", a_fin_after_much_data_is_believed },
	{ "after a SYN in the middle the client's true RST is believed", a_syn_in_the_middle_is_answered_by_a_true_reset },
};

int main(void)
{
	return scene_main("guesses", &rig, bodies, sizeof(bodies) / sizeof(*bodies));
}
