/* SPDX-License-Identifier: MIT */
/* The agent's command line. */
#pragma once
#include "config.h"

struct options {
	const char *config; /* file; NULL: the command line says it all */
	bool check;
	const char **interfaces, **services; /* owned arrays of borrowed text */
	struct config_arguments arguments;
	const char *pin_dir, *state_dir, *control_socket; /* NULL: as configured */
	int log_level;					  /* -1: as configured */
};

/* Ends the program with status 2 and a sentence when the usage is wrong, with 0 after --help and --version. */
void options_parse(int argc, char **argv, struct options *ret);
void options_done(struct options *o);
/* The configuration that the options ask for, read anew at each call. As config_load. */
int options_load(const struct options *o, struct config **ret, char **ret_errors);
