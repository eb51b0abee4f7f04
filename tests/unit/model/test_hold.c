// SPDX-License-Identifier: MIT
#include "unit.h"
#include "model/hold.h"

#define HOLD 15000000000ULL
#define T0   1000000000ULL

/* n instances of weight 1 and n_bad entries with a bad address */
static struct snapshot *listed(size_t n, size_t n_bad)
{
	struct snapshot *s = snapshot_new("DEFAULT_GROUP", "svc");

	assert_non_null(s);
	for (size_t i = 0; i < n + n_bad; i++) {
		struct instance *e = snapshot_append(s);

		assert_non_null(e);
		e->endpoint = (struct endpoint){.addr.family = AF_INET, .port = (uint16_t)(i + 1)};
		e->weight = 1;
		e->healthy = e->enabled = true;
		if (i < n_bad) {
			e->reject = SY_R_BAD_ADDRESS;
			e->address_text = "svc.example:80";
		}
	}
	return s;
}

static void assert_applied(struct hold *h, size_t n, uint64_t now)
{
	struct snapshot *s = listed(n, 0);

	assert_ptr_equal(hold_push(h, s, now), s);
	assert_ptr_equal(h->applied, s);
	assert_null(h->held);
	assert_int_equal(h->until_ns, 0);
}

static void assert_held(struct hold *h, size_t n, uint64_t now, uint64_t until)
{
	const struct snapshot *before = h->applied;
	struct snapshot *s = listed(n, 0);

	assert_null(hold_push(h, s, now));
	assert_ptr_equal(h->applied, before);
	assert_ptr_equal(h->held, s);
	assert_int_equal(h->until_ns, until);
}

static void first_push(void **state)
{
	struct hold h;

	(void)state;
	hold_init(&h, HOLD);
	assert_applied(&h, 0, T0);
	assert_applied(&h, 0, T0);
	assert_applied(&h, 5, T0);
	assert_int_equal(h.n_holds, 0);
	hold_done(&h);
}

/* the line, for every size up to 20: none from one on, fewer than half from four on */
static void the_line(void **state)
{
	(void)state;
	for (size_t before = 0; before <= 20; before++)
		for (size_t after = 0; after <= 20; after++) {
			bool below = (before >= 1 && after == 0) || (before >= 4 && after < (before + 1) / 2);
			struct hold h;

			hold_init(&h, HOLD);
			assert_applied(&h, before, T0);
			if (below)
				assert_held(&h, after, T0, T0 + HOLD);
			else
				assert_applied(&h, after, T0);
			assert_int_equal(h.n_holds, below);
			hold_done(&h);
		}
}

static void applied_when_due(void **state)
{
	struct hold h;
	const struct snapshot *held;

	(void)state;
	hold_init(&h, HOLD);
	assert_applied(&h, 3, T0);
	assert_null(hold_expire(&h, T0 + 99 * HOLD)); /* nothing held */
	assert_held(&h, 0, T0, T0 + HOLD);
	held = h.held;
	assert_null(hold_expire(&h, T0 + HOLD - 1));
	assert_ptr_equal(hold_expire(&h, T0 + HOLD), held);
	assert_ptr_equal(h.applied, held);
	assert_null(hold_expire(&h, T0 + HOLD));
	assert_applied(&h, 0, T0 + HOLD); /* and none is the rule from now on */
	hold_done(&h);
}

static void clock_not_restarted(void **state)
{
	struct hold h;
	const struct snapshot *newest;

	(void)state;
	hold_init(&h, HOLD);
	assert_applied(&h, 10, T0);
	assert_held(&h, 0, T0, T0 + HOLD);
	assert_held(&h, 4, T0 + HOLD / 2, T0 + HOLD);
	assert_held(&h, 1, T0 + HOLD - 1, T0 + HOLD);
	assert_int_equal(h.n_holds, 1);
	newest = h.held;
	assert_ptr_equal(hold_expire(&h, T0 + HOLD), newest);
	assert_int_equal(h.applied->n_instances, 1);
	hold_done(&h);
}

static void recovery_ends_it(void **state)
{
	struct hold h;

	(void)state;
	hold_init(&h, HOLD);
	assert_applied(&h, 10, T0);
	assert_held(&h, 0, T0, T0 + HOLD);
	assert_applied(&h, 5, T0 + 1);
	assert_null(hold_expire(&h, T0 + HOLD));
	assert_held(&h, 0, T0 + 2, T0 + 2 + HOLD); /* the next one has its own clock */
	assert_int_equal(h.n_holds, 2);
	hold_done(&h);
}

static void flapping(void **state)
{
	struct hold h;

	(void)state;
	hold_init(&h, HOLD);
	assert_applied(&h, 6, T0);
	for (uint64_t i = 1; i < 100; i++) {
		assert_held(&h, 0, T0 + i, T0 + i + HOLD);
		assert_int_equal(h.applied->n_instances, 6);
		assert_applied(&h, 6, T0 + i);
	}
	hold_done(&h);
}

static void push_at_the_end(void **state)
{
	struct hold h;

	(void)state;
	hold_init(&h, HOLD);
	assert_applied(&h, 6, T0);
	assert_held(&h, 0, T0, T0 + HOLD);
	assert_applied(&h, 0, T0 + HOLD); /* due, though the timer has not fired */
	hold_done(&h);
}

static void never_when_zero(void **state)
{
	struct hold h;

	(void)state;
	hold_init(&h, 0);
	assert_applied(&h, 10, T0);
	assert_applied(&h, 0, T0);
	assert_int_equal(h.n_holds, 0);
	hold_done(&h);
}

static void marks_are_no_disappearance(void **state)
{
	struct hold h;
	struct snapshot *s = listed(10, 0);

	(void)state;
	hold_init(&h, HOLD);
	assert_applied(&h, 10, T0);
	for (size_t i = 0; i < 10; i++) {
		s->instances[i].weight = 0;
		s->instances[i].healthy = i & 1;
		s->instances[i].enabled = i & 2;
	}
	assert_ptr_equal(hold_push(&h, s, T0), s);
	hold_done(&h);
}

static void bad_addresses_do_not_count(void **state)
{
	struct hold h;
	struct snapshot *s;

	(void)state;
	hold_init(&h, HOLD);
	s = listed(0, 9);
	assert_ptr_equal(hold_push(&h, s, T0), s);
	assert_applied(&h, 0, T0); /* from none to none */
	assert_applied(&h, 3, T0);
	s = listed(0, 9);
	assert_null(hold_push(&h, s, T0)); /* from three to none, whatever else is listed */
	hold_done(&h);
}

static void forever(void **state)
{
	struct hold h;

	(void)state;
	hold_init(&h, UINT64_MAX);
	assert_applied(&h, 1, T0);
	assert_held(&h, 0, T0, UINT64_MAX);
	hold_done(&h);
	hold_done(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE("the first push is applied whatever it lists", first_push),
		CASE("none from 1 and fewer than half from 4 are held, all else is applied", the_line),
		CASE("what is held is applied when its time is over, once", applied_when_due),
		CASE("further pushes replace what is held and do not restart the clock", clock_not_restarted),
		CASE("a push above the line ends the hold", recovery_ends_it),
		CASE("flapping between six and none changes nothing", flapping),
		CASE("a push that comes when the time is over is applied", push_at_the_end),
		CASE("hold 0 never holds", never_when_zero),
		CASE("weight 0, unhealthy and disabled are no disappearance", marks_are_no_disappearance),
		CASE("entries with bad addresses never count as there", bad_addresses_do_not_count),
		CASE("a hold beyond the end of time does not wrap", forever),
	};

	return cmocka_run_group_tests_name("hold", tests, NULL, NULL);
}
