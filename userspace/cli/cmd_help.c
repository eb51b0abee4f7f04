// SPDX-License-Identifier: MIT
/* help, version: what there is and what it takes, out of the tables of commands and options. */
#include <string.h>
#include "../base/json.h"
#include "args.h"
#include "cmd.h"
#include "command.h"

static void print_options(const struct cli *c, unsigned options)
{
	for (enum cli_option o = 0; o < CLI_N_OPTIONS; o++) {
		const struct args_option *a = &args_options[o];
		int used = (int)strlen(a->name) + (a->value ? (int)strlen(a->value) + 1 : 0);

		if (options & 1u << o)
			print_text(&c->print, PRINT_PLAIN, "  %s%s%s%*s%s\n", a->name, a->value ? " " : "",
				   a->value ? a->value : "", used < 22 ? 22 - used : 1, "", a->does);
	}
}

static int help_one(const struct cli *c, const struct command *k)
{
	print_text(&c->print, PRINT_STRONG, "steelyard %s%s%s%s\n", k->name, *k->arguments ? " " : "", k->arguments,
		   k->options ? " [OPTION ...]" : "");
	print_text(&c->print, PRINT_PLAIN, "%s.\n", k->does);
	if (k->more)
		print_text(&c->print, PRINT_PLAIN, "\n%s\n", k->more);
	if (k->options) {
		print_text(&c->print, PRINT_STRONG, "\nOptions\n");
		print_options(c, k->options);
	}
	print_text(&c->print, PRINT_STRONG, "\nOptions of every command\n");
	print_options(c, ARGS_GLOBAL_OPTIONS);
	return CLI_DONE;
}

static int help_all(const struct cli *c)
{
	print_text(&c->print, PRINT_PLAIN,
		   "steelyard [--pin-dir DIR] [--control SOCKET] [--json] [COMMAND]\n"
		   "Shows and steers a Steelyard load balancer. Without a command: status.\n");
	print_text(&c->print, PRINT_STRONG, "\nCommands (`steelyard COMMAND --help` says more)\n");
	for (const struct command *k = command_table; k->name; k++) {
		int used = (int)strlen(k->name) + (*k->arguments ? (int)strlen(k->arguments) + 1 : 0);

		print_text(&c->print, PRINT_PLAIN, "  %s%s%s%*s%s\n", k->name, *k->arguments ? " " : "", k->arguments,
			   used < 26 ? 26 - used : 1, "", k->does);
	}
	print_text(&c->print, PRINT_STRONG, "\nOptions of every command\n");
	print_options(c, ARGS_GLOBAL_OPTIONS);
	print_text(&c->print, PRINT_PLAIN, "\nExit status: 0 done, 1 failed, 2 bad usage. More in steelyard(8).\n");
	return CLI_DONE;
}

int cmd_help(struct cli *c)
{
	const struct command *k = c->command;

	if (strcmp(k->name, "help") != 0)
		return help_one(c, k);
	if (!c->n_arguments)
		return help_all(c);
	k = command_find(c->argument[0]);
	return k ? help_one(c, k) : cli_usage(c, "no command %s", c->argument[0]);
}

int cmd_version(struct cli *c)
{
	_cleanup_json_ cJSON *json = cJSON_CreateObject();

	if (!c->json) {
		print_text(&c->print, PRINT_PLAIN, "steelyard %s\n", SY_VERSION);
		return CLI_DONE;
	}
	if (!cJSON_AddStringToObject(json, "version", SY_VERSION))
		return cli_fail(c, "out of memory");
	return cli_show(c, json);
}
