// SPDX-License-Identifier: MIT
#include "unit.h"
#include "model/instance.h"
#include "failing_alloc.h"
#include "registry/file_set.c"

/* A folder's small life; -ENOMEM as soon as something could not be had. */
static int live(struct file_set *set)
{
	struct snapshot *told, *s = snapshot_new("G", "a");
	uint64_t received_ns;
	int r = file_set_put(set, "a.json", s, 1);

	r = r ?: file_set_seen(set, "broken.json");
	r = r ?: file_set_subscribe(set, "G", "a", 2);
	r = r ?: file_set_subscribe(set, "G", "nobody", 2);
	told = file_set_next(set, &received_ns);
	assert_true(r || told);
	snapshot_free(told);
	file_set_missing(set, "a.json", 3);
	(void)file_set_expire(set, 4 * FILE_SET_GONE_NS);
	snapshot_free(file_set_next(set, &received_ns));
	return r;
}

static void nth_allocation_fails(void **state)
{
	int r = -ENOMEM;
	long n;

	(void)state;
	for (n = 0; r && n < 1000; n++) {
		struct file_set *set;

		allocs_left = n;
		set = file_set_new("test");
		r = set ? live(set) : -ENOMEM;
		allocs_left = -1;
		assert_true(!r || r == -ENOMEM);
		file_set_free(set);
	}
	assert_int_equal(r, 0);
	assert_int_equal(n, 1 + 1 + 2 + 3 + 2 + 3); /* the set; two files of 2, two services of 3; then it succeeded */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE("running out of memory anywhere is told and leaves nothing behind", nth_allocation_fails),
	};

	return cmocka_run_group_tests_name("file_set_memory", tests, NULL, NULL);
}
