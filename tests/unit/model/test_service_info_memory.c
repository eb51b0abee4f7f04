// SPDX-License-Identifier: MIT
#include "unit.h"
#include "base/json.h"
#include "failing_alloc.h"
#include "model/instance.h"
#define snapshot_text(s, text, size) (alloc_fails() ? NULL : snapshot_text(s, text, size))
#include "model/service_info.c"

/* Allocations of service_info.c itself, and texts; what else instance.c allocates fails in test_instance. */
static void nth_allocation_fails(void **state)
{
	static const char text[] =
		"{\"name\":\"G@@svc\",\"hosts\":[{\"ip\":\"10.0.0.1\",\"port\":80},{\"ip\":\"10.0.0.2\","
		"\"port\":80,\"clusterName\":\"A\",\"instanceId\":\"x\"}]}";
	_cleanup_json_ cJSON *json = json_parse(text, sizeof(text) - 1);
	struct snapshot *s = NULL;
	const char *why = NULL;
	int r = -ENOMEM;
	long n;

	(void)state;
	assert_non_null(json);
	for (n = 0; r < 0 && n < 1000; n++) {
		allocs_left = n;
		r = service_info_parse(json, &s, &why);
		allocs_left = -1;
		if (r < 0) {
			assert_int_equal(r, -ENOMEM);
			assert_string_equal(why, "out of memory");
			assert_null(s);
		}
	}
	assert_int_equal(n, 1 + 1 + 2 + 3); /* the group's name, the hosts' texts; then it succeeded */
	assert_int_equal(s->n_instances, 2);
	snapshot_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE("running out of memory anywhere leaves the output untouched and nothing behind",
		     nth_allocation_fails),
	};

	return cmocka_run_group_tests_name("service_info_memory", tests, NULL, NULL);
}
