/* SPDX-License-Identifier: MIT */
/* gRPC client over one HTTP/2 connection, bytes in and bytes out: what the peer sent goes into grpc_receive(), what is
 * to be sent comes from grpc_send(); the socket is the caller's. Messages are opaque bytes. No compression.
 *
 * Callbacks run inside grpc_receive() and grpc_send() and nowhere else. From a callback everything may be called but
 * grpc_receive(), grpc_send() and grpc_free(). */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GRPC_MAX_MESSAGE_BYTES (16U << 20)

struct grpc;
struct grpc_call;

/* Source: grpc/grpc, doc/statuscodes.md. Only those that a caller here tells apart. */
enum grpc_status { GRPC_OK = 0, GRPC_UNKNOWN = 2, GRPC_INTERNAL = 13, GRPC_UNAVAILABLE = 14 };

struct grpc_handler {
	/* One whole message; the bytes are borrowed. */
	void (*on_message)(void *ctx, const uint8_t *message, size_t size);
	/* The call is over and its handle is gone. status is the peer's (0..16), or -errno when it sent none: -EMSGSIZE
	 * for a message over the bound, -EPROTO for what is not gRPC, -ECONNRESET for a reset stream. why is a
	 * sentence. */
	void (*on_end)(void *ctx, int status, const char *why);
	void *ctx;
};

/* authority is what :authority says, "host:port". Owned; NULL with errno. */
struct grpc *grpc_new(const char *authority, size_t max_message_bytes);
/* Open calls end without a callback. NULL is fine. */
void grpc_free(struct grpc *g);

/* 0; -EPROTO when this is no HTTP/2 at all, -ENOMEM. Bytes may be due to be sent afterwards. */
int grpc_receive(struct grpc *g, const uint8_t *data, size_t size);
/* Next bytes to send, borrowed until the next call of any function here. Their number, 0 when none are due, or -EPROTO,
 * -ENOMEM. */
long grpc_send(struct grpc *g, const uint8_t **ret);
/* The peer sent GOAWAY, or broke HTTP/2 and was sent one: open calls may still end well, new ones are refused. */
bool grpc_is_going_away(const struct grpc *g);

/* path is "/Service/method". The handler is copied. Owned by g until on_end or grpc_cancel(). NULL with errno. */
struct grpc_call *grpc_open(struct grpc *g, const char *path, const struct grpc_handler *handler);
/* Queue one message; the bytes are copied. 0, -EMSGSIZE, -ENOMEM. */
int grpc_write(struct grpc_call *call, const uint8_t *message, size_t size);
/* No more messages from us. A unary call is: open, one write, finish. */
void grpc_finish(struct grpc_call *call);
/* Reset the stream and drop the handle; on_end is not called. */
void grpc_cancel(struct grpc_call *call);
