// SPDX-License-Identifier: MIT
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/cleanup.h"
#include "cli/print.h"
#include "cli/units.h"

static const struct print_column columns[] = {{"NAME", PRINT_SHRINKS}, {"COUNT", PRINT_RIGHT}, {"STATE", PRINT_LEFT}};

struct row {
	const char *name, *count, *state;
};

/* What a table of rows looks like. Owned. */
static char *render(const struct row *rows, size_t n, struct print p)
{
	struct print_table *t = print_table_new(columns, 3);
	char *text = NULL;
	size_t size;

	assert_non_null(t);
	p.out = open_memstream(&text, &size);
	assert_non_null(p.out);
	for (size_t i = 0; i < n; i++) {
		print_cell(t, PRINT_PLAIN, "%s", rows[i].name);
		print_cell(t, PRINT_PLAIN, "%s", rows[i].count);
		print_cell(t, PRINT_GOOD, "%s", rows[i].state);
	}
	assert_int_equal(print_table_write(t, &p), 0);
	assert_int_equal(fclose(p.out), 0);
	print_table_free(t);
	return text;
}

static void columns_are_as_wide_as_their_widest_cell_and_numbers_stand_right(void **state)
{
	const struct row rows[] = {{"a", "1", "up"}, {"longer", "12,345", "evicted"}};
	_cleanup_free_ char *text = render(rows, 2, (struct print){0});

	(void)state;
	assert_string_equal(text, "NAME     COUNT  STATE\n"
				  "a            1  up\n"
				  "longer  12,345  evicted\n");
}

static void no_line_ends_in_blanks(void **state)
{
	const struct row rows[] = {{"a", "", ""}, {"", "2", ""}, {"", "", ""}};
	_cleanup_free_ char *text = render(rows, 3, (struct print){0});

	(void)state;
	assert_string_equal(text, "NAME  COUNT  STATE\n"
				  "a\n"
				  "          2\n"
				  "\n");
}

static void a_table_too_wide_for_the_terminal_shortens_what_may_shrink(void **state)
{
	const struct row rows[] = {{"a-name-of-thirty-characters-xx", "7", "up"}};
	_cleanup_free_ char *narrow = render(rows, 1, (struct print){.width = 34, .utf8 = true});
	_cleanup_free_ char *ascii = render(rows, 1, (struct print){.width = 34});
	_cleanup_free_ char *tiny = render(rows, 1, (struct print){.width = 5, .utf8 = true});
	_cleanup_free_ char *wide = render(rows, 1, (struct print){.width = 80, .utf8 = true});

	(void)state;
	assert_string_equal(narrow, "NAME                  COUNT  STATE\n"
				    "a-name-of…racters-xx      7  up\n");
	assert_string_equal(ascii, "NAME                  COUNT  STATE\n"
				   "a-name-of..acters-xx      7  up\n");
	/* never below the least width, even if lines then wrap */
	assert_string_equal(tiny, "NAME          COUNT  STATE\n"
				  "a-nam…ers-xx      7  up\n");
	assert_non_null(strstr(wide, "a-name-of-thirty-characters-xx"));
}

static void spare_columns_go_before_anything_is_shortened(void **state)
{
	static const struct print_column spare[] = {
		{"NAME", PRINT_SHRINKS}, {"A", PRINT_SPARE}, {"B", PRINT_SPARE_RIGHT}, {"C", PRINT_RIGHT}};
	struct print_table *t = print_table_new(spare, 4);
	struct print p = {.width = 26};
	_cleanup_free_ char *text = NULL;
	size_t size;

	(void)state;
	assert_non_null(t);
	p.out = open_memstream(&text, &size);
	assert_non_null(p.out);
	print_cell(t, PRINT_PLAIN, "%s", "fifteen-letters");
	print_cell(t, PRINT_PLAIN, "%s", "aa");
	print_cell(t, PRINT_PLAIN, "%s", "222");
	print_cell(t, PRINT_PLAIN, "%s", "3");
	assert_int_equal(print_table_write(t, &p), 0);
	print_table_free(t);
	assert_int_equal(fclose(p.out), 0);
	assert_string_equal(text, "NAME             A   C\n"
				  "fifteen-letters  aa  3\n"
				  "(1 more column in a wider window)\n");
}

static void nothing_is_shortened_without_a_terminal(void **state)
{
	char name[301];
	const struct row rows[] = {{name, "7", "up"}};
	_cleanup_free_ char *text = NULL;

	(void)state;
	memset(name, 'x', 300);
	name[300] = 0;
	text = render(rows, 1, (struct print){0});
	assert_non_null(strstr(text, name));
}

static void width_counts_characters_wide_ones_twice_and_combining_ones_not(void **state)
{
	(void)state;
	assert_int_equal(print_width(""), 0);
	assert_int_equal(print_width("abc"), 3);
	assert_int_equal(print_width("größe"), 5);
	assert_int_equal(print_width("订单"), 4);
	assert_int_equal(print_width("e\xcc\x81"), 1);
	assert_int_equal(print_width("\xf0\x9f\x98\x80"), 2);
	assert_int_equal(print_width("\xff\xfe"), 2);
	assert_int_equal(print_width("\xe8\xae"), 2); /* cut short by the end */
}

static void a_wide_character_is_not_cut_in_half(void **state)
{
	const struct row rows[] = {{"订单订单订单订单订单", "1", "up"}};
	_cleanup_free_ char *text = render(rows, 1, (struct print){.width = 26, .utf8 = true});

	(void)state;
	/* 12 columns: two characters, the ellipsis, three, and one blank that is left over */
	assert_non_null(strstr(text, "订单…单订单       1  up\n"));
}

static void control_characters_never_reach_the_terminal(void **state)
{
	/* escape, a C1 control, a right-to-left override, a newline, a byte that is no UTF-8 */
	const struct row rows[] = {{"a\033[2Jb", "\xc2\x9b", "x\xe2\x80\xaey\nz\xff"}};
	_cleanup_free_ char *text = render(rows, 1, (struct print){.utf8 = true});

	(void)state;
	assert_string_equal(text, "NAME    COUNT  STATE\n"
				  "a?[2Jb      ?  x?y?z?\n");
}

static void styles_are_written_only_in_color_and_do_not_count_as_width(void **state)
{
	const struct row rows[] = {{"a", "1", "up"}};
	_cleanup_free_ char *text = render(rows, 1, (struct print){.color = true});

	(void)state;
	assert_string_equal(text, "\033[1mNAME\033[0m  \033[1mCOUNT\033[0m  \033[1mSTATE\033[0m\n"
				  "a         1  \033[32mup\033[0m\n");
}

static void what_is_no_terminal_gets_no_color_and_no_width(void **state)
{
	_cleanup_fclose_ FILE *f = tmpfile();
	struct print p;

	(void)state;
	assert_non_null(f);
	print_open(&p, f);
	assert_false(p.color);
	assert_int_equal(p.width, 0);
}

static void a_bar_is_as_long_as_its_part(void **state)
{
	char buf[PRINT_BAR_SIZE(10)];

	(void)state;
	assert_string_equal(print_bar(buf, sizeof buf, 0, 10, false), "");
	assert_string_equal(print_bar(buf, sizeof buf, 0.3, 10, false), "###");
	assert_string_equal(print_bar(buf, sizeof buf, 1, 10, false), "##########");
	assert_string_equal(print_bar(buf, sizeof buf, 7, 10, false), "##########");
	assert_string_equal(print_bar(buf, sizeof buf, -1, 10, false), "");
	assert_string_equal(print_bar(buf, sizeof buf, 1e-9, 10, false), "#");
	assert_string_equal(print_bar(buf, sizeof buf, 1e-9, 10, true), "▏");
	assert_string_equal(print_bar(buf, sizeof buf, 0.35, 10, true), "███▌");
	assert_string_equal(print_bar(buf, sizeof buf, 1, 10, true), "██████████");
	assert_string_equal(print_bar(buf, sizeof buf, (double)NAN, 10, true), "");
}

static void numbers_are_grouped_scaled_and_given_a_unit(void **state)
{
	char b[UNITS_LEN];

	(void)state;
	assert_string_equal(units_count(b, 0), "0");
	assert_string_equal(units_count(b, 999), "999");
	assert_string_equal(units_count(b, 1000), "1,000");
	assert_string_equal(units_count(b, UINT64_MAX), "18,446,744,073,709,551,615");
	assert_string_equal(units_bytes(b, 0), "0 B");
	assert_string_equal(units_bytes(b, 999), "999 B");
	assert_string_equal(units_bytes(b, 1000), "1.00 kB");
	assert_string_equal(units_bytes(b, 123456), "123 kB");
	assert_string_equal(units_bytes(b, 999499), "999 kB");
	assert_string_equal(units_bytes(b, 999501), "1.00 MB");
	assert_string_equal(units_bytes(b, UINT64_MAX), "18.4 EB");
	assert_string_equal(units_percent(b, 0), "0.00 %");
	assert_string_equal(units_percent(b, 0.1), "10.00 %");
	assert_string_equal(units_percent(b, 1), "100.00 %");
	assert_string_equal(units_percent(b, 0.00001), "1.0e-03 %");
	assert_string_equal(units_seconds(b, 0), "0 s");
	assert_string_equal(units_seconds(b, 0.42), "0.4 s");
	assert_string_equal(units_seconds(b, 59.9), "59 s");
	assert_string_equal(units_seconds(b, 185), "3m 5s");
	assert_string_equal(units_seconds(b, 7440), "2h 4m");
	assert_string_equal(units_seconds(b, 273600), "3d 4h");
	assert_string_equal(units_seconds(b, -5), "0 s");
	assert_string_equal(units_microseconds(b, 38.4), "38 us");
	assert_string_equal(units_microseconds(b, 999.6), "1.0 ms");
	assert_string_equal(units_microseconds(b, 2500000), "2.5 s");
	assert_string_equal(units_weight(b, 7), "7");
	assert_string_equal(units_weight(b, 0.5), "0.5");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(columns_are_as_wide_as_their_widest_cell_and_numbers_stand_right),
		cmocka_unit_test(no_line_ends_in_blanks),
		cmocka_unit_test(a_table_too_wide_for_the_terminal_shortens_what_may_shrink),
		cmocka_unit_test(spare_columns_go_before_anything_is_shortened),
		cmocka_unit_test(nothing_is_shortened_without_a_terminal),
		cmocka_unit_test(width_counts_characters_wide_ones_twice_and_combining_ones_not),
		cmocka_unit_test(a_wide_character_is_not_cut_in_half),
		cmocka_unit_test(control_characters_never_reach_the_terminal),
		cmocka_unit_test(styles_are_written_only_in_color_and_do_not_count_as_width),
		cmocka_unit_test(what_is_no_terminal_gets_no_color_and_no_width),
		cmocka_unit_test(a_bar_is_as_long_as_its_part),
		cmocka_unit_test(numbers_are_grouped_scaled_and_given_a_unit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
