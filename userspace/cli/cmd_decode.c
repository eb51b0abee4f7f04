// SPDX-License-Identifier: MIT
#include <errno.h>
#include <string.h>
#include "../base/json.h"
#include "cmd.h"
#include "decode.h"
#include "field.h"

static const struct print_column list_columns[] = {
	{"NUMBER", PRINT_RIGHT},
	{"NAME", PRINT_LEFT},
	{"DOES", PRINT_LEFT},
	{"MEANS", PRINT_SHRINKS},
};
static const struct print_column word_columns[] = {
	{"READ AS", PRINT_LEFT},
	{"FIELD", PRINT_LEFT},
	{"VALUE", PRINT_LEFT},
};

static int print_list(const struct cli *c, const cJSON *entries)
{
	struct print_table *t = print_table_new(list_columns, sizeof list_columns / sizeof *list_columns);
	const cJSON *e;

	if (!t)
		return cli_table(c, NULL);
	cJSON_ArrayForEach(e, entries) {
		field_cell_count(t, e, "number");
		field_cell_text(t, PRINT_STRONG, e, "name");
		field_cell_text(t, PRINT_PLAIN, e, "does");
		field_cell_text(t, PRINT_PLAIN, e, "text");
	}
	return cli_table(c, t);
}

static int print_words(const struct cli *c, const cJSON *readings)
{
	struct print_table *t = print_table_new(word_columns, sizeof word_columns / sizeof *word_columns);
	const cJSON *reading, *field;

	if (!t)
		return cli_table(c, NULL);
	cJSON_ArrayForEach(reading, readings) {
		cJSON_ArrayForEach(field, reading) {
			_cleanup_free_ char *text = cJSON_PrintUnformatted(field);

			print_cell(t, PRINT_STRONG, "%s", field == reading->child ? reading->string : "");
			print_cell(t, PRINT_PLAIN, "%s", field->string);
			if (cJSON_IsString(field))
				print_cell(t, PRINT_PLAIN, "%s", *field->valuestring ? field->valuestring : "(none)");
			else
				print_cell(t, PRINT_PLAIN, "%s", text ? text : "");
		}
	}
	return cli_table(c, t);
}

int cmd_decode(struct cli *c)
{
	_cleanup_json_ cJSON *json = NULL, *one = NULL;
	char why[256];
	int r = decode_value(c->argument[0], c->n_arguments > 1 ? c->argument[1] : NULL, &json, why, sizeof why);

	if (r == -EINVAL)
		return cli_usage(c, "%s", why);
	if (r)
		return cli_fail(c, "%s", *why ? why : strerror(-r));
	if (c->json)
		return cli_show(c, json);
	if (cJSON_IsArray(json))
		return print_list(c, json);
	if (!cJSON_HasObjectItem(json, "kind"))
		return print_words(c, json);
	one = cJSON_CreateArray();
	if (!one || !cJSON_AddItemToArray(one, TAKE_PTR(json)))
		return cli_fail(c, "out of memory");
	return print_list(c, one);
}
