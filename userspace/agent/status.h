/* SPDX-License-Identifier: MIT */
/* What only the agent knows, as the JSON of `steelyard status`. */
#pragma once
#include <cjson/cJSON.h>
#include "pipeline.h"

/* Owned; NULL: no memory. */
cJSON *status_make(const struct pipeline *p);
