/* SPDX-License-Identifier: MIT */
/* A source of services: Nacos or a folder of files, behind five calls. All runs on one libevent loop in one thread; no
 * call blocks. Callbacks come from the loop, never from inside start/subscribe. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "../model/instance.h"

struct event_base;
struct registry;

enum registry_state { REGISTRY_CONNECTING, REGISTRY_LIVE, REGISTRY_CACHED, REGISTRY_DOWN };
const char *registry_state_name(enum registry_state s); /* "connecting", "live", "cached", "down" */

struct registry_status {
	enum registry_state state;
	const char *server;	/* "host:port" in use, the folder, or ""; borrowed until the next event */
	uint64_t since_ns;	/* CLOCK_REALTIME */
	unsigned n_services;	/* subscribed */
	const char *last_error; /* "" or one sentence; borrowed */
};

/* What the owner is told. The snapshot is given away: the callee frees it. received_ns is CLOCK_MONOTONIC at the moment
 * the bytes were read. A service known to be empty comes as a snapshot without instances; an error never comes as one.
 */
struct registry_sink {
	void (*on_snapshot)(void *ctx, struct snapshot *s, uint64_t received_ns);
	void (*on_state)(void *ctx, const struct registry_status *status);
	void *ctx;
};

struct registry_ops {
	int (*start)(struct registry *r);
	int (*subscribe)(struct registry *r, const char *group, const char *name);
	int (*unsubscribe)(struct registry *r, const char *group, const char *name);
	void (*status)(const struct registry *r, struct registry_status *ret);
	void (*free)(struct registry *r);
};

/* First member of every source. */
struct registry {
	const struct registry_ops *ops;
	struct event_base *loop;
	struct registry_sink sink;
	char *name; /* of the configuration entry; owned */
};

/* 0 or -errno; a source that cannot connect yet is started all the same and keeps trying. */
int registry_start(struct registry *r);
/* Subscribing twice is one subscription. 0, -EINVAL (empty name), -ENOMEM. */
int registry_subscribe(struct registry *r, const char *group, const char *name);
int registry_unsubscribe(struct registry *r, const char *group, const char *name);
void registry_status(const struct registry *r, struct registry_status *ret);
void registry_free(struct registry *r); /* NULL is fine; no callback afterwards */
