/* SPDX-License-Identifier: MIT */
/* What the agent needs from the system before it starts, and what it gives up then. */
#pragma once
#include "config.h"

/* Exit statuses of the agent: part of the contract with whoever starts it. */
enum setup_exit {
	EXIT_USAGE = 2,
	EXIT_FEATURE = 69,   /* a needed kernel feature is missing */
	EXIT_DIRECTORY = 73, /* cannot write its directories */
	EXIT_LOCKED = 75,    /* another agent owns the pin folder */
	EXIT_PERMISSION = 77,
	EXIT_CONFIG = 78,
};

/* How the process allocates. First of all, and also what measures the agent's work. */
void setup_memory(void);
/* The state folder, made if missing. 0, or -errno with a sentence in why. */
int setup_directories(const struct config *c, char *why, size_t why_size);
/* 0, or -EPERM with the missing capabilities in why. */
int setup_check_capabilities(char *why, size_t why_size);
/* Keep what attaching and map updates need, give up the rest. 0 or -errno. */
int setup_drop_privileges(void);
