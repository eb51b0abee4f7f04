// SPDX-License-Identifier: MIT
#include "../base/json.h"
#include "cmd.h"
#include "field.h"
#include "units.h"

static const struct print_column columns[] = {
	{"SERVICE", PRINT_SHRINKS},	   {"LISTEN", PRINT_SHRINKS},	   {"MODE", PRINT_SPARE},
	{"ALGORITHM", PRINT_SPARE},	   {"ELIGIBLE", PRINT_RIGHT},	   {"CONNECTIONS", PRINT_RIGHT},
	{"ACTIVE", PRINT_RIGHT},	   {"PACKETS", PRINT_SPARE_RIGHT}, {"BYTES", PRINT_RIGHT},
	{"GENERATION", PRINT_SPARE_RIGHT}, {"SOURCE", PRINT_SPARE},	   {"AGE", PRINT_SPARE_RIGHT},
	{"APPLIED IN", PRINT_SPARE_RIGHT},
};

/* "ADDR:PORT/tcp, …" */
static void cell_listen(struct print_table *t, const cJSON *listen)
{
	const cJSON *item;
	char text[256] = "";
	size_t used = 0;

	cJSON_ArrayForEach(item, listen) {
		int n = snprintf(text + used, sizeof text - used, "%s%s", used ? ", " : "",
				 cJSON_IsString(item) ? item->valuestring : "");

		if (n < 0 || (size_t)n >= sizeof text - used)
			break;
		used += (size_t)n;
	}
	print_cell(t, PRINT_PLAIN, "%s", text);
}

/* "2 of 3": how many of the listed backends may be picked. */
static void cell_eligible(struct print_table *t, const cJSON *service)
{
	char e[UNITS_LEN], b[UNITS_LEN];
	uint64_t eligible = 0, backends = 0;

	(void)field_u64(cJSON_GetObjectItemCaseSensitive(service, "eligible"), &eligible);
	(void)field_u64(cJSON_GetObjectItemCaseSensitive(service, "backends"), &backends);
	print_cell(t,
		   !eligible		 ? PRINT_BAD
		   : eligible < backends ? PRINT_WARN
					 : PRINT_GOOD,
		   "%s of %s", units_count(e, eligible), units_count(b, backends));
}

int cmd_services_print(const struct cli *c, const cJSON *services)
{
	struct print_table *t;
	const cJSON *s;

	if (!cJSON_GetArraySize(services)) {
		print_text(&c->print, PRINT_PLAIN, "No service is configured.\n");
		return CLI_DONE;
	}
	t = print_table_new(columns, sizeof columns / sizeof *columns);
	if (!t)
		return cli_table(c, NULL);
	cJSON_ArrayForEach(s, services) {
		field_cell_text(t, PRINT_PLAIN, s, "service");
		cell_listen(t, cJSON_GetObjectItemCaseSensitive(s, "listen"));
		field_cell_text(t, PRINT_PLAIN, s, "mode");
		field_cell_text(t, PRINT_PLAIN, s, "algorithm");
		cell_eligible(t, s);
		field_cell_count(t, s, "connections");
		field_cell_count(t, s, "active");
		field_cell_count(t, s, "packets");
		field_cell_bytes(t, s, "bytes");
		field_cell_count(t, s, "generation");
		field_cell_text(t, PRINT_PLAIN, s, "source");
		field_cell_seconds(t, s, "age_s");
		field_cell_microseconds(t, s, "apply_us");
	}
	return cli_table(c, t);
}

int cmd_services(struct cli *c)
{
	_cleanup_inspect_ struct inspect *i = cli_inspect(c);
	_cleanup_json_ cJSON *services = NULL;

	if (!i)
		return CLI_FAILED;
	services = inspect_services(i);
	if (cli_check(c, services, "services"))
		return CLI_FAILED;
	return c->json ? cli_show(c, services) : cmd_services_print(c, services);
}
