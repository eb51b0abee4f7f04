/* SPDX-License-Identifier: MIT */
/* What the programs tell the agent: records of the ring buffer. */
#pragma once
#include "load.h"

struct events;
typedef void (*events_callback)(void *ctx, const struct sy_event *event);

/* NULL with errno. */
struct events *events_new(const struct maps *maps, events_callback callback, void *ctx);
void events_free(struct events *e);
/* Readable: call events_process. */
int events_fd(const struct events *e);
/* Calls back for each record that is there. */
void events_process(struct events *e);
/* "ports-exhausted"; "unknown" for a kind that this version does not know. */
const char *events_kind_name(uint32_t kind);
