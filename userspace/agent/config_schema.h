/* SPDX-License-Identifier: MIT */
/* Every key of the configuration, and which of them this version does not do yet. */
#pragma once
#include "config_doc.h"

/* The first unknown or repeated key or value of the wrong shape is noted alone: -EINVAL. Else 0, with an error noted
 * for each key that is known but not supported yet. */
int config_schema_check(struct config_doc *d);
