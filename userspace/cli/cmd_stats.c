// SPDX-License-Identifier: MIT
#include <string.h>
#include "../base/json.h"
#include "cmd.h"
#include "field.h"
#include "sy_counter.h"
#include "sy_verdict.h"
#include "units.h"

static const struct print_column verdict_columns[] = {
	{"VERDICT", PRINT_LEFT},
	{"PACKETS", PRINT_RIGHT},
	{"", PRINT_SHRINKS},
};
static const struct print_column counter_columns[] = {
	{"COUNTER", PRINT_LEFT},
	{"COUNT", PRINT_RIGHT},
	{"", PRINT_SHRINKS},
};

struct meaning {
	const char *name, *text;
};
static const struct meaning verdicts[] = {
#define X(NAME, name, kind, text) {name, text},
	SY_VERDICTS(X)
#undef X
		{NULL, NULL}};
static const struct meaning counters[] = {
#define X(NAME, name, text) {name, text},
	SY_COUNTERS(X)
#undef X
		{NULL, NULL}};

static const char *meaning_find(const struct meaning *list, const char *name)
{
	for (; list->name; list++)
		if (strcmp(list->name, name) == 0)
			return list->text;
	return "";
}

/* A line for each number of the object; those that are 0 only when all are asked for. */
static int print_group(const struct cli *c, const cJSON *group, const struct print_column *columns,
		       const struct meaning *meanings)
{
	struct print_table *t = print_table_new(columns, 3);
	char buf[UNITS_LEN];
	unsigned n_zero = 0;
	const cJSON *item;
	int r;

	if (!t)
		return cli_table(c, NULL);
	cJSON_ArrayForEach(item, group) {
		uint64_t n;

		if (!item->string || !field_u64(item, &n))
			continue;
		if (!n && !c->all) {
			n_zero++;
			continue;
		}
		print_cell(t, PRINT_PLAIN, "%s", item->string);
		print_cell(t, PRINT_PLAIN, "%s", units_count(buf, n));
		print_cell(t, PRINT_DIM, "%s", meaning_find(meanings, item->string));
	}
	r = cli_table(c, t);
	if (!r && n_zero)
		print_text(&c->print, PRINT_DIM, "(%u more at 0: --all)\n", n_zero);
	return r;
}

/* Verdicts, then whatever other groups of numbers there are, then numbers of their own. */
int cmd_stats_print(const struct cli *c, const cJSON *stats)
{
	const cJSON *group;

	if (print_group(c, cJSON_GetObjectItemCaseSensitive(stats, "verdicts"), verdict_columns, verdicts))
		return CLI_FAILED;
	cJSON_ArrayForEach(group, stats) {
		if (!cJSON_IsObject(group) || strcmp(group->string, "verdicts") == 0)
			continue;
		(void)fputc('\n', c->print.out);
		if (print_group(c, group, counter_columns, counters))
			return CLI_FAILED;
	}
	cJSON_ArrayForEach(group, stats)
		if (!cJSON_IsObject(group)) {
			(void)fputc('\n', c->print.out);
			return print_group(c, stats, counter_columns, counters);
		}
	return CLI_DONE;
}

int cmd_stats(struct cli *c)
{
	_cleanup_inspect_ struct inspect *i = cli_inspect(c);
	_cleanup_json_ cJSON *stats = NULL;

	if (!i)
		return CLI_FAILED;
	stats = inspect_stats(i);
	if (cli_check(c, stats, "counters"))
		return CLI_FAILED;
	return c->json ? cli_show(c, stats) : cmd_stats_print(c, stats);
}
