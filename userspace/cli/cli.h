/* SPDX-License-Identifier: MIT */
/* What every command is given, and how it answers: a report for people or JSON, one line for a failure. */
#pragma once
#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "../base/cleanup.h"
#include "../dataplane/inspect.h"
#include "print.h"

#define CLI_PIN_DIR "/sys/fs/bpf/steelyard"
#define CLI_CONTROL "/run/steelyard/control.sock"

enum cli_exit { CLI_DONE = 0, CLI_FAILED = 1, CLI_USAGE = 2 };

enum cli_option {
	CLI_O_PIN_DIR,
	CLI_O_CONTROL,
	CLI_O_JSON,
	CLI_O_HELP,
	CLI_O_VERSION,
	CLI_O_SERVICE,
	CLI_O_BACKEND,
	CLI_O_CLIENT,
	CLI_O_LIMIT,
	CLI_O_ALL,
	CLI_O_MAPS,
	CLI_O_WAIT,
	CLI_O_DEADLINE,
	CLI_O_FORCE,
	CLI_N_OPTIONS
};

#define CLI_MAX_ARGUMENTS 2

struct command;

struct cli {
	const struct command *command;
	const char *pin_dir, *control;
	bool json, help, version;
	bool all, maps, wait, force;
	const char *service, *backend, *client; /* NULL: not given */
	uint64_t limit;				/* 0: none */
	uint64_t deadline_ns;			/* 0: none */
	const char *argument[CLI_MAX_ARGUMENTS];
	size_t n_arguments;
	struct print print;
};

struct command {
	const char *name;
	const char *arguments; /* as help shows them */
	size_t min_arguments, max_arguments;
	unsigned options;	   /* set of 1 << enum cli_option, beside those that all commands take */
	const char *does;	   /* one line */
	const char *more;	   /* what help says below it, or NULL */
	int (*run)(struct cli *c); /* returns enum cli_exit */
};

DEFINE_CLEANUP(struct inspect *, inspect_close)
#define _cleanup_inspect_ _cleanup_(inspect_closep)

/* Say why, in one line: on stderr, or under --json {"error":why} on stdout. Returns CLI_FAILED, CLI_USAGE. */
int cli_fail(const struct cli *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
int cli_usage(const struct cli *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Print a value and a newline. Returns CLI_DONE, or CLI_FAILED having said why. */
int cli_show(const struct cli *c, const cJSON *json);
/* The pinned maps, or NULL having said what is wrong and what to do. inspect_close frees. */
struct inspect *cli_inspect(const struct cli *c);
/* SERVICE to its id. CLI_DONE, or CLI_FAILED having said why. */
int cli_service(const struct cli *c, struct inspect *i, const char *text, uint32_t *ret);
/* A value that inspect returned: CLI_DONE, or CLI_FAILED having said why when it is NULL (errno is inspect's). */
int cli_check(const struct cli *c, const cJSON *json, const char *what);
/* Ask the agent to do something: CLI_DONE and its owned answer, or CLI_FAILED having said why. */
int cli_ask(const struct cli *c, const char *method, const char *path, const cJSON *body, cJSON **ret);
/* Print a table that was filled, and free it. CLI_DONE, or CLI_FAILED having said why; NULL counts as out of memory. */
int cli_table(const struct cli *c, struct print_table *t);
