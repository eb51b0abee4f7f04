/* SPDX-License-Identifier: MIT */
/* The table of commands. A new one is a row in command.c and a cmd_*.c. */
#pragma once
#include "cli.h"

extern const struct command command_table[];	      /* ends with a name of NULL */
const struct command *command_find(const char *name); /* NULL: no such command */
/* A name of the contract whose command is not there yet. */
bool command_is_planned(const char *name);
