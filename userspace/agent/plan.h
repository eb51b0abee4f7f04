/* SPDX-License-Identifier: MIT */
/* From the configuration in force to the wanted one: registries and services, by their differences. */
#pragma once
#include "pipeline.h"

/* On success p->config is c and the old one is freed; else nothing was changed, with a sentence in why. */
int plan_apply(struct pipeline *p, struct config *c, char *why, size_t why_size);
/* Free registries and services, the maps staying as they are. */
void plan_done(struct pipeline *p);
