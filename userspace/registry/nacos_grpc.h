/* SPDX-License-Identifier: MIT */
/* One connection to one Nacos server, from connect to loss: check, setup, calls, pushes, health. It never reconnects:
 * the owner makes a new one. The server knows a client by its TCP connection, so calls and the push stream share one.
 */
#pragma once
#include <stdint.h>
#include "nacos_msg.h"

struct event_base;
struct nacos_server;
struct nacos_grpc;
struct nacos_call;

/* Callbacks come from the loop. nacos_grpc_free() may be called from on_lost, from no other. */
struct nacos_grpc_handler {
	void (*on_ready)(void *ctx); /* set up: calls may be made */
	/* A NotifySubscriberRequest, acknowledged already. */
	void (*on_notify)(void *ctx, const struct nacos_msg *m, uint64_t received_ns);
	/* The server wants us gone; host "" or port 0 when it names no other. The connection still works. */
	void (*on_reset)(void *ctx, const char *host, uint16_t port);
	void (*on_ignored)(void *ctx, const char *what); /* a message that means nothing to us */
	/* Once, and the last callback of all: open calls end without one. */
	void (*on_lost)(void *ctx, const char *why);
	void *ctx;
};

/* Everything is copied. Owned; NULL with errno. */
struct nacos_grpc *nacos_grpc_new(struct event_base *loop, const struct nacos_server *server, const char *ns,
				  const char *client_version, const struct nacos_grpc_handler *handler);
void nacos_grpc_free(struct nacos_grpc *n); /* NULL is fine */

/* Exactly once: m is the answer, borrowed, which may well be a refusal (nacos_msg_error); NULL when none came, and why
 * says so. The handle is gone. Error 301 is not handed over: the connection is lost. */
struct nacos_call_handler {
	void (*on_answer)(void *ctx, const struct nacos_msg *m, const char *why, uint64_t received_ns);
	void *ctx;
};

/* Unary call with a limit of 3 s. request is copied. Owned by n until the answer. NULL with errno. */
struct nacos_call *nacos_grpc_call(struct nacos_grpc *n, const struct nacos_bytes *request,
				   const struct nacos_call_handler *handler);
void nacos_grpc_cancel(struct nacos_call *call);
