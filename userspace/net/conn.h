/* SPDX-License-Identifier: MIT */
/* One outgoing TCP connection on the event loop: name lookup, connect, bytes in, bytes out. Nothing blocks. */
#pragma once
#include <stddef.h>
#include <stdint.h>

struct conn;
struct event_base;

/* From the loop only. conn_free() may be called from each. */
struct conn_handler {
	void (*on_connected)(void *ctx);
	/* Borrowed bytes; received_ns is CLOCK_MONOTONIC at the moment they were read. */
	void (*on_bytes)(void *ctx, const uint8_t *data, size_t size, uint64_t received_ns);
	/* Could not be made, or is over; why is a sentence. Nothing is called afterwards. */
	void (*on_closed)(void *ctx, const char *why);
	void *ctx;
};

/* host is a name or a bare address. The name is looked up anew for every connection. Owned; NULL with errno. */
struct conn *conn_new(struct event_base *loop, const char *host, uint16_t port, const struct conn_handler *handler);
/* Closes at once; what was not sent yet is lost. NULL is fine. */
void conn_free(struct conn *c);
/* Queue bytes, once connected; they are copied. 0 or -ENOMEM. */
int conn_write(struct conn *c, const uint8_t *data, size_t size);
