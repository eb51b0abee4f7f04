// SPDX-License-Identifier: MIT
/* The client against an nghttp2 server session, bytes handed from one to the other: no socket. */
#include <errno.h>
#include <nghttp2/nghttp2.h>
#include "unit.h"
#include "base/cleanup.h"
#include "net/grpc.h"

#define BOUND	   1000
#define SENT_BYTES (64 << 10)

/* What the server sends on stream 1 once the request is there, and how it ends it. */
struct script {
	const uint8_t *data;
	size_t size;
	const char *http_status, *grpc_status, *grpc_message;
	uint32_t reset; /* instead of trailers */
	bool keep_open;
	size_t at;
};

struct end {
	nghttp2_session *server;
	struct grpc *client;
	struct script *script;
	uint8_t seen[SENT_BYTES]; /* message bytes of the client */
	size_t n_seen;
	bool seen_end;
	/* what the handler of the client was told */
	unsigned n_messages, n_ends;
	uint8_t got[SENT_BYTES];
	size_t n_got;
	int status;
	char why[256];
};

static nghttp2_nv nv(const char *name, const char *value)
{
	return (nghttp2_nv){(uint8_t *)name, (uint8_t *)value, strlen(name), strlen(value), NGHTTP2_NV_FLAG_NONE};
}

static ssize_t server_read(nghttp2_session *s, int32_t stream, uint8_t *buf, size_t size, uint32_t *flags,
			   nghttp2_data_source *source, void *user)
{
	struct script *script = source->ptr;
	size_t n = script->size - script->at < size ? script->size - script->at : size;
	nghttp2_nv trailers[2];
	size_t n_trailers = 0;

	(void)user;
	memcpy(buf, script->data + script->at, n);
	script->at += n;
	if (script->at < script->size)
		return (ssize_t)n;
	if (script->keep_open)
		return n ? (ssize_t)n : NGHTTP2_ERR_DEFERRED;
	*flags |= NGHTTP2_DATA_FLAG_EOF;
	if (script->reset) {
		*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
		nghttp2_submit_rst_stream(s, NGHTTP2_FLAG_NONE, stream, script->reset);
		return (ssize_t)n;
	}
	if (script->grpc_status)
		trailers[n_trailers++] = nv("grpc-status", script->grpc_status);
	if (script->grpc_message)
		trailers[n_trailers++] = nv("grpc-message", script->grpc_message);
	if (n_trailers) {
		*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
		nghttp2_submit_trailer(s, stream, trailers, n_trailers);
	}
	return (ssize_t)n;
}

static int server_frame(nghttp2_session *s, const nghttp2_frame *frame, void *user)
{
	struct end *e = user;
	nghttp2_data_provider provider = {.source.ptr = e->script, .read_callback = server_read};
	nghttp2_nv headers[] = {nv(":status", e->script->http_status), nv("content-type", "application/grpc")};

	if (frame->hd.type == NGHTTP2_HEADERS)
		nghttp2_submit_response(s, frame->hd.stream_id, headers, 2, &provider);
	if (frame->hd.type == NGHTTP2_DATA && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
		e->seen_end = true;
	return 0;
}

static int server_data(nghttp2_session *s, uint8_t flags, int32_t stream, const uint8_t *data, size_t size, void *user)
{
	struct end *e = user;

	(void)s;
	(void)flags;
	(void)stream;
	assert_true(e->n_seen + size <= sizeof(e->seen));
	memcpy(e->seen + e->n_seen, data, size);
	e->n_seen += size;
	return 0;
}

static void on_message(void *ctx, const uint8_t *message, size_t size)
{
	struct end *e = ctx;

	e->n_messages++;
	memcpy(e->got + e->n_got, message, size);
	e->n_got += size;
}

static void on_end(void *ctx, int status, const char *why)
{
	struct end *e = ctx;

	e->n_ends++;
	e->status = status;
	snprintf(e->why, sizeof(e->why), "%s", why);
}

static void end_init(struct end *e, struct script *script)
{
	nghttp2_session_callbacks *callbacks;

	memset(e, 0, sizeof(*e));
	e->script = script;
	if (!script->http_status)
		script->http_status = "200";
	assert_int_equal(nghttp2_session_callbacks_new(&callbacks), 0);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, server_frame);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, server_data);
	assert_int_equal(nghttp2_session_server_new(&e->server, callbacks, e), 0);
	nghttp2_session_callbacks_del(callbacks);
	assert_int_equal(nghttp2_submit_settings(e->server, NGHTTP2_FLAG_NONE, NULL, 0), 0);
	e->client = grpc_new("server:9848", BOUND);
	assert_non_null(e->client);
}

static void end_done(struct end *e)
{
	grpc_free(e->client);
	nghttp2_session_del(e->server);
}

/* Carry bytes both ways, in pieces of at most step bytes towards the client, until both are quiet. */
static void carry(struct end *e, size_t step)
{
	const uint8_t *data;
	bool moved = true;
	ssize_t n;

	while (moved) {
		moved = false;
		while ((n = grpc_send(e->client, &data)) > 0) {
			assert_int_equal(nghttp2_session_mem_recv(e->server, data, (size_t)n), n);
			moved = true;
		}
		while ((n = nghttp2_session_mem_send(e->server, &data)) > 0) {
			for (ssize_t at = 0; at < n; at += (ssize_t)step)
				assert_int_equal(grpc_receive(e->client, data + at,
							      (size_t)(n - at) < step ? (size_t)(n - at) : step),
						 0);
			moved = true;
		}
	}
}

static struct grpc_call *call(struct end *e, const char *message)
{
	const struct grpc_handler handler = {on_message, on_end, e};
	struct grpc_call *c = grpc_open(e->client, "/Service/method", &handler);

	assert_non_null(c);
	assert_int_equal(grpc_write(c, (const uint8_t *)message, strlen(message)), 0);
	return c;
}

#define TWO_MESSAGES "\0\0\0\0\3abc\0\0\0\0\0\0\0\0\0\2de"

static void unary(void **state)
{
	struct script script = {(const uint8_t *)"\0\0\0\0\3abc", 8, .grpc_status = "0"};
	struct end e;

	(void)state;
	end_init(&e, &script);
	grpc_finish(call(&e, "hello"));
	carry(&e, SIZE_MAX / 2);
	assert_int_equal(e.n_seen, 10);
	assert_memory_equal(e.seen, "\0\0\0\0\5hello", 10);
	assert_true(e.seen_end);
	assert_int_equal(e.n_messages, 1);
	assert_memory_equal(e.got, "abc", 3);
	assert_int_equal(e.n_ends, 1);
	assert_int_equal(e.status, GRPC_OK);
	end_done(&e);
}

static void cut_anywhere(void **state)
{
	(void)state;
	for (size_t step = 1; step <= 40; step++) {
		struct script script = {(const uint8_t *)TWO_MESSAGES, 20, .grpc_status = "0"};
		struct end e;

		end_init(&e, &script);
		grpc_finish(call(&e, ""));
		carry(&e, step);
		assert_int_equal(e.n_messages, 3);
		assert_int_equal(e.n_got, 5);
		assert_memory_equal(e.got, "abcde", 5);
		assert_int_equal(e.n_ends, 1);
		end_done(&e);
	}
}

static void both_ways_on_one_stream(void **state)
{
	struct script script = {(const uint8_t *)TWO_MESSAGES, 20, .keep_open = true};
	struct grpc_call *stream;
	struct end e;

	(void)state;
	end_init(&e, &script);
	stream = call(&e, "one");
	carry(&e, SIZE_MAX / 2);
	assert_int_equal(e.n_messages, 3);
	assert_int_equal(e.n_ends, 0);
	assert_false(e.seen_end);
	assert_int_equal(grpc_write(stream, (const uint8_t *)"two", 3), 0);
	assert_int_equal(grpc_write(stream, (const uint8_t *)"three", 5), 0);
	carry(&e, SIZE_MAX / 2);
	assert_int_equal(e.n_seen, 26);
	assert_memory_equal(e.seen, "\0\0\0\0\3one\0\0\0\0\3two\0\0\0\0\5three", 26);
	/* the server ends the stream: our half is ended too */
	script.keep_open = false;
	script.grpc_status = "14";
	script.grpc_message = "shutting%20down%0A";
	assert_int_equal(nghttp2_session_resume_data(e.server, 1), 0);
	carry(&e, SIZE_MAX / 2);
	assert_true(e.seen_end);
	assert_int_equal(e.n_ends, 1);
	assert_int_equal(e.status, GRPC_UNAVAILABLE);
	assert_string_equal(e.why, "shutting down?");
	end_done(&e);
}

static void bad_ends(void **state)
{
	static const struct {
		const char *what;
		struct script script;
		int status;
		unsigned n_messages;
	} rows[] = {
		{"no trailers", {.data = (const uint8_t *)""}, -EPROTO, 0},
		{"status of trailers", {(const uint8_t *)"", 0, .grpc_status = "13"}, GRPC_INTERNAL, 0},
		{"status is no number", {(const uint8_t *)"", 0, .grpc_status = "1x"}, GRPC_UNKNOWN, 0},
		{"HTTP error with a text", {(const uint8_t *)"<html>no</html>", 15, .http_status = "502"}, -EPROTO, 0},
		{"reset", {(const uint8_t *)"\0\0\0\0\1x", 6, .reset = NGHTTP2_INTERNAL_ERROR}, -ECONNRESET, 1},
		{"compressed", {(const uint8_t *)"\1\0\0\0\1x", 6, .grpc_status = "0"}, -EPROTO, 0},
		{"one byte over the bound", {(const uint8_t *)"\0\0\0\3\351", 5, .keep_open = true}, -EMSGSIZE, 0},
		{"4 GiB announced", {(const uint8_t *)"\0\377\377\377\377", 5, .keep_open = true}, -EMSGSIZE, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct script script = rows[i].script;
		struct end e;

		print_message("%s\n", rows[i].what);
		end_init(&e, &script);
		grpc_finish(call(&e, ""));
		carry(&e, SIZE_MAX / 2);
		assert_int_equal(e.n_ends, 1);
		assert_int_equal(e.status, rows[i].status);
		assert_int_equal(e.n_messages, rows[i].n_messages);
		assert_true(e.why[0]);
		end_done(&e);
	}
}

static void at_the_bound(void **state)
{
	uint8_t data[5 + BOUND] = {0, 0, 0, BOUND >> 8, BOUND & 0xff};
	struct script script = {data, sizeof(data), .grpc_status = "0"};
	_cleanup_free_ uint8_t *large = calloc(1, BOUND + 1);
	struct grpc_call *c;
	struct end e;

	(void)state;
	end_init(&e, &script);
	c = call(&e, "");
	assert_int_equal(grpc_write(c, large, BOUND + 1), -EMSGSIZE);
	grpc_finish(c);
	carry(&e, 100);
	assert_int_equal(e.n_messages, 1);
	assert_int_equal(e.n_got, BOUND);
	assert_int_equal(e.status, GRPC_OK);
	end_done(&e);
}

static void cancelled(void **state)
{
	struct script script = {(const uint8_t *)TWO_MESSAGES, 20, .keep_open = true};
	struct end e;

	(void)state;
	end_init(&e, &script);
	grpc_cancel(call(&e, "never sent"));
	carry(&e, SIZE_MAX / 2);
	assert_int_equal(e.n_seen, 0);
	grpc_cancel(call(&e, "x")); /* and one that is open: */
	struct grpc_call *c = call(&e, "y");
	carry(&e, SIZE_MAX / 2);
	e.n_messages = 0;
	grpc_cancel(c);
	carry(&e, SIZE_MAX / 2);
	assert_int_equal(e.n_messages, 0);
	assert_int_equal(e.n_ends, 0);
	end_done(&e);
}

static void going_away(void **state)
{
	struct script script = {(const uint8_t *)"", 0, .grpc_status = "0"};
	const struct grpc_handler handler = {on_message, on_end, NULL};
	struct end e;

	(void)state;
	end_init(&e, &script);
	carry(&e, SIZE_MAX / 2);
	assert_false(grpc_is_going_away(e.client));
	nghttp2_submit_goaway(e.server, NGHTTP2_FLAG_NONE, 0, NGHTTP2_NO_ERROR, NULL, 0);
	carry(&e, SIZE_MAX / 2);
	assert_true(grpc_is_going_away(e.client));
	assert_null(grpc_open(e.client, "/Service/method", &handler));
	end_done(&e);
}

static void not_http2(void **state)
{
	static const uint8_t text[] = "HTTP/1.1 400 Bad Request\r\n\r\n";
	struct script script = {.data = (const uint8_t *)""};
	const uint8_t *data;
	struct end e;
	int r;

	(void)state;
	end_init(&e, &script);
	grpc_finish(call(&e, ""));
	r = grpc_receive(e.client, text, sizeof(text) - 1);
	while (grpc_send(e.client, &data) > 0)
		;
	assert_true(r == -EPROTO || grpc_is_going_away(e.client));
	end_done(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE("a unary call sends one message and gets one", unary),
		CASE("messages cut and joined at any byte come out whole", cut_anywhere),
		CASE("a stream carries messages both ways until the server ends it", both_ways_on_one_stream),
		CASE("whatever ends a call badly is told once, with a reason", bad_ends),
		CASE("a message of exactly the bound passes, one byte more is not sent", at_the_bound),
		CASE("a cancelled call is silent", cancelled),
		CASE("after GOAWAY no call is opened", going_away),
		CASE("an answer that is not HTTP/2 is an error", not_http2),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
