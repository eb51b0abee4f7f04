// SPDX-License-Identifier: MIT
/* reload, detach, preflight: the agent's configuration, its programs, and what they will need. */
#include <errno.h>
#include <string.h>
#include "../base/json.h"
#include "../dataplane/load.h"
#include "../dataplane/preflight.h"
#include "cmd.h"
#include "field.h"

int cmd_reload(struct cli *c)
{
	_cleanup_json_ cJSON *answer = NULL;

	if (cli_ask(c, "POST", "/api/reload", NULL, &answer))
		return CLI_FAILED;
	if (c->json)
		return cli_show(c, answer);
	print_text(&c->print, PRINT_PLAIN, "The agent runs by its configuration as it now is.\n");
	return CLI_DONE;
}

int cmd_detach(struct cli *c)
{
	_cleanup_json_ cJSON *answer = cJSON_CreateObject();
	char why[512] = "";
	int r = load_remove(c->pin_dir, c->force, why, sizeof why);

	if (r == -ENOENT)
		return cli_fail(c, "no Steelyard is loaded at %s: nothing to detach", c->pin_dir);
	if (r == -EBUSY)
		return cli_fail(c, "an agent owns %s: stop it first, or give --force", c->pin_dir);
	if (r == -EPERM || r == -EACCES)
		return cli_fail(c, "not permitted to remove what is pinned at %s: run as root", c->pin_dir);
	if (r)
		return cli_fail(c, "%s", *why ? why : strerror(-r));
	if (!cJSON_AddBoolToObject(answer, "ok", true) || !cJSON_AddStringToObject(answer, "pin_dir", c->pin_dir))
		return cli_fail(c, "out of memory");
	if (c->json)
		return cli_show(c, answer);
	print_text(&c->print, PRINT_PLAIN, "Programs and pins of %s are removed; its flows are forgotten.\n",
		   c->pin_dir);
	return CLI_DONE;
}

static const struct print_column preflight_columns[] = {
	{"CHECK", PRINT_LEFT},
	{"", PRINT_LEFT},
	{"DETAIL", PRINT_LEFT},
};

static int print_preflight(const struct cli *c, const cJSON *checks)
{
	struct print_table *t =
		print_table_new(preflight_columns, sizeof preflight_columns / sizeof *preflight_columns);
	const cJSON *check;

	if (!t)
		return cli_table(c, NULL);
	cJSON_ArrayForEach(check, checks) {
		bool ok = json_bool(check, "ok", false), required = json_bool(check, "required", true);

		field_cell_text(t, PRINT_PLAIN, check, "check");
		print_cell(t,
			   ok	      ? PRINT_GOOD
			   : required ? PRINT_BAD
				      : PRINT_WARN,
			   "%s",
			   ok	      ? "ok"
			   : required ? "NO"
				      : "note");
		field_cell_text(t, PRINT_PLAIN, check, "detail");
		if (ok || !*field_text(check, "remedy"))
			continue;
		print_cell(t, PRINT_PLAIN, "%s", "");
		print_cell(t, PRINT_PLAIN, "%s", "");
		print_cell(t, PRINT_STRONG, "-> %s", field_text(check, "remedy"));
	}
	return cli_table(c, t);
}

int cmd_preflight(struct cli *c)
{
	_cleanup_json_ cJSON *report = preflight_run(c->argument[0], c->pin_dir);
	const cJSON *checks = cJSON_GetObjectItemCaseSensitive(report, "checks"), *check;
	int n = cJSON_GetArraySize(checks), n_failed = 0;
	char why[64];

	if (cli_check(c, report, c->argument[0]))
		return CLI_FAILED;
	cJSON_ArrayForEach(check, checks)
		n_failed += !json_bool(check, "ok", false) && json_bool(check, "required", true);
	(void)snprintf(why, sizeof why, "%d of %d checks failed", n_failed, n);
	if (json_bool(report, "ok", false)) {
		if (c->json)
			return cli_show(c, report);
		if (print_preflight(c, checks))
			return CLI_FAILED;
		print_text(&c->print, PRINT_PLAIN, "%s is ready.\n", c->argument[0]);
		return CLI_DONE;
	}
	if (c->json) {
		(void)cJSON_AddStringToObject(report, "error", why);
		(void)cli_show(c, report);
		return CLI_FAILED;
	}
	if (print_preflight(c, checks))
		return CLI_FAILED;
	return cli_fail(c, "%s", why);
}
