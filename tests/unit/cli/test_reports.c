// SPDX-License-Identifier: MIT
/* Reports in the contract's JSON, as people see them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/json.h"
#include "cli/cmd.h"

static struct cli cli;
static char *text;
static size_t text_size;

static int set_up(void **state)
{
	(void)state;
	cli = (struct cli){.control = "/c.sock", .print = {.out = open_memstream(&text, &text_size)}};
	return cli.print.out ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	(void)fclose(cli.print.out);
	free(text);
	return 0;
}

static cJSON *json(const char *source)
{
	cJSON *value = json_parse(source, strlen(source));

	assert_non_null(value);
	return value;
}

static const char *printed(void)
{
	assert_int_equal(fflush(cli.print.out), 0);
	return text;
}

static void services_show_listeners_counters_and_how_many_are_eligible(void **state)
{
	_cleanup_json_ cJSON *services = json(
		"[{\"service\":\"G@@s\",\"listen\":[\"10.0.0.1:80/tcp\",\"10.0.0.2:80/tcp\"],\"mode\":\"full-nat\","
		"\"algorithm\":\"weighted-random\",\"backends\":3,\"eligible\":2,\"generation\":4,\"connections\":"
		"12345,"
		"\"active\":7,\"packets\":1000000,\"bytes\":123456789,\"source\":\"live\",\"age_s\":61,\"apply_us\":38."
		"2}]");

	(void)state;
	assert_int_equal(cmd_services_print(&cli, services), CLI_DONE);
	assert_non_null(strstr(printed(),
			       "G@@s     10.0.0.1:80/tcp, 10.0.0.2:80/tcp  full-nat  weighted-random    2 of 3"
			       "       12,345       7  1,000,000  123 MB           4  live    1m 1s       38 us\n"));
}

static void backends_explain_the_reasons_that_occur_and_no_others(void **state)
{
	_cleanup_json_ cJSON *backends = json(
		"[{\"service\":\"G@@s\",\"address\":\"10.0.1.1:80\",\"weight\":1,\"share\":0.1,\"state\":\"up\","
		"\"reason\":\"\","
		"\"cluster\":\"A\",\"connections\":1,\"active\":0,\"packets\":10,\"bytes\":999,\"refused\":0},"
		"{\"service\":\"G@@s\",\"address\":\"10.0.1.2:80\",\"weight\":0,\"share\":0,\"state\":\"draining\","
		"\"reason\":\"weight-0\",\"cluster\":\"A\",\"connections\":0,\"active\":0,\"packets\":0,\"bytes\":0,"
		"\"refused\":0}]");

	(void)state;
	assert_int_equal(cmd_backends_print(&cli, backends, true), CLI_DONE);
	assert_string_equal(printed(), "ADDRESS      WEIGHT    SHARE  STATE     REASON    CLUSTER  CONNECTIONS  ACTIVE "
				       " PACKETS  BYTES  REFUSED\n"
				       "10.0.1.1:80       1  10.00 %  up                  A                  1       0 "
				       "      10  999 B        0\n"
				       "10.0.1.2:80       0   0.00 %  draining  weight-0  A                  0       0 "
				       "       0    0 B        0\n"
				       "weight-0: the registry gives it weight 0\n");
}

static void a_table_draws_its_bars_to_the_largest_share(void **state)
{
	_cleanup_json_ cJSON *table = json(
		"{\"service\":\"G@@s\",\"generation\":4,\"slots\":["
		"{\"address\":\"10.0.1.1:80\",\"weight\":1,\"cumulative\":0.1,\"bound\":429496729,\"share\":0.1},"
		"{\"address\":\"10.0.1.2:80\",\"weight\":9,\"cumulative\":1,\"bound\":4294967295,\"share\":0.9}]}");

	(void)state;
	assert_int_equal(cmd_table_print(&cli, table), CLI_DONE);
	assert_string_equal(printed(), "G@@s  generation 4, backends in the table: 2\n"
				       "ADDRESS      WEIGHT    SHARE  CUMULATIVE          BOUND\n"
				       "10.0.1.1:80       1  10.00 %    0.100000    429,496,729  ###\n"
				       "10.0.1.2:80       9  90.00 %    1.000000  4,294,967,295  "
				       "##############################\n");
}

static void numbers_beyond_a_double_are_shown_exactly(void **state)
{
	_cleanup_json_ cJSON *stats = cJSON_CreateObject();
	cJSON *verdicts = cJSON_AddObjectToObject(stats, "verdicts");

	(void)state;
	assert_non_null(json_add_u64(verdicts, "forward", UINT64_MAX));
	assert_int_equal(cmd_stats_print(&cli, stats), CLI_DONE);
	assert_non_null(strstr(printed(), "18,446,744,073,709,551,615"));
}

static void stats_leave_out_what_is_0_unless_asked_for(void **state)
{
	_cleanup_json_ cJSON *stats = json("{\"verdicts\":{\"new\":3,\"error\":0},\"counts\":{\"expired\":5}}");

	(void)state;
	assert_int_equal(cmd_stats_print(&cli, stats), CLI_DONE);
	assert_string_equal(printed(), "VERDICT  PACKETS\n"
				       "new            3  first packet of a new flow, backend picked and sent on\n"
				       "(1 more at 0: --all)\n"
				       "\nCOUNTER  COUNT\n"
				       "expired      5  flows ended by the sweeper\n");
	cli.all = true;
	assert_int_equal(cmd_stats_print(&cli, stats), CLI_DONE);
	assert_non_null(strstr(printed(), "error          0  a record that must exist does not"));
}

static void empty_reports_say_so_in_a_sentence(void **state)
{
	_cleanup_json_ cJSON *none = cJSON_CreateArray(), *empty = json("{\"service\":\"G@@s\",\"slots\":[]}");

	(void)state;
	assert_int_equal(cmd_services_print(&cli, none), CLI_DONE);
	assert_int_equal(cmd_backends_print(&cli, none, false), CLI_DONE);
	assert_int_equal(cmd_backends_print(&cli, none, true), CLI_DONE);
	assert_int_equal(cmd_flows_print(&cli, none), CLI_DONE);
	cli.client = "10.0.0.1";
	assert_int_equal(cmd_flows_print(&cli, none), CLI_DONE);
	assert_int_equal(cmd_table_print(&cli, empty), CLI_DONE);
	assert_string_equal(printed(), "No service is configured.\n"
				       "No service has a backend.\n"
				       "The service has no backend.\n"
				       "There are no flows.\n"
				       "No flow is like that.\n"
				       "G@@s  generation 0, backends in the table: 0\n"
				       "No backend is eligible: new connections are answered by on_empty.\n");
}

static void status_tells_an_agent_that_is_down_from_one_that_was_never_there(void **state)
{
	_cleanup_json_ cJSON *up =
		json("{\"version\":\"1\",\"uptime_s\":75,\"warnings\":[\"G@@s: no eligible backend\"]}");
	_cleanup_json_ cJSON *loaded = json("{\"agent\":\"down\",\"loaded\":true}"),
			     *nothing = json("{\"agent\":\"down\",\"loaded\":false}");

	(void)state;
	assert_int_equal(cmd_status_print(&cli, up), CLI_DONE);
	assert_non_null(strstr(printed(), "agent  up for 1m 15s, version 1\n"));
	assert_non_null(strstr(printed(), "\nwarning: G@@s: no eligible backend\n"));
	assert_int_equal(cmd_status_print(&cli, loaded), CLI_DONE);
	assert_non_null(strstr(printed(), "down: nobody answers at /c.sock; the programs go on with what is pinned\n"));
	assert_int_equal(cmd_status_print(&cli, nothing), CLI_DONE);
	assert_non_null(strstr(printed(), "down: nobody answers at /c.sock; nothing is loaded: start steelyardd\n"));
}

static void a_report_of_another_shape_leaves_cells_empty_and_breaks_nothing(void **state)
{
	static const char *const odd[] = {
		"{}",
		"[]",
		"[1,\"x\",null,[]]",
		"[{\"service\":7,\"listen\":\"x\",\"age_s\":\"y\"}]",
		"{\"slots\":[{}]}",
		"{\"verdicts\":[1],\"x\":{\"y\":\"z\"},\"n\":-1}",
		"{\"interfaces\":[1,{\"programs\":{}}],\"registries\":[{}],\"features\":{\"a\":[1]}}"};

	(void)state;
	for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
		_cleanup_json_ cJSON *value = json(odd[i]);

		assert_int_equal(cmd_services_print(&cli, value), CLI_DONE);
		assert_int_equal(cmd_backends_print(&cli, value, false), CLI_DONE);
		assert_int_equal(cmd_table_print(&cli, value), CLI_DONE);
		assert_int_equal(cmd_flows_print(&cli, value), CLI_DONE);
		assert_int_equal(cmd_status_print(&cli, value), CLI_DONE);
		assert_int_equal(cmd_maps_print(&cli, value), CLI_DONE);
		if (cJSON_IsObject(value))
			assert_int_equal(cmd_stats_print(&cli, value), CLI_DONE);
	}
}

static void a_failure_is_an_object_when_asked_for(void **state)
{
	(void)state;
	cli.json = true;
	assert_int_equal(cli_fail(&cli, "no %s", "luck"), CLI_FAILED);
	assert_string_equal(printed(), "{\n\t\"error\":\t\"no luck\"\n}\n");
	assert_int_equal(cli_usage(&cli, "no"), CLI_USAGE);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(services_show_listeners_counters_and_how_many_are_eligible),
		TEST(backends_explain_the_reasons_that_occur_and_no_others),
		TEST(a_table_draws_its_bars_to_the_largest_share),
		TEST(numbers_beyond_a_double_are_shown_exactly),
		TEST(stats_leave_out_what_is_0_unless_asked_for),
		TEST(empty_reports_say_so_in_a_sentence),
		TEST(status_tells_an_agent_that_is_down_from_one_that_was_never_there),
		TEST(a_report_of_another_shape_leaves_cells_empty_and_breaks_nothing),
		TEST(a_failure_is_an_object_when_asked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
