/* SPDX-License-Identifier: MIT */
#include "options.h"
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include "../base/cleanup.h"
#include "setup.h"

DEFINE_CLEANUP(struct config *, config_free)

enum { KEY_CHECK = 256, KEY_NACOS, KEY_FILE, KEY_PIN_DIR, KEY_STATE_DIR, KEY_CONTROL, KEY_LOG_LEVEL };

static const struct argp_option option_list[] = {
	{"config", 'c', "FILE", 0, "Configuration, steelyard.yaml(5)", 1},
	{"check", KEY_CHECK, NULL, 0, "Say whether the configuration is right, and end", 1},
	{NULL, 0, NULL, 0, "Without a configuration file:", 2},
	{"interface", 'i', "NAME", 0, "Attach to this interface (may be repeated)", 2},
	{"nacos", KEY_NACOS, "HOST:PORT", 0, "Read services from this Nacos server", 2},
	{"file", KEY_FILE, "DIR", 0, "Read services from the *.json files in this folder", 2},
	{"service", 's', "NAME=ADDR:PORT", 0, "Serve NAME (or GROUP@@NAME) at this listener (may be repeated)", 2},
	{NULL, 0, NULL, 0, "Instead of what is configured:", 3},
	{"pin-dir", KEY_PIN_DIR, "DIR", 0, "Folder of the pinned maps", 3},
	{"state-dir", KEY_STATE_DIR, "DIR", 0, "Folder of what is kept over restarts", 3},
	{"control-socket", KEY_CONTROL, "SOCKET", 0, "Where steelyard(8) reaches the agent", 3},
	{"log-level", KEY_LOG_LEVEL, "LEVEL", 0, "debug, info, warning or error", 3},
	{0},
};

static int level_of(const char *text)
{
	static const char *const names[] = {
		[LOG_LEVEL_DEBUG] = "debug",
		[LOG_LEVEL_INFO] = "info",
		[LOG_LEVEL_WARNING] = "warning",
		[LOG_LEVEL_ERROR] = "error",
	};

	for (int i = 0; i < (int)(sizeof(names) / sizeof(*names)); i++)
		if (!strcmp(names[i], text))
			return i;
	return -1;
}

static const char *absolute(struct argp_state *state, const char *name, const char *path, size_t max_len)
{
	if (*path != '/' || strlen(path) > max_len)
		argp_error(state, "--%s %s: not an absolute path of up to %zu bytes", name, path, max_len);
	return path;
}

static void list_add(struct argp_state *state, const char ***list, size_t *n, const char *text)
{
	const char **more = realloc(*list, (*n + 1) * sizeof(*more));

	if (!more) {
		argp_failure(state, 1, ENOMEM, "%s", text);
		return;
	}
	*list = more;
	more[(*n)++] = text;
}

static void check_whole(struct argp_state *state, const struct options *o)
{
	const struct config_arguments *a = &o->arguments;
	bool any = a->n_interfaces || a->n_services || a->nacos || a->file;

	if (o->config && any)
		argp_error(state, "--config goes without --interface, --nacos, --file and --service");
	if (!o->config && (!a->n_interfaces || !a->n_services || (!a->nacos && !a->file)))
		argp_error(state, "either --config FILE, or --interface, --service and one of --nacos and --file");
	if (a->nacos && a->file)
		argp_error(state, "one of --nacos and --file, not both");
}

static error_t on_option(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;

	switch (key) {
	case 'c':
		o->config = arg;
		return 0;
	case KEY_CHECK:
		o->check = true;
		return 0;
	case 'i':
		list_add(state, &o->interfaces, &o->arguments.n_interfaces, arg);
		return 0;
	case KEY_NACOS:
		o->arguments.nacos = arg;
		return 0;
	case KEY_FILE:
		o->arguments.file = arg;
		return 0;
	case 's':
		if (!strchr(arg, '='))
			argp_error(state, "--service %s: not NAME=ADDR:PORT", arg);
		list_add(state, &o->services, &o->arguments.n_services, arg);
		return 0;
	case KEY_PIN_DIR:
		o->pin_dir = absolute(state, "pin-dir", arg, 4000);
		return 0;
	case KEY_STATE_DIR:
		o->state_dir = absolute(state, "state-dir", arg, 4000);
		return 0;
	case KEY_CONTROL:
		o->control_socket =
			absolute(state, "control-socket", arg, sizeof(((struct sockaddr_un *)0)->sun_path) - 1);
		return 0;
	case KEY_LOG_LEVEL:
		o->log_level = level_of(arg);
		if (o->log_level < 0)
			argp_error(state, "--log-level %s: not debug, info, warning or error", arg);
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "%s: no argument is expected", arg);
		return 0;
	case ARGP_KEY_END:
		check_whole(state, o);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

void options_parse(int argc, char **argv, struct options *ret)
{
	static const struct argp argp = {
		.options = option_list,
		.parser = on_option,
		.doc = "Balances connections over the instances that a registry lists, inside the kernel.\v"
		       "SIGHUP reads the configuration again. SIGTERM ends the agent and leaves traffic flowing.",
	};

	*ret = (struct options){.log_level = -1};
	argp_program_version = "steelyardd " SY_VERSION;
	argp_err_exit_status = EXIT_USAGE;
	(void)argp_parse(&argp, argc, argv, 0, NULL, ret);
	ret->arguments.interfaces = ret->interfaces;
	ret->arguments.services = ret->services;
}

void options_done(struct options *o)
{
	free(o->interfaces);
	free(o->services);
}

static int replace(char **text, const char *by)
{
	char *copy = by ? strdup(by) : NULL;

	if (!by)
		return 0;
	if (!copy)
		return -ENOMEM;
	free(*text);
	*text = copy;
	return 0;
}

int options_load(const struct options *o, struct config **ret, char **ret_errors)
{
	_cleanup_(config_freep) struct config *c = NULL;
	int r = o->config ? config_load(o->config, &c, ret_errors)
			  : config_from_arguments(&o->arguments, &c, ret_errors);

	if (r < 0)
		return r;
	if (o->log_level >= 0)
		c->log_level = (enum log_level)o->log_level;
	if (replace(&c->pin_dir, o->pin_dir) < 0 || replace(&c->state_dir, o->state_dir) < 0 ||
	    replace(&c->control_socket, o->control_socket) < 0)
		return -ENOMEM;
	*ret = TAKE_PTR(c);
	return 0;
}
