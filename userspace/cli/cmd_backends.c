// SPDX-License-Identifier: MIT
#include <string.h>
#include "../base/json.h"
#include "cmd.h"
#include "field.h"
#include "sy_reason.h"

static const struct print_column columns[] = {
	{"SERVICE", PRINT_SHRINKS},   {"ADDRESS", PRINT_LEFT},
	{"WEIGHT", PRINT_RIGHT},      {"SHARE", PRINT_RIGHT},
	{"STATE", PRINT_LEFT},	      {"REASON", PRINT_LEFT},
	{"CLUSTER", PRINT_SPARE},     {"CONNECTIONS", PRINT_SPARE_RIGHT},
	{"ACTIVE", PRINT_RIGHT},      {"PACKETS", PRINT_SPARE_RIGHT},
	{"BYTES", PRINT_SPARE_RIGHT}, {"REFUSED", PRINT_SPARE_RIGHT},
};

static const struct {
	const char *name, *text;
} reasons[] = {
#define X(NAME, name, text) {name, text},
	SY_REASONS(X)
#undef X
};

static enum print_style state_style(const char *state)
{
	switch (*state) {
	case 'u':
		return PRINT_GOOD;
	case 'd':
		return PRINT_WARN;
	case 'e':
		return PRINT_BAD;
	}
	return PRINT_PLAIN;
}

/* What the reasons that occur mean, in the order of their list. */
static void print_reasons(const struct cli *c, const cJSON *backends)
{
	for (size_t r = 0; r < sizeof reasons / sizeof *reasons; r++) {
		const cJSON *b;

		if (!*reasons[r].name)
			continue;
		cJSON_ArrayForEach(b, backends)
			if (strcmp(field_text(b, "reason"), reasons[r].name) == 0)
				break;
		if (b)
			print_text(&c->print, PRINT_DIM, "%s: %s\n", reasons[r].name, reasons[r].text);
	}
}

int cmd_backends_print(const struct cli *c, const cJSON *backends, bool one_service)
{
	size_t skip = one_service ? 1 : 0;
	struct print_table *t;
	const cJSON *b;
	int r;

	if (!cJSON_GetArraySize(backends)) {
		print_text(&c->print, PRINT_PLAIN, "%s\n",
			   one_service ? "The service has no backend." : "No service has a backend.");
		return CLI_DONE;
	}
	t = print_table_new(columns + skip, sizeof columns / sizeof *columns - skip);
	if (!t)
		return cli_table(c, NULL);
	cJSON_ArrayForEach(b, backends) {
		if (!one_service)
			field_cell_text(t, PRINT_PLAIN, b, "service");
		field_cell_text(t, PRINT_PLAIN, b, "address");
		field_cell_weight(t, b, "weight");
		field_cell_percent(t, b, "share");
		field_cell_text(t, state_style(field_text(b, "state")), b, "state");
		field_cell_text(t, PRINT_PLAIN, b, "reason");
		field_cell_text(t, PRINT_PLAIN, b, "cluster");
		field_cell_count(t, b, "connections");
		field_cell_count(t, b, "active");
		field_cell_count(t, b, "packets");
		field_cell_bytes(t, b, "bytes");
		field_cell_count(t, b, "refused");
	}
	r = cli_table(c, t);
	if (!r)
		print_reasons(c, backends);
	return r;
}

int cmd_backends(struct cli *c)
{
	_cleanup_inspect_ struct inspect *i = cli_inspect(c);
	_cleanup_json_ cJSON *backends = NULL;
	bool one_service = c->n_arguments > 0;
	uint32_t id = 0;

	if (!i || (one_service && cli_service(c, i, c->argument[0], &id)))
		return CLI_FAILED;
	backends = inspect_backends(i, one_service ? (int64_t)id : -1);
	if (cli_check(c, backends, "backends"))
		return CLI_FAILED;
	return c->json ? cli_show(c, backends) : cmd_backends_print(c, backends, one_service);
}
