// SPDX-License-Identifier: MIT
#include "../base/json.h"
#include "cmd.h"
#include "field.h"
#include "units.h"

#define BAR_CELLS 30

static const struct print_column columns[] = {
	{"ADDRESS", PRINT_SHRINKS},  {"WEIGHT", PRINT_RIGHT}, {"SHARE", PRINT_RIGHT},
	{"CUMULATIVE", PRINT_RIGHT}, {"BOUND", PRINT_RIGHT},  {"", PRINT_LEFT},
};

static double share_of(const cJSON *slot)
{
	double share = 0;

	(void)field_number(slot, "share", &share);
	return share;
}

/* Bars are drawn to the largest share: in a table of a thousand members all would be empty otherwise. */
int cmd_table_print(const struct cli *c, const cJSON *table)
{
	const cJSON *slots = cJSON_GetObjectItemCaseSensitive(table, "slots"), *s;
	char bar[PRINT_BAR_SIZE(BAR_CELLS)], generation[UNITS_LEN], members[UNITS_LEN];
	struct print_table *t;
	double largest = 0;
	uint64_t n = 0;

	(void)field_u64(cJSON_GetObjectItemCaseSensitive(table, "generation"), &n);
	print_text(&c->print, PRINT_STRONG, "%s", field_text(table, "service"));
	print_text(&c->print, PRINT_PLAIN, "  generation %s, backends in the table: %s\n", units_count(generation, n),
		   units_count(members, (uint64_t)cJSON_GetArraySize(slots)));
	if (!cJSON_GetArraySize(slots)) {
		print_text(&c->print, PRINT_WARN,
			   "No backend is eligible: new connections are answered by on_empty.\n");
		return CLI_DONE;
	}
	t = print_table_new(columns, sizeof columns / sizeof *columns);
	if (!t)
		return cli_table(c, NULL);
	cJSON_ArrayForEach(s, slots)
		if (share_of(s) > largest)
			largest = share_of(s);
	cJSON_ArrayForEach(s, slots) {
		double cumulative = 0;

		(void)field_number(s, "cumulative", &cumulative);
		field_cell_text(t, PRINT_PLAIN, s, "address");
		field_cell_weight(t, s, "weight");
		field_cell_percent(t, s, "share");
		print_cell(t, PRINT_PLAIN, "%.6f", cumulative);
		field_cell_count(t, s, "bound");
		print_cell(
			t, PRINT_GOOD, "%s",
			print_bar(bar, sizeof bar, largest > 0 ? share_of(s) / largest : 0, BAR_CELLS, c->print.utf8));
	}
	return cli_table(c, t);
}

int cmd_table(struct cli *c)
{
	_cleanup_inspect_ struct inspect *i = cli_inspect(c);
	_cleanup_json_ cJSON *table = NULL;
	uint32_t id;

	if (!i || cli_service(c, i, c->argument[0], &id))
		return CLI_FAILED;
	table = inspect_table(i, id);
	if (cli_check(c, table, "the table"))
		return CLI_FAILED;
	return c->json ? cli_show(c, table) : cmd_table_print(c, table);
}
