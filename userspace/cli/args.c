// SPDX-License-Identifier: MIT
#include "args.h"
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "../base/addr.h"
#include "../base/clock.h"
#include "command.h"

const struct args_option args_options[CLI_N_OPTIONS] = {
	[CLI_O_PIN_DIR] = {"--pin-dir", "DIR", "where the maps are pinned (" CLI_PIN_DIR ")"},
	[CLI_O_CONTROL] = {"--control", "SOCKET", "the agent's control socket (" CLI_CONTROL ")"},
	[CLI_O_JSON] = {"--json", NULL, "print JSON, errors too"},
	[CLI_O_HELP] = {"--help", NULL, "what a command does and takes"},
	[CLI_O_VERSION] = {"--version", NULL, "print the version"},
	[CLI_O_SERVICE] = {"--service", "SERVICE", "only flows of this service"},
	[CLI_O_BACKEND] = {"--backend", "ADDRESS", "only flows to this ADDR or ADDR:PORT"},
	[CLI_O_CLIENT] = {"--client", "ADDRESS", "only flows from this ADDR or ADDR:PORT"},
	[CLI_O_LIMIT] = {"--limit", "N", "at most N flows"},
	[CLI_O_ALL] = {"--all", NULL, "lines that are 0, too"},
	[CLI_O_MAPS] = {"--maps", NULL, "with every pinned map and its entries"},
	[CLI_O_WAIT] = {"--wait", NULL, "return when the backend's last flow has ended"},
	[CLI_O_DEADLINE] = {"--deadline", "T", "give up waiting after T, such as 30s or 5m"},
	[CLI_O_FORCE] = {"--force", NULL, "even while an agent lives"},
};

static int __attribute__((format(printf, 3, 4))) refuse(char *why, size_t why_size, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(why, why_size, format, ap);
	va_end(ap);
	return -EINVAL;
}

/* The option that text names, up to its "="; CLI_N_OPTIONS: none. */
static enum cli_option option_find(const char *text)
{
	size_t len = strcspn(text, "=");

	if (strcmp(text, "-h") == 0)
		return CLI_O_HELP;
	if (strcmp(text, "-V") == 0)
		return CLI_O_VERSION;
	for (enum cli_option o = 0; o < CLI_N_OPTIONS; o++)
		if (strlen(args_options[o].name) == len && strncmp(args_options[o].name, text, len) == 0)
			return o;
	return CLI_N_OPTIONS;
}

static bool is_address(const char *text)
{
	struct endpoint e;
	struct addr a;

	return addr_parse(text, &a) == 0 || endpoint_parse(text, &e) == 0;
}

static int count_parse(const char *text, uint64_t *ret)
{
	unsigned long long n;
	char *end;

	errno = 0;
	n = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || n == 0)
		return -EINVAL;
	*ret = n;
	return 0;
}

static int option_set(struct cli *c, enum cli_option o, const char *value, char *why, size_t why_size)
{
	const char **text = o == CLI_O_PIN_DIR	 ? &c->pin_dir
			    : o == CLI_O_CONTROL ? &c->control
			    : o == CLI_O_SERVICE ? &c->service
			    : o == CLI_O_BACKEND ? &c->backend
			    : o == CLI_O_CLIENT	 ? &c->client
						 : NULL;
	bool *flag = o == CLI_O_JSON	  ? &c->json
		     : o == CLI_O_HELP	  ? &c->help
		     : o == CLI_O_VERSION ? &c->version
		     : o == CLI_O_ALL	  ? &c->all
		     : o == CLI_O_MAPS	  ? &c->maps
		     : o == CLI_O_WAIT	  ? &c->wait
		     : o == CLI_O_FORCE	  ? &c->force
					  : NULL;

	if (flag) {
		*flag = true;
		return 0;
	}
	if (!*value)
		return refuse(why, why_size, "%s needs a value: %s", args_options[o].name, args_options[o].value);
	if ((o == CLI_O_BACKEND || o == CLI_O_CLIENT) && !is_address(value))
		return refuse(why, why_size, "%s %s: not an address: ADDR or ADDR:PORT", args_options[o].name, value);
	if (text)
		*text = value;
	else if (o == CLI_O_LIMIT && count_parse(value, &c->limit))
		return refuse(why, why_size, "--limit %s: not a whole number from 1", value);
	else if (o == CLI_O_DEADLINE && duration_parse(value, &c->deadline_ns))
		return refuse(why, why_size, "--deadline %s: not a duration such as 30s or 5m", value);
	return 0;
}

/* Takes the option at argv[*i], moving *i over a value in a word of its own. */
static int option_take(int argc, char *const *argv, int *i, struct cli *c, unsigned *given, char *why, size_t why_size)
{
	const char *word = argv[*i], *value = strchr(word, '=');
	enum cli_option o = option_find(word);

	if (o == CLI_N_OPTIONS)
		return refuse(why, why_size, "unknown option %s: see `steelyard help`", word);
	if (value && !args_options[o].value)
		return refuse(why, why_size, "%s takes no value", args_options[o].name);
	if (value)
		value++;
	else if (args_options[o].value && *i + 1 < argc)
		value = argv[++*i];
	*given |= 1u << o;
	return option_set(c, o, value ? value : "", why, why_size);
}

static int word_take(struct cli *c, const char *word, char *why, size_t why_size)
{
	if (!c->command) {
		c->command = command_find(word);
		if (c->command)
			return 0;
		if (command_is_planned(word))
			return refuse(why, why_size, "%s: not in this version", word);
		return refuse(why, why_size, "no command %s: see `steelyard help`", word);
	}
	if (c->n_arguments == CLI_MAX_ARGUMENTS)
		return refuse(why, why_size, "%s is too much: see `steelyard %s --help`", word, c->command->name);
	c->argument[c->n_arguments++] = word;
	return 0;
}

static int check(const struct cli *c, unsigned given, char *why, size_t why_size)
{
	const struct command *k = c->command;

	for (enum cli_option o = 0; o < CLI_N_OPTIONS; o++)
		if ((given & ~(k->options | ARGS_GLOBAL_OPTIONS)) & 1u << o)
			return refuse(why, why_size, "%s is no option of it: see `steelyard %s --help`",
				      args_options[o].name, k->name);
	if (c->help || c->version)
		return 0;
	if (c->n_arguments < k->min_arguments)
		return refuse(why, why_size, "needs %s: see `steelyard %s --help`", k->arguments, k->name);
	if (c->n_arguments > k->max_arguments)
		return refuse(why, why_size, "%s is too much: see `steelyard %s --help`", c->argument[k->max_arguments],
			      k->name);
	if ((given & 1u << CLI_O_DEADLINE) && !c->wait)
		return refuse(why, why_size, "--deadline says how long to --wait: give both");
	return 0;
}

int args_parse(int argc, char *const *argv, struct cli *ret, char *why, size_t why_size)
{
	bool options_end = false;
	unsigned given = 0;
	int r = 0;

	*ret = (struct cli){.pin_dir = CLI_PIN_DIR, .control = CLI_CONTROL};
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		ret->json |= strcmp(argv[i], "--json") == 0;
	for (int i = 1; i < argc && !r; i++) {
		if (!options_end && strcmp(argv[i], "--") == 0)
			options_end = true;
		else if (!options_end && argv[i][0] == '-')
			r = option_take(argc, argv, &i, ret, &given, why, why_size);
		else
			r = word_take(ret, argv[i], why, why_size);
	}
	if (r)
		return r;
	if (!ret->command && ret->help)
		ret->command = command_find("help");
	if (!ret->command)
		ret->command = command_find("status");
	return check(ret, given, why, why_size);
}
