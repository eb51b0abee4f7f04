/* SPDX-License-Identifier: MIT */
/* What the host must have before anything is loaded. Private to dataplane; preflight tells it, load enforces it. */
#pragma once
#include <stddef.h>

/* Names of capabilities that are missing, comma-separated, "" when none. */
void load_check_capabilities(char *buf, size_t size);
/* Names of kernel features that are missing, comma-separated, "" when none. Runs small probes: a few ms. */
void load_check_features(char *buf, size_t size);
