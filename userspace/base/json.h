/* SPDX-License-Identifier: MIT */
/* Reading and writing JSON over cJSON: typed getters that never trust the input. */
#pragma once
#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "cleanup.h"

DEFINE_CLEANUP(cJSON *, cJSON_Delete)
#define _cleanup_json_ _cleanup_(cJSON_Deletep)

/* Parse exactly size bytes (no zero needed after them): one value, nothing but blanks behind it, nesting bounded.
 * NULL when it is not that. Owned by the caller. */
cJSON *json_parse(const char *text, size_t size);
/* Borrowed string or NULL when absent, null or of another type. */
const char *json_string(const cJSON *object, const char *key);
bool json_bool(const cJSON *object, const char *key, bool otherwise);
/* true and *ret when it is a number (finite or not). */
bool json_number(const cJSON *object, const char *key, double *ret);
/* Exact integers: cJSON keeps doubles, so above 2^53 a number is added as raw text. */
cJSON *json_add_u64(cJSON *object, const char *key, uint64_t value);
/* Shortest text that reads back as the same double (%.17g trimmed). */
cJSON *json_add_double(cJSON *object, const char *key, double value);
