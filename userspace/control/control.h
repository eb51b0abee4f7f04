/* SPDX-License-Identifier: MIT */
/* The control socket: HTTP over a Unix socket, JSON in and out. GET /api/status, /api/services, /api/backends?service=,
 * /api/table?service=, /api/flows?…; POST /api/drain, /api/evict, /api/enable with {"service","address"}, /api/reload.
 * 200 and the JSON of the contract, or 4xx/5xx and {"error":"one sentence"}. Socket mode 0600. */
#pragma once
#include <cjson/cJSON.h>
#include <stddef.h>

struct event_base;
struct control;

/* A handler returns an owned JSON value, or NULL with a sentence in why and an HTTP status in *ret_code. */
typedef cJSON *(*control_handler)(void *ctx, const cJSON *body, const char *query, int *ret_code, char *why, size_t why_size);
struct control_route {
	const char *method; /* "GET" or "POST" */
	const char *path;
	control_handler handler;
};

/* NULL with errno: the directory is made if missing, a stale socket file replaced. routes ends with {0}; borrowed. */
struct control *control_new(struct event_base *loop, const char *socket_path, const struct control_route *routes, void *ctx);
void control_free(struct control *c); /* removes the socket file */

/* The other side, for the CLI (libcurl over the Unix socket): 0 and the owned answer in *ret (whatever the status) with the HTTP
 * status in *ret_code; -ECONNREFUSED or -ENOENT: no agent there; -EPROTO: not JSON. */
int control_call(const char *socket_path, const char *method, const char *path, const cJSON *body, cJSON **ret, int *ret_code);
