// SPDX-License-Identifier: MIT
#include "unit.h"
#include "failing_alloc.h"
#include "policy/selector.c"
#include "policy/table.c"

static void selector_without_memory(void **state)
{
	const struct selector_rules rules = {.family_v4 = true};
	struct snapshot s = {.n_instances = 0};
	struct selection sel = {.n_bad = 42};

	(void)state;
	allocs_left = 0;
	assert_int_equal(selector_run(&s, &rules, &sel), -ENOMEM);
	allocs_left = -1;
	assert_int_equal(sel.n_bad, 42);
	assert_int_equal(selector_run(&s, &rules, &sel), 0);
	selection_done(&sel);
}

static void table_without_memory(void **state)
{
	const double weights[] = {1, 2, 7};
	uint32_t bounds[3] = {42, 42, 42};

	(void)state;
	allocs_left = 0;
	assert_int_equal(table_bounds(weights, 3, bounds), -ENOMEM);
	allocs_left = -1;
	assert_int_equal(bounds[0], 42);
	assert_int_equal(table_bounds(weights, 3, bounds), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE("a selection that runs out of memory leaves its output untouched", selector_without_memory),
		CASE("bounds that run out of memory are untouched", table_without_memory),
	};

	return cmocka_run_group_tests_name("policy_memory", tests, NULL, NULL);
}
