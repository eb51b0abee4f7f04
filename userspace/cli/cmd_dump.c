// SPDX-License-Identifier: MIT
/* Everything in one: complete from the maps alone when the agent is down. */
#include <errno.h>
#include "../base/json.h"
#include "cmd.h"
#include "field.h"
#include "sy_abi.h"

static const struct print_column map_columns[] = {
	{"MAP", PRINT_LEFT},	      {"ID", PRINT_RIGHT},   {"TYPE", PRINT_LEFT}, {"KEY", PRINT_SPARE_RIGHT},
	{"VALUE", PRINT_SPARE_RIGHT}, {"SIZE", PRINT_RIGHT}, {"USE", PRINT_RIGHT}, {"LAYOUT", PRINT_SPARE_RIGHT},
};

/* Add an owned value to dump; CLI_DONE, or CLI_FAILED having said why. */
static int add(const struct cli *c, cJSON *dump, const char *key, cJSON *value)
{
	if (cli_check(c, value, key))
		return CLI_FAILED;
	if (cJSON_AddItemToObject(dump, key, value))
		return CLI_DONE;
	cJSON_Delete(value);
	return cli_fail(c, "out of memory");
}

/* The table of each service, by id: finding each by its name would be quadratic. NULL with errno. */
static cJSON *tables(struct inspect *i)
{
	_cleanup_json_ cJSON *list = cJSON_CreateArray();

	for (uint32_t id = 0; id < SY_MAX_SERVICES; id++) {
		cJSON *table = inspect_table(i, id);

		if (!table && errno == ENOENT)
			continue;
		if (!table || !cJSON_AddItemToArray(list, table))
			return NULL;
	}
	return TAKE_PTR(list);
}

static int collect(const struct cli *c, struct inspect *i, cJSON *dump)
{
	const struct inspect_flow_filter all = {.service = -1};
	cJSON *status = NULL;

	if (cmd_status_get(c, i, &status) || add(c, dump, "status", status) ||
	    add(c, dump, "services", inspect_services(i)) || add(c, dump, "backends", inspect_backends(i, -1)) ||
	    add(c, dump, "tables", tables(i)) || add(c, dump, "flows", inspect_flows(i, &all)) ||
	    add(c, dump, "stats", inspect_stats(i)))
		return CLI_FAILED;
	return c->maps ? add(c, dump, "maps", inspect_maps(i)) : CLI_DONE;
}

int cmd_maps_print(const struct cli *c, const cJSON *maps)
{
	struct print_table *t = print_table_new(map_columns, sizeof map_columns / sizeof *map_columns);
	const cJSON *m;
	int r;

	if (!t)
		return cli_table(c, NULL);
	cJSON_ArrayForEach(m, maps) {
		field_cell_text(t, PRINT_PLAIN, m, "name");
		field_cell_id(t, m, "id");
		field_cell_text(t, PRINT_PLAIN, m, "type");
		field_cell_bytes(t, m, "key_bytes");
		field_cell_bytes(t, m, "value_bytes");
		field_cell_count(t, m, "size");
		field_cell_count(t, m, "use");
		field_cell_count(t, m, "layout");
	}
	r = cli_table(c, t);
	if (!r)
		print_text(&c->print, PRINT_DIM, "SIZE and USE are in entries; --json prints those, decoded.\n");
	return r;
}

static void heading(const struct cli *c, const char *text)
{
	print_text(&c->print, PRINT_STRONG, "\n== %s ==\n", text);
}

static int print_dump(const struct cli *c, const cJSON *dump)
{
	const cJSON *table;

	print_text(&c->print, PRINT_STRONG, "== status ==\n");
	if (cmd_status_print(c, cJSON_GetObjectItemCaseSensitive(dump, "status")))
		return CLI_FAILED;
	heading(c, "services");
	if (cmd_services_print(c, cJSON_GetObjectItemCaseSensitive(dump, "services")))
		return CLI_FAILED;
	heading(c, "backends");
	if (cmd_backends_print(c, cJSON_GetObjectItemCaseSensitive(dump, "backends"), false))
		return CLI_FAILED;
	cJSON_ArrayForEach(table, cJSON_GetObjectItemCaseSensitive(dump, "tables")) {
		heading(c, "table");
		if (cmd_table_print(c, table))
			return CLI_FAILED;
	}
	heading(c, "flows");
	if (cmd_flows_print(c, cJSON_GetObjectItemCaseSensitive(dump, "flows")))
		return CLI_FAILED;
	heading(c, "stats");
	if (cmd_stats_print(c, cJSON_GetObjectItemCaseSensitive(dump, "stats")))
		return CLI_FAILED;
	if (!c->maps)
		return CLI_DONE;
	heading(c, "maps");
	return cmd_maps_print(c, cJSON_GetObjectItemCaseSensitive(dump, "maps"));
}

int cmd_dump(struct cli *c)
{
	_cleanup_inspect_ struct inspect *i = cli_inspect(c);
	_cleanup_json_ cJSON *dump = cJSON_CreateObject();

	if (!i)
		return CLI_FAILED;
	if (!dump)
		return cli_fail(c, "out of memory");
	if (collect(c, i, dump))
		return CLI_FAILED;
	return c->json ? cli_show(c, dump) : print_dump(c, dump);
}
