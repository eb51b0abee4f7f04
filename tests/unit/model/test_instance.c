// SPDX-License-Identifier: MIT
#include "unit.h"
#include "failing_alloc.h"
#include "model/instance.c"

static struct snapshot *sample(size_t n)
{
	struct snapshot *s = snapshot_new("DEFAULT_GROUP", "svc");

	assert_non_null(s);
	for (size_t i = 0; i < n; i++) {
		struct instance *e = snapshot_append(s);

		assert_non_null(e);
		assert_string_equal(e->cluster, "");
		assert_string_equal(e->instance_id, "");
		assert_null(e->address_text);
		e->endpoint = (struct endpoint){.addr.family = AF_INET, .port = (uint16_t)(i / 2 + 1)};
		e->weight = (double)(i % 3);
		e->healthy = e->enabled = true;
		e->reject = i % 7 == 6 ? SY_R_BAD_ADDRESS : i % 7 == 5 ? SY_R_BAD_WEIGHT : SY_R_NONE;
		e->address_text = snapshot_text(s, i % 2 ? "svc.example:80" : "svc.example:81", 14);
		assert_non_null(e->address_text);
	}
	return s;
}

static void reverse(struct snapshot *s)
{
	for (size_t i = 0; i < s->n_instances / 2; i++) {
		struct instance t = s->instances[i];

		s->instances[i] = s->instances[s->n_instances - 1 - i];
		s->instances[s->n_instances - 1 - i] = t;
	}
}

static void copies_are_equal(void **state)
{
	(void)state;
	for (size_t n = 0; n < 70; n++) {
		struct snapshot *a = sample(n), *b = snapshot_copy(a);

		assert_non_null(b);
		assert_string_equal(b->group, "DEFAULT_GROUP");
		assert_string_equal(b->name, "svc");
		assert_true(snapshot_equal(a, b));
		reverse(b);
		assert_true(snapshot_equal(a, b));
		assert_true(snapshot_equal(b, a));
		assert_non_null(snapshot_append(b)); /* a copy grows like any other */
		assert_false(snapshot_equal(a, b));
		snapshot_free(a);
		snapshot_free(b);
	}
	snapshot_free(NULL);
}

/* one change at a time to one of three */
static void assert_change(void (*change)(struct snapshot *s), bool equal)
{
	struct snapshot *a = sample(3), *b = sample(3);

	change(b);
	assert_int_equal(snapshot_equal(a, b), equal);
	reverse(b);
	assert_int_equal(snapshot_equal(a, b), equal);
	snapshot_free(a);
	snapshot_free(b);
}

static void change_weight(struct snapshot *s)
{
	s->instances[1].weight = 5;
}
static void change_port(struct snapshot *s)
{
	s->instances[1].endpoint.port = 9;
}
static void change_healthy(struct snapshot *s)
{
	s->instances[1].healthy = false;
}
static void change_enabled(struct snapshot *s)
{
	s->instances[1].enabled = false;
}
static void change_reject(struct snapshot *s)
{
	s->instances[1].reject = SY_R_BAD_WEIGHT;
}
static void change_cluster(struct snapshot *s)
{
	s->instances[1].cluster = "A";
}
static void change_protection(struct snapshot *s)
{
	s->protection = true;
}
static void change_id(struct snapshot *s)
{
	s->instances[1].instance_id = "10.0.0.1#80";
}

static void what_counts(void **state)
{
	(void)state;
	assert_change(change_weight, false);
	assert_change(change_port, false);
	assert_change(change_healthy, false);
	assert_change(change_enabled, false);
	assert_change(change_reject, false);
	assert_change(change_cluster, false);
	assert_change(change_protection, false);
	assert_change(change_id, true);
}

static void multisets(void **state)
{
	struct snapshot *a = sample(2), *b = sample(2), *from = sample(2);

	(void)state;
	/* {x, x, y} is not {x, y, y} */
	assert_int_equal(append_copy(a, &from->instances[0]), 0);
	assert_int_equal(append_copy(b, &from->instances[1]), 0);
	assert_false(snapshot_equal(a, b));
	snapshot_free(from);
	snapshot_free(a);
	snapshot_free(b);
}

static void no_memory_for_copies(void **state)
{
	struct snapshot *a = sample(40), *b = NULL;
	long n;

	(void)state;
	for (n = 0; !b && n < 1000; n++) {
		allocs_left = n;
		b = snapshot_copy(a);
		allocs_left = -1;
	}
	/* the snapshot and its names, six times more room for instances than for one, two blocks of texts; then it
	 * succeeded */
	assert_int_equal(n, 3 + 7 + 2 + 1);
	assert_true(snapshot_equal(a, b));
	snapshot_free(a);
	snapshot_free(b);
}

static void no_memory_to_append(void **state)
{
	struct snapshot *s = sample(4);

	(void)state;
	allocs_left = 0;
	assert_null(snapshot_append(s));
	allocs_left = -1;
	assert_int_equal(s->n_instances, 4);
	assert_non_null(snapshot_append(s));
	snapshot_free(s);
}

static void texts_stay_where_they_are(void **state)
{
	struct snapshot *s = sample(0);
	const char *kept[2000];
	char text[2000];

	(void)state;
	memset(text, 'x', sizeof(text));
	for (size_t n = 0; n < 2000; n++) {
		kept[n] = snapshot_text(s, text, n);
		assert_non_null(kept[n]);
	}
	for (size_t n = 0; n < 2000; n++) {
		assert_int_equal(strlen(kept[n]), n);
		assert_memory_equal(kept[n], text, n);
	}
	allocs_left = 0;
	for (size_t n = 0; n < 65536 && snapshot_text(s, "", 0); n++)
		;
	assert_int_equal(allocs_left, -1); /* it came to an end, by that failure */
	snapshot_free(s);
}

static void no_memory_to_compare(void **state)
{
	struct snapshot *a = sample(9), *b = sample(9);

	(void)state;
	reverse(b);
	for (long n = 0; n < 2; n++) {
		allocs_left = n;
		assert_false(snapshot_equal(a, b));
		allocs_left = -1;
	}
	assert_true(snapshot_equal(a, b));
	snapshot_free(a);
	snapshot_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE("a copy, in any order, is the same content", copies_are_equal),
		CASE("every field is content but the instance id", what_counts),
		CASE("entries are counted, not only looked for", multisets),
		CASE("a copy that runs out of memory at any point leaves nothing behind", no_memory_for_copies),
		CASE("an append that runs out of memory leaves the snapshot as it was", no_memory_to_append),
		CASE("thousands of texts stay where they are", texts_stay_where_they_are),
		CASE("a comparison without memory says changed", no_memory_to_compare),
	};

	return cmocka_run_group_tests_name("instance", tests, NULL, NULL);
}
