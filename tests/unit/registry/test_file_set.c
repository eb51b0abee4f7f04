// SPDX-License-Identifier: MIT
#include "unit.h"
#include "base/cleanup.h"
#include "registry/file_set.h"

DEFINE_CLEANUP(struct file_set *, file_set_free)
#define _cleanup_set_ _cleanup_(file_set_freep)

#define S 1000000000ULL

/* A service of n instances in a file. */
static void put(struct file_set *set, const char *file_name, const char *service, size_t n, uint64_t now_ns)
{
	struct snapshot *s = snapshot_new("G", service);

	assert_non_null(s);
	for (size_t i = 0; i < n; i++)
		assert_non_null(snapshot_append(s));
	assert_int_equal(file_set_put(set, file_name, s, now_ns), 0);
}

/* The next thing told is a list of n instances of service. */
static void assert_told(struct file_set *set, const char *service, size_t n)
{
	uint64_t received_ns = 0;
	struct snapshot *s = file_set_next(set, &received_ns);

	assert_non_null(s);
	assert_string_equal(s->group, "G");
	assert_string_equal(s->name, service);
	assert_int_equal(s->n_instances, n);
	assert_true(received_ns);
	snapshot_free(s);
}

static void assert_quiet(struct file_set *set)
{
	uint64_t received_ns;

	assert_null(file_set_next(set, &received_ns));
	assert_false(file_set_is_stale(set));
}

static void subscribed_only(void **state)
{
	_cleanup_set_ struct file_set *set = file_set_new("test");

	(void)state;
	put(set, "a.json", "a", 2, S);
	assert_quiet(set);
	assert_int_equal(file_set_subscribe(set, "G", "a", S), 0);
	assert_int_equal(file_set_subscribe(set, "G", "a", S), 0);
	assert_int_equal(file_set_n_subscribed(set), 1);
	assert_told(set, "a", 2);
	assert_quiet(set);
	put(set, "a.json", "a", 3, S);
	assert_told(set, "a", 3);
	file_set_unsubscribe(set, "G", "a");
	file_set_unsubscribe(set, "G", "a");
	assert_int_equal(file_set_n_subscribed(set), 0);
	put(set, "a.json", "a", 4, S);
	assert_quiet(set);
}

static void nothing_known(void **state)
{
	_cleanup_set_ struct file_set *set = file_set_new("test");

	(void)state;
	assert_int_equal(file_set_subscribe(set, "G", "a", S), 0);
	assert_quiet(set);
	assert_int_equal(file_set_expire(set, 9 * S), 0);
	assert_quiet(set);
}

static void absent(void **state)
{
	_cleanup_set_ struct file_set *set = file_set_new("test");

	(void)state;
	assert_int_equal(file_set_subscribe(set, "G", "a", S), 0);
	assert_int_equal(file_set_subscribe(set, "G", "b", S), 0);
	file_set_scan_begin(set);
	put(set, "b.json", "b", 2, S);
	file_set_scan_end(set, S);
	assert_told(set, "b", 2);
	assert_quiet(set);
	assert_int_equal(file_set_expire(set, S), 2 * S);
	assert_quiet(set);
	assert_int_equal(file_set_expire(set, 2 * S), 0);
	assert_told(set, "a", 0);
	assert_quiet(set);
	/* one that comes later */
	assert_int_equal(file_set_subscribe(set, "G", "c", 3 * S), 0);
	assert_quiet(set);
	assert_int_equal(file_set_expire(set, 4 * S), 0);
	assert_told(set, "c", 0);
	assert_quiet(set);
	put(set, "a.json", "a", 1, 5 * S);
	assert_told(set, "a", 1);
}

static void maybe_in_a_bad_file(void **state)
{
	_cleanup_set_ struct file_set *set = file_set_new("test");

	(void)state;
	assert_int_equal(file_set_subscribe(set, "G", "a", S), 0);
	file_set_scan_begin(set);
	assert_int_equal(file_set_seen(set, "x.json"), 0);
	file_set_scan_end(set, S);
	assert_int_equal(file_set_expire(set, 2 * S), 3 * S);
	assert_quiet(set);
	put(set, "x.json", "x", 1, 2 * S);
	assert_int_equal(file_set_expire(set, 3 * S), 0);
	assert_told(set, "a", 0);
	/* a folder that went away says nothing */
	file_set_forget_missing(set);
	assert_int_equal(file_set_subscribe(set, "G", "b", 4 * S), 0);
	assert_int_equal(file_set_expire(set, 9 * S), 0);
	assert_quiet(set);
}

static void first_by_name(void **state)
{
	_cleanup_set_ struct file_set *set = file_set_new("test");

	(void)state;
	assert_int_equal(file_set_subscribe(set, "G", "a", S), 0);
	put(set, "2.json", "a", 2, S);
	assert_told(set, "a", 2);
	put(set, "3.json", "a", 3, S);
	assert_quiet(set);
	put(set, "1.json", "a", 1, S);
	assert_told(set, "a", 1);
	file_set_missing(set, "1.json", S);
	assert_int_equal(file_set_expire(set, 2 * S), 0);
	assert_told(set, "a", 2);
	put(set, "2.json", "other", 9, 2 * S);
	assert_told(set, "a", 3);
	assert_quiet(set);
}

static void gone_after_a_second(void **state)
{
	_cleanup_set_ struct file_set *set = file_set_new("test");

	(void)state;
	assert_int_equal(file_set_subscribe(set, "G", "a", S), 0);
	put(set, "a.json", "a", 2, S);
	assert_told(set, "a", 2);
	file_set_missing(set, "a.json", 5 * S);
	file_set_missing(set, "a.json", 5 * S + S / 2);
	assert_int_equal(file_set_expire(set, 6 * S - 1), 6 * S);
	assert_quiet(set);
	/* there again, with nothing that can be read: what was stays */
	assert_int_equal(file_set_seen(set, "a.json"), 0);
	assert_int_equal(file_set_expire(set, 60 * S), 0);
	assert_quiet(set);
	file_set_missing(set, "a.json", 70 * S);
	assert_int_equal(file_set_expire(set, 71 * S), 0);
	assert_told(set, "a", 0);
	assert_quiet(set);
	put(set, "a.json", "a", 1, 72 * S);
	assert_told(set, "a", 1);
}

static void scans(void **state)
{
	_cleanup_set_ struct file_set *set = file_set_new("test");

	(void)state;
	assert_int_equal(file_set_subscribe(set, "G", "a", S), 0);
	assert_int_equal(file_set_subscribe(set, "G", "b", S), 0);
	put(set, "a.json", "a", 1, S);
	put(set, "b.json", "b", 1, S);
	assert_told(set, "a", 1);
	assert_told(set, "b", 1);
	file_set_scan_begin(set);
	assert_int_equal(file_set_seen(set, "b.json"), 0);
	file_set_scan_end(set, 2 * S);
	/* the folder goes before the second is over: nothing is missing any more, until another scan says so */
	file_set_forget_missing(set);
	assert_int_equal(file_set_expire(set, 9 * S), 0);
	assert_quiet(set);
	file_set_scan_begin(set);
	put(set, "b.json", "b", 2, 10 * S);
	file_set_scan_end(set, 10 * S);
	assert_told(set, "b", 2);
	assert_int_equal(file_set_expire(set, 11 * S), 0);
	assert_told(set, "a", 0);
	assert_quiet(set);
}

static void renamed_service(void **state)
{
	_cleanup_set_ struct file_set *set = file_set_new("test");

	(void)state;
	assert_int_equal(file_set_subscribe(set, "G", "a", S), 0);
	assert_int_equal(file_set_subscribe(set, "G", "b", S), 0);
	put(set, "x.json", "a", 1, S);
	assert_told(set, "a", 1);
	assert_quiet(set);
	put(set, "x.json", "b", 2, S);
	assert_told(set, "a", 0);
	assert_told(set, "b", 2);
	assert_quiet(set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE("only subscribed services are told, others when they are subscribed", subscribed_only),
		CASE("of a service nothing is told before the folder was looked at", nothing_known),
		CASE("a service that no file names is empty a second after the scan or its subscription", absent),
		CASE("as long as a file does not parse, no service is found absent", maybe_in_a_bad_file),
		CASE("of several files for one service the first by name counts", first_by_name),
		CASE("a missing file is gone after a second unless it comes back", gone_after_a_second),
		CASE("what a scan does not see is missing, unless the folder goes too", scans),
		CASE("a file that names another service leaves the first without one", renamed_service),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
