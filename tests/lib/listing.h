/* SPDX-License-Identifier: MIT */
/* What a registry lists, as text, for measurements. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

/* ServiceInfo JSON of n instances 10.3.x.y:8080 in an order of its own; salt changes the weight of every one or of one.
 * NULL: no memory; else the caller's. */
char *listing(const char *service, size_t n, unsigned salt, bool every);
