/* SPDX-License-Identifier: MIT */
/* preflight INTERFACE: what would keep the balancer from working there, before it is attached. */
#pragma once
#include <cjson/cJSON.h>

/* {"interface","ok",checks:[{"check","ok","required","detail","remedy"}]}; ok false when a required check failed. Owned. */
cJSON *preflight_run(const char *interface, const char *pin_dir);
