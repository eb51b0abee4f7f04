/* SPDX-License-Identifier: MIT */
/* steelyardd: the map of the program. Options and configuration, then the kernel's side (load), then the wiring
 * (pipeline), then the control socket; all on one event loop in one thread, until a signal ends it. Traffic goes on
 * without it. */
#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../base/cleanup.h"
#include "../base/log.h"
#include "api.h"
#include "options.h"
#include "pipeline.h"
#include "setup.h"

#define AREA "agent"

DEFINE_CLEANUP(struct event_base *, event_base_free)
DEFINE_CLEANUP(struct event_config *, event_config_free)
DEFINE_CLEANUP(struct load *, load_close)
DEFINE_CLEANUP(struct pipeline *, pipeline_free)
DEFINE_CLEANUP(struct control *, control_free)
DEFINE_CLEANUP(struct event *, event_free)

struct agent {
	struct options options;
	struct event_base *loop;
	struct pipeline *pipeline;
};

static int exit_of(enum load_fail fail)
{
	static const int statuses[] = {
		[LOAD_FEATURE] = EXIT_FEATURE,	     [LOAD_DIRECTORY] = EXIT_DIRECTORY, [LOAD_LOCKED] = EXIT_LOCKED,
		[LOAD_PERMISSION] = EXIT_PERMISSION, [LOAD_LAYOUT] = EXIT_FAILURE,	[LOAD_OTHER] = EXIT_FAILURE,
	};

	return fail == LOAD_OK ? EXIT_FAILURE : statuses[fail];
}

/* The errors of a configuration as one sentence for who asked by the socket. */
static void join_lines(char *text, char *why, size_t why_size)
{
	for (char *c = text; *c; c++)
		if (*c == '\n')
			*c = ';';
	(void)snprintf(why, why_size, "%s", text);
}

static int reload(void *ctx, char *why, size_t why_size)
{
	struct agent *a = ctx;
	_cleanup_free_ char *errors = NULL;
	struct config *c = NULL;
	int r = options_load(&a->options, &c, &errors);

	if (r < 0 && errors)
		join_lines(errors, why, why_size);
	else if (r < 0)
		(void)snprintf(why, why_size, "%s", strerror(-r));
	else
		r = pipeline_reload(a->pipeline, c, why, why_size);
	if (r < 0)
		log_error(AREA, "reload refused, the running configuration stays: %s", why);
	else
		log_info(AREA, "configuration reloaded");
	return r;
}

static void on_hangup(evutil_socket_t signal, short what, void *arg)
{
	char why[512];

	(void)signal;
	(void)what;
	(void)reload(arg, why, sizeof(why));
}

static void on_end(evutil_socket_t signal, short what, void *arg)
{
	struct agent *a = arg;

	(void)what;
	log_info(AREA, "ended by signal %d; traffic flows on", (int)signal);
	(void)event_base_loopbreak(a->loop);
}

static struct event *signal_on(struct agent *a, int signal, event_callback_fn callback)
{
	struct event *e = evsignal_new(a->loop, signal, callback, a);

	if (e)
		(void)event_add(e, NULL);
	return e;
}

static int fail(int status, const char *why)
{
	log_error(AREA, "%s", why);
	return status;
}

/* Timers by the fine clock: by the coarse one, which moves once a jiffy, a change that waits 1 ms for others waits 4. */
static struct event_base *loop_new(void)
{
	_cleanup_(event_config_freep) struct event_config *config = event_config_new();

	if (!config || event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER) < 0)
		return NULL;
	return event_base_new_with_config(config);
}

/* Everything is set up in here and taken down on return, in the opposite order. */
static int run(struct agent *a, struct config *c)
{
	struct load_options load_options = {
		.pin_dir = c->pin_dir, .flows = c->flows, .quiet = c->log_level != LOG_LEVEL_DEBUG};
	struct api api = {.reload = reload, .reload_ctx = a};
	_cleanup_(event_base_freep) struct event_base *loop = loop_new();
	_cleanup_(load_closep) struct load *load = NULL;
	_cleanup_(pipeline_freep) struct pipeline *pipeline = NULL;
	_cleanup_(control_freep) struct control *control = NULL;
	_cleanup_(event_freep) struct event *hangup = NULL, *terminate = NULL, *interrupt = NULL;
	enum load_fail why_load = LOAD_OTHER;
	char why[512] = "out of memory";

	a->loop = loop;
	if (!loop) {
		config_free(c);
		return fail(EXIT_FAILURE, why);
	}
	/* acted on once the loop runs: loading takes a while, and a reload in it must not be the end */
	hangup = signal_on(a, SIGHUP, on_hangup);
	terminate = signal_on(a, SIGTERM, on_end);
	interrupt = signal_on(a, SIGINT, on_end);
	if (hangup && terminate && interrupt)
		load = load_open(&load_options, &why_load, why, sizeof(why));
	if (!load) {
		config_free(c);
		return fail(exit_of(why_load), why);
	}
	/* before anything is attached; nobody is answered until the loop runs */
	control = control_new(loop, c->control_socket, api_routes, &api);
	if (!control) {
		int status = errno == EADDRINUSE ? EXIT_LOCKED : EXIT_DIRECTORY;

		(void)snprintf(why, sizeof(why), "control_socket %s: %s", c->control_socket, strerror(errno));
		config_free(c);
		return fail(status, why);
	}
	a->pipeline = api.pipeline = pipeline = pipeline_new(loop, load, c, why, sizeof(why));
	if (!pipeline)
		return fail(errno == EPERM || errno == EACCES ? EXIT_PERMISSION : EXIT_FAILURE, why);
	if (setup_drop_privileges() < 0)
		log_warning(AREA, "more privileges than needed are kept: they cannot be given up");
	log_info(AREA, "steelyardd " SY_VERSION " runs, %zu services, pins in %s%s", pipeline->n_services,
		 pipeline->config->pin_dir, load_adopted(load) ? " taken over" : "");
	return event_base_dispatch(loop) < 0 ? fail(EXIT_FAILURE, "the event loop failed") : EXIT_SUCCESS;
}

/* The checks before anything is touched. */
static int start(struct agent *a)
{
	_cleanup_free_ char *errors = NULL;
	struct config *c = NULL;
	char why[512] = "";
	int r = options_load(&a->options, &c, &errors);

	if (r < 0) {
		(void)fprintf(stderr, "%s\n", errors ? errors : strerror(-r));
		return r == -ENOMEM ? EXIT_FAILURE : EXIT_CONFIG;
	}
	if (a->options.check) {
		config_free(c);
		return EXIT_SUCCESS;
	}
	log_init(c->log_level, c->log_json);
	if (setup_check_capabilities(why, sizeof(why)) < 0) {
		config_free(c);
		log_error(AREA, "not permitted: %s missing; run as root, or with these capabilities", why);
		return EXIT_PERMISSION;
	}
	if (setup_directories(c, why, sizeof(why)) < 0) {
		config_free(c);
		return fail(EXIT_DIRECTORY, why);
	}
	return run(a, c);
}

int main(int argc, char **argv)
{
	struct agent a = {0};
	int status;

	/* a peer that closes early is an error of that call, never the agent's end */
	(void)signal(SIGPIPE, SIG_IGN);
	setup_memory();
	options_parse(argc, argv, &a.options);
	status = start(&a);
	options_done(&a.options);
	return status;
}
