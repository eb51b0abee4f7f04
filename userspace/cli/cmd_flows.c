// SPDX-License-Identifier: MIT
#include "../base/json.h"
#include "cmd.h"
#include "field.h"
#include "units.h"

static const struct print_column columns[] = {
	{"CLIENT", PRINT_SHRINKS}, {"LISTEN", PRINT_SHRINKS}, {"BACKEND", PRINT_SHRINKS},
	{"SNAT", PRINT_SPARE},	   {"STATE", PRINT_LEFT},     {"IDLE", PRINT_RIGHT},
};

int cmd_flows_print(const struct cli *c, const cJSON *flows)
{
	bool filtered = c->service || c->backend || c->client;
	uint64_t n = (uint64_t)cJSON_GetArraySize(flows);
	char count[UNITS_LEN];
	struct print_table *t;
	const cJSON *f;
	int r;

	if (!n) {
		print_text(&c->print, PRINT_PLAIN, "%s\n", filtered ? "No flow is like that." : "There are no flows.");
		return CLI_DONE;
	}
	t = print_table_new(columns, sizeof columns / sizeof *columns);
	if (!t)
		return cli_table(c, NULL);
	cJSON_ArrayForEach(f, flows) {
		field_cell_text(t, PRINT_PLAIN, f, "client");
		field_cell_text(t, PRINT_PLAIN, f, "listen");
		field_cell_text(t, PRINT_PLAIN, f, "backend");
		field_cell_text(t, PRINT_PLAIN, f, "snat");
		field_cell_text(t, PRINT_PLAIN, f, "state");
		field_cell_seconds(t, f, "idle_s");
	}
	r = cli_table(c, t);
	if (!r)
		print_text(&c->print, PRINT_DIM, "%s %s%s\n", units_count(count, n), n == 1 ? "flow" : "flows",
			   n == c->limit ? ", as many as --limit lets through" : "");
	return r;
}

int cmd_flows(struct cli *c)
{
	_cleanup_inspect_ struct inspect *i = cli_inspect(c);
	struct inspect_flow_filter filter = {
		.service = -1, .backend = c->backend, .client = c->client, .limit = c->limit};
	_cleanup_json_ cJSON *flows = NULL;
	uint32_t id;

	if (!i)
		return CLI_FAILED;
	if (c->service) {
		if (cli_service(c, i, c->service, &id))
			return CLI_FAILED;
		filter.service = id;
	}
	flows = inspect_flows(i, &filter);
	if (cli_check(c, flows, "flows"))
		return CLI_FAILED;
	return c->json ? cli_show(c, flows) : cmd_flows_print(c, flows);
}
