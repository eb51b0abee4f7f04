// SPDX-License-Identifier: MIT
/* gRPC over an nghttp2 client session (grpc/grpc, doc/PROTOCOL-HTTP2.md). A message on the wire is
 *
 *     compressed flag (1 byte, 0 here) | length (4 bytes, big endian) | message
 *
 * and may be cut by DATA frames at any byte, so bytes of a call gather in an evbuffer (memory only, no socket) until a
 * whole message is there. The length is checked as soon as its five bytes are: nothing over the bound is ever gathered.
 */
#include "grpc.h"

#include <errno.h>
#include <event2/buffer.h>
#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>
#include "../base/cleanup.h"

#define PREFIX_BYTES 5
/* Wide enough that the largest message never waits for a window update. */
#define WINDOW_BYTES   (32 << 20)
#define WHY_BYTES      256
#define STATUS_UNKNOWN (-4096) /* no errno */

struct grpc_call {
	LIST_ENTRY(grpc_call) link;
	struct grpc *grpc;
	struct grpc_handler handler;
	int32_t stream;
	struct evbuffer *in, *out;
	bool finished;	 /* no more writes from us */
	bool cancelled;	 /* no more callbacks */
	int http_status; /* 0: not seen */
	int status;	 /* grpc-status, or -errno of what ended the call early, or STATUS_UNKNOWN */
	char why[WHY_BYTES];
};

struct grpc {
	nghttp2_session *session;
	char *authority;
	size_t max_message_bytes;
	bool going_away;
	LIST_HEAD(, grpc_call) calls;
};

static void call_free(struct grpc_call *call)
{
	if (!call)
		return;
	if (call->in)
		evbuffer_free(call->in);
	if (call->out)
		evbuffer_free(call->out);
	free(call);
}
DEFINE_CLEANUP(struct grpc_call *, call_free)

static void call_fail(struct grpc_call *call, int error, const char *why)
{
	if (call->status != STATUS_UNKNOWN)
		return;
	call->status = error;
	snprintf(call->why, sizeof(call->why), "%s", why);
	(void)nghttp2_submit_rst_stream(call->grpc->session, NGHTTP2_FLAG_NONE, call->stream, NGHTTP2_CANCEL);
}

/* Hand up every whole message gathered so far. */
static void call_deliver(struct grpc_call *call)
{
	while (!call->cancelled && call->status == STATUS_UNKNOWN) {
		uint8_t prefix[PREFIX_BYTES];
		if (evbuffer_copyout(call->in, prefix, sizeof(prefix)) < (ssize_t)sizeof(prefix))
			return;
		if (prefix[0]) {
			call_fail(call, -EPROTO, "compressed message, though compression was not offered");
			return;
		}
		size_t size = (size_t)prefix[1] << 24 | prefix[2] << 16 | prefix[3] << 8 | prefix[4];
		if (size > call->grpc->max_message_bytes) {
			char why[WHY_BYTES];
			snprintf(why, sizeof(why), "message of %zu bytes, over the bound of %zu", size,
				 call->grpc->max_message_bytes);
			call_fail(call, -EMSGSIZE, why);
			return;
		}
		if (evbuffer_get_length(call->in) < PREFIX_BYTES + size)
			return;
		const uint8_t *whole = evbuffer_pullup(call->in, (ssize_t)(PREFIX_BYTES + size));
		if (!whole) {
			call_fail(call, -ENOMEM, "out of memory");
			return;
		}
		call->handler.on_message(call->handler.ctx, whole + PREFIX_BYTES, size);
		evbuffer_drain(call->in, PREFIX_BYTES + size);
	}
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *data, size_t size,
		   void *user)
{
	struct grpc_call *call = nghttp2_session_get_stream_user_data(session, stream);

	(void)flags;
	(void)user;
	/* the body of an HTTP error is text for people */
	if (!call || call->cancelled || call->status != STATUS_UNKNOWN || call->http_status != 200)
		return 0;
	if (evbuffer_add(call->in, data, size)) {
		call_fail(call, -ENOMEM, "out of memory");
		return 0;
	}
	call_deliver(call);
	return 0;
}

static int hex_value(uint8_t c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* grpc-message is percent-encoded; what is not printable afterwards becomes '?', since it goes to logs. */
static void message_decode(const uint8_t *text, size_t size, char *ret, size_t ret_size)
{
	size_t n = 0;

	for (size_t i = 0; i < size && n + 1 < ret_size; i++) {
		uint8_t c = text[i];
		if (c == '%' && i + 2 < size && hex_value(text[i + 1]) >= 0 && hex_value(text[i + 2]) >= 0) {
			c = (uint8_t)(hex_value(text[i + 1]) << 4 | hex_value(text[i + 2]));
			i += 2;
		}
		ret[n++] = c >= 0x20 && c < 0x7f ? (char)c : '?';
	}
	ret[n] = 0;
}

/* Digits only, at most three: an HTTP or gRPC status. */
static int status_parse(const uint8_t *text, size_t size)
{
	int value = 0;

	if (!size || size > 3)
		return -1;
	for (size_t i = 0; i < size; i++) {
		if (text[i] < '0' || text[i] > '9')
			return -1;
		value = value * 10 + text[i] - '0';
	}
	return value;
}

static bool name_is(const char *wanted, const uint8_t *name, size_t size)
{
	return strlen(wanted) == size && !memcmp(wanted, name, size);
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_size,
		     const uint8_t *value, size_t value_size, uint8_t flags, void *user)
{
	struct grpc_call *call = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);

	(void)flags;
	(void)user;
	if (!call)
		return 0;
	if (name_is(":status", name, name_size)) {
		call->http_status = status_parse(value, value_size);
	} else if (name_is("grpc-status", name, name_size) && call->status == STATUS_UNKNOWN) {
		int status = status_parse(value, value_size);
		call->status = status < 0 ? GRPC_UNKNOWN : status;
	} else if (name_is("grpc-message", name, name_size) && !call->why[0]) {
		message_decode(value, value_size, call->why, sizeof(call->why));
	}
	return 0;
}

/* What ended the call: the peer's own word first, then what HTTP says. */
static void call_conclude(struct grpc_call *call, uint32_t error_code)
{
	if (call->status != STATUS_UNKNOWN) {
		if (!call->why[0])
			snprintf(call->why, sizeof(call->why), "gRPC status %d", call->status);
	} else if (call->http_status && call->http_status != 200) {
		call->status = -EPROTO;
		snprintf(call->why, sizeof(call->why), "HTTP status %d instead of gRPC", call->http_status);
	} else if (error_code != NGHTTP2_NO_ERROR) {
		call->status = -ECONNRESET;
		snprintf(call->why, sizeof(call->why), "stream reset: %s", nghttp2_http2_strerror(error_code));
	} else {
		call->status = -EPROTO;
		snprintf(call->why, sizeof(call->why), "stream ended without a gRPC status");
	}
}

static int on_stream_close(nghttp2_session *session, int32_t stream, uint32_t error_code, void *user)
{
	struct grpc_call *call = nghttp2_session_get_stream_user_data(session, stream);

	(void)user;
	if (!call)
		return 0;
	LIST_REMOVE(call, link);
	call_conclude(call, error_code);
	if (!call->cancelled)
		call->handler.on_end(call->handler.ctx, call->status, call->why);
	call_free(call);
	return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct grpc *g = user;
	struct grpc_call *call;

	if (frame->hd.type == NGHTTP2_GOAWAY)
		g->going_away = true;
	/* The peer ends the call: our half has to be ended too, or the stream stays half open for ever. */
	if ((frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) &&
	    (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)) {
		call = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
		if (call)
			grpc_finish(call);
	}
	return 0;
}

static ssize_t read_out(nghttp2_session *session, int32_t stream, uint8_t *buf, size_t size, uint32_t *flags,
			nghttp2_data_source *source, void *user)
{
	struct grpc_call *call = source->ptr;
	int n;

	(void)session;
	(void)stream;
	(void)user;
	n = evbuffer_remove(call->out, buf, size);
	if (n < 0)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	if (evbuffer_get_length(call->out))
		return n;
	if (call->finished)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	else if (!n)
		return NGHTTP2_ERR_DEFERRED;
	return n;
}

static int session_new(struct grpc *g)
{
	const nghttp2_settings_entry settings[] = {
		{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
		{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, WINDOW_BYTES},
	};
	nghttp2_session_callbacks *callbacks;
	int r;

	if (nghttp2_session_callbacks_new(&callbacks))
		return -ENOMEM;
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
	r = nghttp2_session_client_new(&g->session, callbacks, g);
	nghttp2_session_callbacks_del(callbacks);
	if (r)
		return -ENOMEM;
	if (nghttp2_submit_settings(g->session, NGHTTP2_FLAG_NONE, settings, sizeof(settings) / sizeof(*settings)) ||
	    nghttp2_session_set_local_window_size(g->session, NGHTTP2_FLAG_NONE, 0, WINDOW_BYTES))
		return -ENOMEM;
	return 0;
}

DEFINE_CLEANUP(struct grpc *, grpc_free)

struct grpc *grpc_new(const char *authority, size_t max_message_bytes)
{
	_cleanup_(grpc_freep) struct grpc *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	LIST_INIT(&g->calls);
	g->max_message_bytes = max_message_bytes;
	g->authority = strdup(authority);
	if (!g->authority || session_new(g)) {
		errno = ENOMEM;
		return NULL;
	}
	return TAKE_PTR(g);
}

void grpc_free(struct grpc *g)
{
	struct grpc_call *call;

	if (!g)
		return;
	/* the session goes first: it calls no callback for streams that are open when it is deleted */
	nghttp2_session_del(g->session);
	while ((call = LIST_FIRST(&g->calls))) {
		LIST_REMOVE(call, link);
		call_free(call);
	}
	free(g->authority);
	free(g);
}

int grpc_receive(struct grpc *g, const uint8_t *data, size_t size)
{
	ssize_t n = nghttp2_session_mem_recv(g->session, data, size);

	if (n < 0)
		return n == NGHTTP2_ERR_NOMEM ? -ENOMEM : -EPROTO;
	return 0;
}

long grpc_send(struct grpc *g, const uint8_t **ret)
{
	ssize_t n = nghttp2_session_mem_send(g->session, ret);

	if (n < 0)
		return n == NGHTTP2_ERR_NOMEM ? -ENOMEM : -EPROTO;
	return n;
}

bool grpc_is_going_away(const struct grpc *g)
{
	/* after an HTTP/2 error of the peer it is our own GOAWAY that ends the reading */
	return g->going_away || !nghttp2_session_want_read(g->session);
}

static nghttp2_nv header(const char *name, const char *value)
{
	/* nghttp2 copies both; the casts only drop const */
	return (nghttp2_nv){(uint8_t *)name, (uint8_t *)value, strlen(name), strlen(value), NGHTTP2_NV_FLAG_NONE};
}

struct grpc_call *grpc_open(struct grpc *g, const char *path, const struct grpc_handler *handler)
{
	_cleanup_(call_freep) struct grpc_call *call = calloc(1, sizeof(*call));
	const nghttp2_nv headers[] = {
		header(":method", "POST"),
		header(":scheme", "http"),
		header(":path", path),
		header(":authority", g->authority),
		header("te", "trailers"),
		header("content-type", "application/grpc"),
		header("user-agent", "steelyard"),
	};
	nghttp2_data_provider provider = {.read_callback = read_out};

	errno = ENOMEM;
	if (!call)
		return NULL;
	call->grpc = g;
	call->handler = *handler;
	call->status = STATUS_UNKNOWN;
	call->in = evbuffer_new();
	call->out = evbuffer_new();
	if (!call->in || !call->out)
		return NULL;
	if (grpc_is_going_away(g)) {
		errno = ECONNRESET;
		return NULL;
	}
	provider.source.ptr = call;
	call->stream =
		nghttp2_submit_request(g->session, NULL, headers, sizeof(headers) / sizeof(*headers), &provider, call);
	if (call->stream < 0) {
		errno = call->stream == NGHTTP2_ERR_NOMEM ? ENOMEM : ECONNRESET;
		return NULL;
	}
	LIST_INSERT_HEAD(&g->calls, call, link);
	return TAKE_PTR(call);
}

int grpc_write(struct grpc_call *call, const uint8_t *message, size_t size)
{
	const uint8_t prefix[PREFIX_BYTES] = {0, (uint8_t)(size >> 24), (uint8_t)(size >> 16), (uint8_t)(size >> 8),
					      (uint8_t)size};

	if (size > call->grpc->max_message_bytes)
		return -EMSGSIZE;
	if (evbuffer_expand(call->out, sizeof(prefix) + size) || evbuffer_add(call->out, prefix, sizeof(prefix)) ||
	    evbuffer_add(call->out, message, size))
		return -ENOMEM;
	/* refused while the stream is not deferred, which is when it reads by itself */
	(void)nghttp2_session_resume_data(call->grpc->session, call->stream);
	return 0;
}

void grpc_finish(struct grpc_call *call)
{
	call->finished = true;
	(void)nghttp2_session_resume_data(call->grpc->session, call->stream);
}

void grpc_cancel(struct grpc_call *call)
{
	call->cancelled = true;
	(void)nghttp2_submit_rst_stream(call->grpc->session, NGHTTP2_FLAG_NONE, call->stream, NGHTTP2_CANCEL);
}
