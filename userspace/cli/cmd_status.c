// SPDX-License-Identifier: MIT
#include <errno.h>
#include <string.h>
#include "../base/json.h"
#include "../control/control.h"
#include "cmd.h"
#include "field.h"
#include "units.h"

static const struct print_column interface_columns[] = {
	{"INTERFACE", PRINT_LEFT},
	{"ATTACHED", PRINT_LEFT},
	{"PROGRAMS", PRINT_SHRINKS},
};
static const struct print_column registry_columns[] = {
	{"REGISTRY", PRINT_SHRINKS}, {"KIND", PRINT_LEFT},	{"STATE", PRINT_LEFT},
	{"SERVER", PRINT_SHRINKS},   {"SERVICES", PRINT_RIGHT}, {"FOR", PRINT_RIGHT},
};

/* What the pinned maps and links say. Nothing pinned: i is NULL, and all is empty. */
static cJSON *status_down(const struct cli *c, struct inspect *i)
{
	_cleanup_json_ cJSON *status = cJSON_CreateObject();
	cJSON *interfaces, *flows;

	if (!status || !cJSON_AddStringToObject(status, "version", SY_VERSION) ||
	    !cJSON_AddStringToObject(status, "agent", "down") || !cJSON_AddBoolToObject(status, "loaded", i != NULL))
		return NULL;
	interfaces = i ? inspect_interfaces(c->pin_dir) : NULL;
	if (!interfaces)
		interfaces = cJSON_CreateArray();
	if (!cJSON_AddItemToObject(status, "interfaces", interfaces) || !cJSON_AddArrayToObject(status, "registries") ||
	    !cJSON_AddObjectToObject(status, "features"))
		return NULL;
	flows = i ? inspect_flow_counts(i) : NULL;
	if (flows)
		return cJSON_AddItemToObject(status, "flows", flows) ? TAKE_PTR(status) : NULL;
	flows = cJSON_AddObjectToObject(status, "flows");
	if (!flows || !cJSON_AddNumberToObject(flows, "established", 0) ||
	    !cJSON_AddNumberToObject(flows, "half_open", 0) || !cJSON_AddNumberToObject(flows, "capacity", 0))
		return NULL;
	return TAKE_PTR(status);
}

int cmd_status_get(const struct cli *c, struct inspect *i, cJSON **ret)
{
	_cleanup_json_ cJSON *answer = NULL;
	_cleanup_inspect_ struct inspect *own = NULL;
	int code = 0, r = control_call(c->control, "GET", "/api/status", NULL, &answer, &code);
	char why[512] = "";

	if (r == 0 && code == 200) {
		*ret = TAKE_PTR(answer);
		return CLI_DONE;
	}
	if (r == -EACCES || r == -EPERM)
		return cli_fail(c, "not permitted to use %s: run as root", c->control);
	if (r != -ECONNREFUSED && r != -ENOENT)
		return cli_fail(c, "asking the agent at %s: %s", c->control,
				r ? strerror(-r) : field_text(answer, "error"));
	if (!i) {
		i = own = inspect_open(c->pin_dir, why, sizeof why);
		if (!i && errno != ENOENT)
			return cli_fail(c, "the agent is down, and the pinned maps cannot be read: %s",
					errno == EPERM || errno == EACCES ? "run as root" : why);
	}
	*ret = status_down(c, i);
	return *ret ? CLI_DONE : cli_fail(c, "out of memory");
}

static void print_agent(const struct cli *c, const cJSON *status)
{
	const char *agent = field_text(status, "agent");
	char up[UNITS_LEN];
	double seconds = 0;

	print_text(&c->print, PRINT_STRONG, "agent  ");
	if (strcmp(agent, "down") == 0) {
		print_text(&c->print, PRINT_BAD, "down");
		print_text(&c->print, PRINT_PLAIN, ": nobody answers at %s; %s\n", c->control,
			   json_bool(status, "loaded", true) ? "the programs go on with what is pinned"
							     : "nothing is loaded: start steelyardd");
		return;
	}
	(void)field_number(status, "uptime_s", &seconds);
	print_text(&c->print, PRINT_GOOD, "up");
	print_text(&c->print, PRINT_PLAIN, " for %s, version %s\n", units_seconds(up, seconds),
		   field_text(status, "version"));
}

static void print_flows(const struct cli *c, const cJSON *flows)
{
	char a[UNITS_LEN], b[UNITS_LEN], d[UNITS_LEN], share[UNITS_LEN];
	uint64_t established = 0, half_open = 0, capacity = 0;

	(void)field_u64(cJSON_GetObjectItemCaseSensitive(flows, "established"), &established);
	(void)field_u64(cJSON_GetObjectItemCaseSensitive(flows, "half_open"), &half_open);
	(void)field_u64(cJSON_GetObjectItemCaseSensitive(flows, "capacity"), &capacity);
	print_text(&c->print, PRINT_STRONG, "flows  ");
	print_text(&c->print, PRINT_PLAIN, "%s established, %s half-open; room for %s (%s used)\n",
		   units_count(a, established), units_count(b, half_open), units_count(d, capacity),
		   units_percent(share, capacity ? (double)(established + half_open) / (double)capacity : 0));
}

/* "a, b" of the strings in a list; empty in an empty one. */
static const char *join(const cJSON *list, char *buf, size_t size)
{
	const cJSON *item;
	size_t used = 0;

	buf[0] = 0;
	cJSON_ArrayForEach(item, list) {
		int n = snprintf(buf + used, size - used, "%s%s", used ? ", " : "",
				 cJSON_IsString(item) ? item->valuestring : "");

		if (n < 0 || (size_t)n >= size - used)
			break;
		used += (size_t)n;
	}
	return buf;
}

static int print_interfaces(const struct cli *c, const cJSON *interfaces)
{
	struct print_table *t;
	const cJSON *item;
	char programs[256];

	if (!cJSON_GetArraySize(interfaces)) {
		print_text(&c->print, PRINT_WARN, "No interface has our programs.\n");
		return CLI_DONE;
	}
	t = print_table_new(interface_columns, sizeof interface_columns / sizeof *interface_columns);
	if (!t)
		return cli_table(c, NULL);
	cJSON_ArrayForEach(item, interfaces) {
		field_cell_text(t, PRINT_PLAIN, item, "name");
		field_cell_text(t, PRINT_PLAIN, item, "attach");
		print_cell(t, PRINT_PLAIN, "%s",
			   join(cJSON_GetObjectItemCaseSensitive(item, "programs"), programs, sizeof programs));
	}
	return cli_table(c, t);
}

static int print_registries(const struct cli *c, const cJSON *registries)
{
	struct print_table *t;
	const cJSON *item;

	if (!cJSON_GetArraySize(registries))
		return CLI_DONE;
	t = print_table_new(registry_columns, sizeof registry_columns / sizeof *registry_columns);
	if (!t)
		return cli_table(c, NULL);
	(void)fputc('\n', c->print.out);
	cJSON_ArrayForEach(item, registries) {
		const char *state = field_text(item, "state");

		field_cell_text(t, PRINT_PLAIN, item, "name");
		field_cell_text(t, PRINT_PLAIN, item, "kind");
		field_cell_text(t, strcmp(state, "live") == 0 ? PRINT_GOOD : PRINT_WARN, item, "state");
		field_cell_text(t, PRINT_PLAIN, item, "server");
		field_cell_count(t, item, "services");
		field_cell_seconds(t, item, "since_s");
	}
	return cli_table(c, t);
}

/* "name: value" of each plain field. */
static void print_features(const struct cli *c, const cJSON *features)
{
	const cJSON *f;

	if (!cJSON_IsObject(features) || !features->child)
		return;
	print_text(&c->print, PRINT_STRONG, "\nfeatures");
	cJSON_ArrayForEach(f, features) {
		_cleanup_free_ char *text = cJSON_IsString(f) ? strdup(f->valuestring)
					    : cJSON_IsBool(f) ? strdup(cJSON_IsTrue(f) ? "yes" : "no")
							      : cJSON_PrintUnformatted(f);

		print_text(&c->print, PRINT_PLAIN, "  %s: %s", f->string, text ? text : "");
	}
	(void)fputc('\n', c->print.out);
}

static void print_warnings(const struct cli *c, const cJSON *warnings)
{
	const cJSON *w;

	if (cJSON_GetArraySize(warnings))
		(void)fputc('\n', c->print.out);
	cJSON_ArrayForEach(w, warnings)
		if (cJSON_IsString(w))
			print_text(&c->print, PRINT_WARN, "warning: %s\n", w->valuestring);
}

int cmd_status_print(const struct cli *c, const cJSON *status)
{
	print_agent(c, status);
	if (!json_bool(status, "loaded", true))
		return CLI_DONE;
	print_flows(c, cJSON_GetObjectItemCaseSensitive(status, "flows"));
	(void)fputc('\n', c->print.out);
	if (print_interfaces(c, cJSON_GetObjectItemCaseSensitive(status, "interfaces")) ||
	    print_registries(c, cJSON_GetObjectItemCaseSensitive(status, "registries")))
		return CLI_FAILED;
	print_features(c, cJSON_GetObjectItemCaseSensitive(status, "features"));
	print_warnings(c, cJSON_GetObjectItemCaseSensitive(status, "warnings"));
	return CLI_DONE;
}

int cmd_status(struct cli *c)
{
	_cleanup_json_ cJSON *status = NULL;

	if (cmd_status_get(c, NULL, &status))
		return CLI_FAILED;
	return c->json ? cli_show(c, status) : cmd_status_print(c, status);
}
