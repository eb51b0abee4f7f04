// SPDX-License-Identifier: MIT
/* The life of a connection (com.alibaba.nacos.common.remote.client, GrpcClient.connectToServer):
 *
 *   connect ─▶ CHECKING ──ServerCheckResponse──▶ SETTING_UP ──SetupAck, or 100 ms──▶ READY ─▶ lost
 *              ServerCheckRequest   3 s          stream, ConnectionSetupRequest  5 s
 *
 * Loss is decided wherever it is seen, also inside grpc_receive(), where nothing may be freed: so it is only noted
 * there, and told to the owner from an event of its own. */
#include "nacos_grpc.h"

#include <errno.h>
#include <event2/event.h>
#include <string.h>
#include <sys/queue.h>
#include "../base/cleanup.h"
#include "../base/clock.h"
#include "../net/conn.h"
#include "../net/grpc.h"
#include "nacos.h"

/* Source of the times: com.alibaba.nacos.common.remote.client.grpc.DefaultGrpcClientConfig. */
#define CHECK_MS  3000 /* connect and server check */
#define ACK_MS	  5000
#define SETTLE_MS 100 /* for a server that does not acknowledge the setup */
#define CALL_MS	  3000
#define IDLE_MS	  5000
#define WHY_BYTES 256

enum step { CHECKING, SETTING_UP, READY, LOST };

struct nacos_call {
	LIST_ENTRY(nacos_call) link;
	struct nacos_grpc *n;
	struct grpc_call *call; /* NULL when it is over */
	struct event *limit;
	struct nacos_call_handler handler;
	struct nacos_msg answer; /* type_name NULL: none yet */
	char why[WHY_BYTES];	 /* why there is none */
};

struct nacos_grpc {
	struct nacos_grpc_handler handler;
	enum step step;
	char *ns, *client_version;
	struct conn *conn;
	struct grpc *grpc;
	struct grpc_call *stream; /* NULL before it is open and after it ended */
	LIST_HEAD(, nacos_call) calls;
	struct event *limit;  /* of the step */
	struct event *settle; /* from setup to ready, where no acknowledgement comes */
	struct event *idle;
	struct event *lost;
	uint64_t received_ns; /* of the bytes being looked at */
	bool pumping;	      /* inside grpc_receive() or grpc_send() */
	char why[WHY_BYTES];
};

static void arm(struct event *e, unsigned ms)
{
	const struct timeval t = {ms / 1000, ms % 1000 * 1000};

	(void)event_add(e, &t);
}

static void lose(struct nacos_grpc *n, const char *what, const char *why)
{
	if (n->step == LOST)
		return;
	n->step = LOST;
	snprintf(n->why, sizeof(n->why), "%s%s%s", what, *what && *why ? ": " : "", why);
	event_del(n->limit);
	event_del(n->settle);
	event_del(n->idle);
	event_active(n->lost, EV_TIMEOUT, 0);
}

/* Send what is due. Inside grpc_receive() or grpc_send() it is left to whoever called those. */
static void flush(struct nacos_grpc *n)
{
	const uint8_t *data;
	long size;

	if (n->pumping)
		return;
	n->pumping = true;
	while ((size = grpc_send(n->grpc, &data)) > 0)
		if (conn_write(n->conn, data, (size_t)size)) {
			lose(n, "send", "out of memory");
			break;
		}
	n->pumping = false;
	if (size < 0)
		lose(n, "send", "HTTP/2 session failed");
}

/* ---- calls ---- */

static void call_free(struct nacos_call *c)
{
	if (!c)
		return;
	if (c->limit)
		event_free(c->limit);
	nacos_msg_done(&c->answer);
	free(c);
}
DEFINE_CLEANUP(struct nacos_call *, call_free)

/* Takes the call off the list and tells its owner, unless the connection is lost with all its calls. */
static void call_conclude(struct nacos_call *c)
{
	_cleanup_(call_freep) struct nacos_call *mine = c;
	struct nacos_grpc *n = c->n;
	const char *why = "";

	LIST_REMOVE(c, link);
	if (n->step == LOST)
		return;
	if (!c->answer.type_name) {
		c->handler.on_answer(c->handler.ctx, NULL, c->why, n->received_ns);
		return;
	}
	if (nacos_msg_error(&c->answer, &why) == NACOS_ERROR_UNREGISTERED) {
		lose(n, "the server has forgotten the connection", why);
		return;
	}
	c->handler.on_answer(c->handler.ctx, &c->answer, "", n->received_ns);
}

static void on_call_message(void *user, const uint8_t *data, size_t size)
{
	struct nacos_call *c = user;
	const char *why = "";

	if (!c->answer.type_name && nacos_msg_parse(data, size, &c->answer, &why))
		snprintf(c->why, sizeof(c->why), "answer is %s", why);
}

static void on_call_end(void *user, int status, const char *why)
{
	struct nacos_call *c = user;

	c->call = NULL;
	if (status != GRPC_OK)
		nacos_msg_done(&c->answer);
	if (!c->answer.type_name && !c->why[0])
		snprintf(c->why, sizeof(c->why), "%s", status == GRPC_OK ? "empty answer" : why);
	call_conclude(c);
}

static void on_call_limit(evutil_socket_t fd, short what, void *user)
{
	struct nacos_call *c = user;
	struct nacos_grpc *n = c->n;

	(void)fd;
	(void)what;
	grpc_cancel(c->call);
	nacos_msg_done(&c->answer);
	snprintf(c->why, sizeof(c->why), "no answer in %d s", CALL_MS / 1000);
	n->received_ns = clock_monotonic_ns();
	call_conclude(c);
	flush(n);
}

struct nacos_call *nacos_grpc_call(struct nacos_grpc *n, const struct nacos_bytes *request,
				   const struct nacos_call_handler *handler)
{
	_cleanup_(call_freep) struct nacos_call *c = calloc(1, sizeof(*c));
	const struct grpc_handler grpc_handler = {on_call_message, on_call_end, c};

	errno = ENOMEM;
	if (!c)
		return NULL;
	c->n = n;
	c->handler = *handler;
	c->limit = event_new(event_get_base(n->limit), -1, 0, on_call_limit, c);
	if (!c->limit)
		return NULL;
	c->call = grpc_open(n->grpc, NACOS_PATH_REQUEST, &grpc_handler);
	if (!c->call)
		return NULL;
	if (grpc_write(c->call, request->data, request->size)) {
		grpc_cancel(c->call);
		errno = ENOMEM;
		return NULL;
	}
	grpc_finish(c->call);
	arm(c->limit, CALL_MS);
	LIST_INSERT_HEAD(&n->calls, c, link);
	flush(n);
	return TAKE_PTR(c);
}

void nacos_grpc_cancel(struct nacos_call *c)
{
	struct nacos_grpc *n = c->n;

	grpc_cancel(c->call);
	LIST_REMOVE(c, link);
	call_free(c);
	flush(n);
}

/* ---- the push stream ---- */

static int stream_write(struct nacos_grpc *n, struct nacos_bytes *message)
{
	int r = grpc_write(n->stream, message->data, message->size);

	nacos_bytes_done(message);
	flush(n);
	return r;
}

/* 0 when the answer is queued. */
static int answer(struct nacos_grpc *n, const struct nacos_msg *m)
{
	struct nacos_bytes message = {0};
	int r = nacos_msg_answer(m, &message);

	return r ?: stream_write(n, &message);
}

static void become_ready(struct nacos_grpc *n)
{
	n->step = READY;
	event_del(n->limit);
	event_del(n->settle);
	arm(n->idle, IDLE_MS);
	n->handler.on_ready(n->handler.ctx);
}

static void on_push(void *user, const uint8_t *data, size_t size)
{
	_cleanup_(nacos_msg_done) struct nacos_msg m = {0};
	struct nacos_grpc *n = user;
	const char *why = "";

	if (n->step == LOST)
		return;
	if (nacos_msg_parse(data, size, &m, &why)) {
		n->handler.on_ignored(n->handler.ctx, why);
		return;
	}
	if (m.type == NACOS_MSG_SETUP_ACK) {
		if (n->step == SETTING_UP)
			become_ready(n);
		return;
	}
	/* before anything is done with it: the server waits 5 s for the answer and then sends again */
	switch (answer(n, &m)) {
	case 0:
		break;
	case -EINVAL:
		n->handler.on_ignored(n->handler.ctx, m.type_name);
		return;
	default:
		lose(n, "answer", "out of memory");
		return;
	}
	if (m.type == NACOS_MSG_NOTIFY)
		n->handler.on_notify(n->handler.ctx, &m, n->received_ns);
	else if (m.type == NACOS_MSG_RESET)
		n->handler.on_reset(n->handler.ctx, nacos_msg_reset_host(&m), nacos_msg_reset_port(&m));
}

static void on_stream_end(void *user, int status, const char *why)
{
	struct nacos_grpc *n = user;

	n->stream = NULL;
	lose(n, n->step == SETTING_UP ? "the server refused the connection" : "the server ended the push stream",
	     status == GRPC_OK ? "" : why);
}

/* ---- steps ---- */

static void setup(struct nacos_grpc *n, bool negotiates)
{
	const struct grpc_handler handler = {on_push, on_stream_end, n};
	struct nacos_bytes message = {0};

	n->step = SETTING_UP;
	n->stream = grpc_open(n->grpc, NACOS_PATH_STREAM, &handler);
	if (!n->stream || nacos_msg_setup(n->ns, n->client_version, &message) || stream_write(n, &message)) {
		lose(n, "connection setup", "out of memory");
		return;
	}
	event_del(n->limit);
	arm(negotiates ? n->limit : n->settle, negotiates ? ACK_MS : SETTLE_MS);
}

static void on_checked(void *user, const struct nacos_msg *m, const char *why, uint64_t received_ns)
{
	struct nacos_grpc *n = user;

	(void)received_ns;
	if (!m)
		lose(n, "server check", why);
	else if (nacos_msg_error(m, &why))
		lose(n, "server check", why);
	else
		setup(n, nacos_msg_negotiates(m));
}

static void on_health(void *user, const struct nacos_msg *m, const char *why, uint64_t received_ns)
{
	struct nacos_grpc *n = user;

	(void)received_ns;
	if (!m || nacos_msg_error(m, &why))
		lose(n, "health check", why);
}

/* Make a call of our own; not being able to is a loss. */
static void call_own(struct nacos_grpc *n, int (*build)(struct nacos_bytes *ret),
		     void (*on_answer)(void *ctx, const struct nacos_msg *m, const char *why, uint64_t received_ns))
{
	const struct nacos_call_handler handler = {on_answer, n};
	_cleanup_(nacos_bytes_done) struct nacos_bytes request = {0};

	if (build(&request) || !nacos_grpc_call(n, &request, &handler))
		lose(n, "call", strerror(errno));
}

static void on_idle(evutil_socket_t fd, short what, void *user)
{
	struct nacos_grpc *n = user;

	(void)fd;
	(void)what;
	call_own(n, nacos_msg_health_check, on_health);
}

static void on_limit(evutil_socket_t fd, short what, void *user)
{
	struct nacos_grpc *n = user;

	(void)fd;
	(void)what;
	if (n->step == CHECKING)
		lose(n, "connect and server check", "not done in 3 s");
	else
		lose(n, "connection setup", "not acknowledged in 5 s");
}

static void on_settle(evutil_socket_t fd, short what, void *user)
{
	(void)fd;
	(void)what;
	become_ready(user);
}

static void on_loss(evutil_socket_t fd, short what, void *user)
{
	struct nacos_grpc *n = user;

	(void)fd;
	(void)what;
	n->handler.on_lost(n->handler.ctx, n->why);
}

/* ---- the socket's side ---- */

static void on_connected(void *user)
{
	struct nacos_grpc *n = user;

	if (n->step == CHECKING)
		call_own(n, nacos_msg_server_check, on_checked);
}

static void on_bytes(void *user, const uint8_t *data, size_t size, uint64_t received_ns)
{
	struct nacos_grpc *n = user;
	int r;

	if (n->step == LOST)
		return;
	n->received_ns = received_ns;
	n->pumping = true;
	r = grpc_receive(n->grpc, data, size);
	n->pumping = false;
	flush(n);
	if (r)
		lose(n, "receive", r == -ENOMEM ? "out of memory" : "the server does not speak HTTP/2");
	else if (grpc_is_going_away(n->grpc))
		lose(n, "the server is closing the connection", "");
	else if (n->step == READY)
		arm(n->idle, IDLE_MS);
}

static void on_closed(void *user, const char *why)
{
	struct nacos_grpc *n = user;

	lose(n, n->step == CHECKING ? "connect" : "connection", why);
}

static int events_new(struct nacos_grpc *n, struct event_base *loop)
{
	n->limit = event_new(loop, -1, 0, on_limit, n);
	n->settle = event_new(loop, -1, 0, on_settle, n);
	n->idle = event_new(loop, -1, 0, on_idle, n);
	n->lost = event_new(loop, -1, 0, on_loss, n);
	return n->limit && n->settle && n->idle && n->lost ? 0 : -ENOMEM;
}

DEFINE_CLEANUP(struct nacos_grpc *, nacos_grpc_free)

struct nacos_grpc *nacos_grpc_new(struct event_base *loop, const struct nacos_server *server, const char *ns,
				  const char *client_version, const struct nacos_grpc_handler *handler)
{
	_cleanup_(nacos_grpc_freep) struct nacos_grpc *n = calloc(1, sizeof(*n));
	const struct conn_handler conn_handler = {on_connected, on_bytes, on_closed, n};
	_cleanup_free_ char *authority = NULL;
	bool v6 = strchr(server->host, ':');

	errno = ENOMEM;
	if (!n)
		return NULL;
	LIST_INIT(&n->calls);
	n->handler = *handler;
	n->ns = strdup(ns);
	n->client_version = strdup(client_version);
	if (asprintf(&authority, v6 ? "[%s]:%u" : "%s:%u", server->host, server->grpc_port) < 0)
		authority = NULL;
	if (!n->ns || !n->client_version || !authority || events_new(n, loop))
		return NULL;
	n->grpc = grpc_new(authority, GRPC_MAX_MESSAGE_BYTES);
	if (!n->grpc)
		return NULL;
	n->conn = conn_new(loop, server->host, server->grpc_port, &conn_handler);
	if (!n->conn)
		return NULL;
	arm(n->limit, CHECK_MS);
	return TAKE_PTR(n);
}

void nacos_grpc_free(struct nacos_grpc *n)
{
	struct nacos_call *c;

	if (!n)
		return;
	conn_free(n->conn);
	grpc_free(n->grpc);
	while ((c = LIST_FIRST(&n->calls))) {
		LIST_REMOVE(c, link);
		call_free(c);
	}
	if (n->limit)
		event_free(n->limit);
	if (n->settle)
		event_free(n->settle);
	if (n->idle)
		event_free(n->idle);
	if (n->lost)
		event_free(n->lost);
	free(n->ns);
	free(n->client_version);
	free(n);
}
