// SPDX-License-Identifier: MIT
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/cleanup.h"
#include "cli/args.h"
#include "cli/command.h"

#define MAX_WORDS 12

/* Splits line at blanks; the words stay until the next call. */
static int parse(const char *line, struct cli *c, char why[256])
{
	static char text[512];
	char *argv[MAX_WORDS + 1] = {(char *)"steelyard"}, *rest = text, *word;
	int argc = 1;

	(void)snprintf(text, sizeof text, "%s", line);
	while ((word = strsep(&rest, " ")))
		if (*word && argc < MAX_WORDS)
			argv[argc++] = word;
	why[0] = 0;
	return args_parse(argc, argv, c, why, 256);
}

static void without_a_command_it_is_status(void **state)
{
	struct cli c;
	char why[256];

	(void)state;
	assert_int_equal(parse("", &c, why), 0);
	assert_string_equal(c.command->name, "status");
	assert_string_equal(c.pin_dir, CLI_PIN_DIR);
	assert_string_equal(c.control, CLI_CONTROL);
	assert_false(c.json);
	assert_int_equal(parse("--json", &c, why), 0);
	assert_string_equal(c.command->name, "status");
	assert_true(c.json);
	assert_int_equal(parse("--help", &c, why), 0);
	assert_string_equal(c.command->name, "help");
}

static void options_stand_before_or_after_the_command(void **state)
{
	static const char *const lines[] = {
		"--pin-dir /p --control /c --json --limit 5 --service s flows",
		"flows --pin-dir /p --control /c --json --limit 5 --service s",
		"--pin-dir=/p --limit=5 flows --control=/c --json --service=s",
	};
	struct cli c;
	char why[256];

	(void)state;
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
		assert_int_equal(parse(lines[i], &c, why), 0);
		assert_string_equal(c.command->name, "flows");
		assert_string_equal(c.pin_dir, "/p");
		assert_string_equal(c.control, "/c");
		assert_string_equal(c.service, "s");
		assert_int_equal(c.limit, 5);
		assert_true(c.json);
	}
}

static void arguments_and_their_options_are_kept(void **state)
{
	struct cli c;
	char why[256];

	(void)state;
	assert_int_equal(parse("drain G@@s 10.0.0.1:80 --wait --deadline 1m30s", &c, why), 0);
	assert_int_equal(c.n_arguments, 2);
	assert_string_equal(c.argument[0], "G@@s");
	assert_string_equal(c.argument[1], "10.0.0.1:80");
	assert_true(c.wait);
	assert_int_equal(c.deadline_ns, 90000000000ULL);
	assert_int_equal(parse("flows --client 10.0.0.9 --backend 10.0.0.1:80", &c, why), 0);
	assert_string_equal(c.client, "10.0.0.9");
	assert_string_equal(c.backend, "10.0.0.1:80");
	assert_int_equal(parse("table -- --json", &c, why), 0); /* behind -- nothing is an option */
	assert_string_equal(c.argument[0], "--json");
	assert_false(c.json);
}

static void bad_usage_is_refused_with_what_is_wrong(void **state)
{
	static const struct {
		const char *line, *why;
	} rows[] = {
		{"frobnicate", "no command frobnicate"},
		{"trace", "trace: not in this version"},
		{"events", "events: not in this version"},
		{"top", "top: not in this version"},
		{"table", "needs SERVICE"},
		{"drain s", "needs SERVICE ADDRESS"},
		{"preflight", "needs INTERFACE"},
		{"services x", "x is too much"},
		{"backends a b", "b is too much"},
		{"drain a 1.2.3.4:5 c", "c is too much"},
		{"--frob", "unknown option --frob"},
		{"-x", "unknown option -x"},
		{"services --wait", "--wait is no option of it"},
		{"--limit 5 services", "--limit is no option of it"},
		{"evict s 1.2.3.4:5 --wait", "--wait is no option of it"},
		{"--pin-dir", "--pin-dir needs a value"},
		{"status --pin-dir=", "--pin-dir needs a value"},
		{"--json=yes", "--json takes no value"},
		{"flows --limit", "--limit needs a value"},
		{"flows --limit 0", "not a whole number"},
		{"flows --limit -1", "not a whole number"},
		{"flows --limit 1x", "not a whole number"},
		{"flows --limit 99999999999999999999", "not a whole number"},
		{"flows --client nobody", "not an address"},
		{"flows --backend 1.2.3.4:99999", "not an address"},
		{"drain s 1.2.3.4:5 --wait --deadline soon", "not a duration"},
		{"drain s 1.2.3.4:5 --deadline 3s", "--wait"},
	};
	struct cli c;
	char why[256];

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		if (parse(rows[i].line, &c, why) != -EINVAL || !strstr(why, rows[i].why))
			fail_msg("%s: %s", rows[i].line, why);
		assert_null(strchr(why, '\n'));
	}
}

static void json_holds_for_an_error_wherever_it_stands(void **state)
{
	struct cli c;
	char why[256];

	(void)state;
	assert_int_equal(parse("nonsense --json", &c, why), -EINVAL);
	assert_true(c.json);
	assert_int_equal(parse("--limit 0 flows --json", &c, why), -EINVAL);
	assert_true(c.json);
}

static void help_of_a_command_needs_none_of_its_arguments(void **state)
{
	struct cli c;
	char why[256], line[64];

	(void)state;
	for (const struct command *k = command_table; k->name; k++) {
		(void)snprintf(line, sizeof line, "%s --help", k->name);
		assert_int_equal(parse(line, &c, why), 0);
		assert_true(c.help);
		assert_ptr_equal(c.command, k);
	}
}

/* The whole of a file of the source tree. Owned. */
static char *slurp(const char *path)
{
	_cleanup_fclose_ FILE *f = fopen(path, "r");
	char *text = calloc(1, 65536);

	assert_non_null(f);
	assert_non_null(text);
	assert_true(fread(text, 1, 65535, f) > 0);
	return text;
}

static void the_man_page_and_the_completion_know_every_command_and_option(void **state)
{
	_cleanup_free_ char *man = slurp(TEST_DATA "/../../../userspace/cli/steelyard.8");
	_cleanup_free_ char *completion = slurp(TEST_DATA "/../../../tools/completion.bash");
	char word[64];

	(void)state;
	for (const struct command *k = command_table; k->name; k++) {
		(void)snprintf(word, sizeof word, "\n.B %s", k->name);
		if (!strstr(man, word) || !strstr(completion, k->name))
			fail_msg("%s", k->name);
	}
	for (size_t o = 0; o < CLI_N_OPTIONS; o++) {
		size_t used = 0;

		/* dashes are written \- in a man page */
		for (const char *s = args_options[o].name; *s; s++)
			used += (size_t)snprintf(word + used, sizeof word - used, "%s%c", *s == '-' ? "\\" : "", *s);
		if (!strstr(man, word) || !strstr(completion, args_options[o].name))
			fail_msg("%s", args_options[o].name);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_command_it_is_status),
		cmocka_unit_test(options_stand_before_or_after_the_command),
		cmocka_unit_test(arguments_and_their_options_are_kept),
		cmocka_unit_test(bad_usage_is_refused_with_what_is_wrong),
		cmocka_unit_test(json_holds_for_an_error_wherever_it_stands),
		cmocka_unit_test(help_of_a_command_needs_none_of_its_arguments),
		cmocka_unit_test(the_man_page_and_the_completion_know_every_command_and_option),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
