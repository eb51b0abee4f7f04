/* SPDX-License-Identifier: MIT */
/* The command line: options before or after the command, checked against what the command takes. Pure. */
#pragma once
#include "cli.h"

struct args_option {
	const char *name;  /* with its dashes */
	const char *value; /* what help calls its value; NULL: takes none */
	const char *does;
};
extern const struct args_option args_options[CLI_N_OPTIONS];
#define ARGS_GLOBAL_OPTIONS                                                                                            \
	(1u << CLI_O_PIN_DIR | 1u << CLI_O_CONTROL | 1u << CLI_O_JSON | 1u << CLI_O_HELP | 1u << CLI_O_VERSION)

/* 0 and *ret (which borrows from argv), or -EINVAL with one line in why; ret->json is then still right, so that the
 * line can be told as asked, and ret->command set when it was understood. */
int args_parse(int argc, char *const *argv, struct cli *ret, char *why, size_t why_size);
