// SPDX-License-Identifier: MIT
#include "cli.h"
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "../base/json.h"
#include "../control/control.h"

#define WHY_SIZE 512

static void say(const struct cli *c, const char *format, va_list ap)
{
	_cleanup_json_ cJSON *json = NULL;
	_cleanup_free_ char *why = NULL;
	struct print err = {.out = stderr};

	if (vasprintf(&why, format, ap) < 0) {
		why = NULL;
		return;
	}
	if (c->json) {
		json = cJSON_CreateObject();
		if (json && cJSON_AddStringToObject(json, "error", why)) {
			_cleanup_free_ char *line = cJSON_PrintUnformatted(json);

			/* what reads the answer finds it there, what watches standard error finds one line */
			(void)cli_show(c, json);
			if (line)
				(void)fprintf(stderr, "%s\n", line);
		}
		return;
	}
	(void)fflush(c->print.out); /* so that a report's last word comes last */
	/* one line: a refused configuration has several */
	for (char *end = why; (end = strchr(end, '\n'));)
		*end = end[1] ? ';' : 0;
	print_text(&err, PRINT_PLAIN, "steelyard: %s%s%s\n", c->command ? c->command->name : "", c->command ? ": " : "",
		   why);
}

int cli_fail(const struct cli *c, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	say(c, format, ap);
	va_end(ap);
	return CLI_FAILED;
}

int cli_usage(const struct cli *c, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	say(c, format, ap);
	va_end(ap);
	return CLI_USAGE;
}

int cli_show(const struct cli *c, const cJSON *json)
{
	_cleanup_free_ char *text = cJSON_Print(json);

	if (!text) {
		(void)fputs("steelyard: out of memory\n", stderr);
		return CLI_FAILED;
	}
	(void)fputs(text, c->print.out);
	(void)fputc('\n', c->print.out);
	return CLI_DONE;
}

struct inspect *cli_inspect(const struct cli *c)
{
	char why[WHY_SIZE] = "";
	struct inspect *i = inspect_open(c->pin_dir, why, sizeof why);

	if (i)
		return i;
	switch (errno) {
	case ENOENT:
		(void)cli_fail(c, "no Steelyard is loaded at %s: start steelyardd, or give --pin-dir", c->pin_dir);
		break;
	case EPERM:
	case EACCES:
		(void)cli_fail(c, "not permitted to read the pinned maps at %s: run as root", c->pin_dir);
		break;
	default:
		(void)cli_fail(c, "%s", *why ? why : strerror(errno));
	}
	return NULL;
}

int cli_service(const struct cli *c, struct inspect *i, const char *text, uint32_t *ret)
{
	char why[WHY_SIZE] = "";
	int r = inspect_find_service(i, text, ret, why, sizeof why);

	if (!r)
		return CLI_DONE;
	if (r == -ENOENT)
		return cli_fail(c, "no service %s: `steelyard services` lists them", text);
	return cli_fail(c, "%s", *why ? why : strerror(-r));
}

int cli_check(const struct cli *c, const cJSON *json, const char *what)
{
	return json ? CLI_DONE : cli_fail(c, "cannot read %s: %s", what, strerror(errno));
}

int cli_ask(const struct cli *c, const char *method, const char *path, const cJSON *body, cJSON **ret)
{
	_cleanup_json_ cJSON *answer = NULL;
	const char *why;
	int code = 0, r = control_call(c->control, method, path, body, &answer, &code);

	if (r == -ECONNREFUSED || r == -ENOENT)
		return cli_fail(c, "no agent answers at %s: start steelyardd, or give --control", c->control);
	if (r == -EACCES || r == -EPERM)
		return cli_fail(c, "not permitted to use %s: run as root", c->control);
	if (r < 0)
		return cli_fail(c, "asking the agent at %s: %s", c->control, strerror(-r));
	if (code != 200) {
		why = json_string(answer, "error");
		if (why)
			return cli_fail(c, "%s", why);
		return cli_fail(c, "the agent at %s answered with status %d", c->control, code);
	}
	*ret = TAKE_PTR(answer);
	return CLI_DONE;
}

int cli_table(const struct cli *c, struct print_table *t)
{
	int r = t ? print_table_write(t, &c->print) : -ENOMEM;

	print_table_free(t);
	return r ? cli_fail(c, "%s", strerror(-r)) : CLI_DONE;
}
