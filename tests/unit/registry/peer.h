/* SPDX-License-Identifier: MIT */
/* A scripted gRPC server on loopback that speaks as a Nacos server does, right or wrong as the test wants: real
 * sockets, an nghttp2 server session per connection, on the test's own event loop. */
#pragma once
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <nghttp2/nghttp2.h>
#include <sys/queue.h>
#include "unit.h"
#include "registry/nacos_msg.h"

struct peer_stream {
	LIST_ENTRY(peer_stream) link;
	struct peer_conn *conn;
	int32_t id;
	bool is_push;  /* the push stream, not a unary call */
	bool answered; /* nothing more to send */
	struct evbuffer *in, *out;
};

struct peer_conn {
	LIST_ENTRY(peer_conn) link;
	struct peer *peer;
	struct bufferevent *bev;
	nghttp2_session *session;
	struct peer_stream *push; /* borrowed; NULL before it is open */
	LIST_HEAD(, peer_stream) streams;
	bool pumping;
};

struct peer {
	struct event_base *loop;
	struct evconnlistener *listener;
	uint16_t port;
	LIST_HEAD(, peer_conn) conns; /* newest first */
	/* script */
	bool negotiates, acknowledges;
	bool silent;   /* takes calls and never answers */
	int fail_code; /* the next n_fail subscribes are refused with it */
	unsigned n_fail;
	const char *answer; /* serviceInfo of the subscribe and query answers, %s is the service name */
	/* seen */
	unsigned n_conns, n_checks, n_setups, n_subscribes, n_queries, n_health, n_unsubscribes;
	char last_service[128];
	char answered_type[64], answered_id[64]; /* last message on the push stream after the setup */
	unsigned n_answers;
};

#define PEER_LIST                                                                                                      \
	"{\"name\":\"%s\",\"groupName\":\"DEFAULT_GROUP\",\"hosts\":[{\"ip\":\"10.0.0.1\",\"port\":80,\"weight\":1.0}" \
	"]}"
#define PEER_EMPTY "{\"name\":\"%s\",\"groupName\":\"DEFAULT_GROUP\",\"hosts\":[]}"

static void peer_flush(struct peer_conn *c)
{
	const uint8_t *data;
	ssize_t n;

	if (c->pumping)
		return;
	c->pumping = true;
	while ((n = nghttp2_session_mem_send(c->session, &data)) > 0)
		bufferevent_write(c->bev, data, (size_t)n);
	c->pumping = false;
}

static ssize_t peer_read(nghttp2_session *session, int32_t id, uint8_t *buf, size_t size, uint32_t *flags,
			 nghttp2_data_source *source, void *user)
{
	struct peer_stream *s = source->ptr;
	const nghttp2_nv ok = {(uint8_t *)"grpc-status", (uint8_t *)"0", 11, 1, NGHTTP2_NV_FLAG_NONE};
	int n = evbuffer_remove(s->out, buf, size);

	(void)user;
	if (evbuffer_get_length(s->out) || !s->answered)
		return n > 0 ? n : NGHTTP2_ERR_DEFERRED;
	*flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
	nghttp2_submit_trailer(session, id, &ok, 1);
	return n;
}

/* type and JSON text as one gRPC message on a stream. */
static void peer_write(struct peer_stream *s, const char *type, const char *json)
{
	struct nacos_bytes wire = {0};
	cJSON *body = json_parse(json, strlen(json));
	uint8_t prefix[5];

	assert_non_null(body);
	assert_int_equal(nacos_msg_pack(type, body, &wire), 0);
	prefix[0] = 0;
	for (int i = 0; i < 4; i++)
		prefix[1 + i] = (uint8_t)(wire.size >> (24 - 8 * i));
	evbuffer_add(s->out, prefix, sizeof(prefix));
	evbuffer_add(s->out, wire.data, wire.size);
	nacos_bytes_done(&wire);
	cJSON_Delete(body);
	(void)nghttp2_session_resume_data(s->conn->session, s->id);
	peer_flush(s->conn);
}

/* A push on the newest connection. */
static void peer_push(struct peer *p, const char *type, const char *json)
{
	struct peer_conn *c = LIST_FIRST(&p->conns);

	assert_true(c && c->push);
	peer_write(c->push, type, json);
}

/* A new list of a service. */
static void peer_notify(struct peer *p, const char *id, const char *list, const char *service)
{
	char info[4096], body[8192];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(info, sizeof(info), list, service);
#pragma GCC diagnostic pop
	snprintf(body, sizeof(body), "{\"requestId\":\"%s\",\"module\":\"naming\",\"serviceInfo\":%s}", id, info);
	peer_push(p, "NotifySubscriberRequest", body);
}

static void peer_answer_list(struct peer_stream *s, const char *type, const struct nacos_msg *m)
{
	struct peer *p = s->conn->peer;
	char info[4096], body[8192];

	snprintf(p->last_service, sizeof(p->last_service), "%s", json_string(m->body, "serviceName"));
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(info, sizeof(info), p->answer, p->last_service);
#pragma GCC diagnostic pop
	snprintf(body, sizeof(body), "{\"resultCode\":200,\"errorCode\":0,\"serviceInfo\":%s}", info);
	peer_write(s, type, body);
}

static void peer_refuse(struct peer_stream *s, int code)
{
	char body[256];

	snprintf(body, sizeof(body), "{\"resultCode\":500,\"errorCode\":%d,\"message\":\"as scripted\"}", code);
	peer_write(s, "ErrorResponse", body);
}

static void peer_call(struct peer_stream *s, const struct nacos_msg *m)
{
	struct peer *p = s->conn->peer;
	char body[256];

	s->answered = true;
	if (!strcmp(m->type_name, "ServerCheckRequest")) {
		p->n_checks++;
		snprintf(body, sizeof(body),
			 "{\"resultCode\":200,\"connectionId\":\"1\",\"supportAbilityNegotiation\":%s}",
			 p->negotiates ? "true" : "false");
		peer_write(s, "ServerCheckResponse", body);
	} else if (!strcmp(m->type_name, "HealthCheckRequest")) {
		p->n_health++;
		peer_write(s, "HealthCheckResponse", "{\"resultCode\":200}");
	} else if (!strcmp(m->type_name, "ServiceQueryRequest")) {
		p->n_queries++;
		peer_answer_list(s, "QueryServiceResponse", m);
	} else if (!json_bool(m->body, "subscribe", true)) {
		p->n_unsubscribes++;
		peer_write(s, "SubscribeServiceResponse", "{\"resultCode\":200}");
	} else {
		p->n_subscribes++;
		if (p->n_fail) {
			p->n_fail--;
			peer_refuse(s, p->fail_code);
		} else {
			peer_answer_list(s, "SubscribeServiceResponse", m);
		}
	}
}

static void peer_message(struct peer_stream *s, const struct nacos_msg *m)
{
	struct peer *p = s->conn->peer;

	if (!s->is_push) {
		if (!p->silent)
			peer_call(s, m);
	} else if (!strcmp(m->type_name, "ConnectionSetupRequest")) {
		p->n_setups++;
		if (p->acknowledges)
			peer_write(s, "SetupAckRequest",
				   "{\"headers\":{},\"abilityTable\":{},\"module\":\"internal\"}");
	} else {
		p->n_answers++;
		snprintf(p->answered_type, sizeof(p->answered_type), "%s", m->type_name);
		snprintf(p->answered_id, sizeof(p->answered_id), "%s", nacos_msg_request_id(m));
	}
}

static int peer_on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data, size_t size,
			void *user)
{
	struct peer_stream *s = nghttp2_session_get_stream_user_data(session, id);

	(void)flags;
	(void)user;
	evbuffer_add(s->in, data, size);
	while (evbuffer_get_length(s->in) >= 5) {
		const uint8_t *head = evbuffer_pullup(s->in, 5);
		size_t length = (size_t)head[1] << 24 | head[2] << 16 | head[3] << 8 | head[4];
		struct nacos_msg m = {0};
		const char *why = "";

		if (evbuffer_get_length(s->in) < 5 + length)
			break;
		head = evbuffer_pullup(s->in, (ssize_t)(5 + length));
		assert_int_equal(nacos_msg_parse(head + 5, length, &m, &why), 0);
		evbuffer_drain(s->in, 5 + length);
		peer_message(s, &m);
		nacos_msg_done(&m);
	}
	return 0;
}

static int peer_on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_size,
			  const uint8_t *value, size_t value_size, uint8_t flags, void *user)
{
	struct peer_stream *s = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);

	(void)flags;
	(void)user;
	if (s && name_size == 5 && !memcmp(name, ":path", 5) && value_size == strlen(NACOS_PATH_STREAM) &&
	    !memcmp(value, NACOS_PATH_STREAM, value_size)) {
		s->is_push = true;
		s->conn->push = s;
	}
	return 0;
}

static int peer_on_begin(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct peer_conn *c = user;
	struct peer_stream *s = calloc(1, sizeof(*s));

	s->conn = c;
	s->id = frame->hd.stream_id;
	s->in = evbuffer_new();
	s->out = evbuffer_new();
	LIST_INSERT_HEAD(&c->streams, s, link);
	nghttp2_session_set_stream_user_data(session, s->id, s);
	return 0;
}

static int peer_on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	const nghttp2_nv headers[] = {
		{(uint8_t *)":status", (uint8_t *)"200", 7, 3, NGHTTP2_NV_FLAG_NONE},
		{(uint8_t *)"content-type", (uint8_t *)"application/grpc", 12, 16, NGHTTP2_NV_FLAG_NONE},
	};
	nghttp2_data_provider provider = {.read_callback = peer_read};

	(void)user;
	if (frame->hd.type == NGHTTP2_HEADERS) {
		provider.source.ptr = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
		nghttp2_submit_response(session, frame->hd.stream_id, headers, 2, &provider);
	}
	return 0;
}

static void peer_stream_free(struct peer_stream *s)
{
	if (s->conn->push == s)
		s->conn->push = NULL;
	LIST_REMOVE(s, link);
	evbuffer_free(s->in);
	evbuffer_free(s->out);
	free(s);
}

static int peer_on_close(nghttp2_session *session, int32_t id, uint32_t code, void *user)
{
	struct peer_stream *s = nghttp2_session_get_stream_user_data(session, id);

	(void)code;
	(void)user;
	if (s)
		peer_stream_free(s);
	return 0;
}

static void peer_conn_free(struct peer_conn *c)
{
	nghttp2_session_del(c->session);
	while (!LIST_EMPTY(&c->streams))
		peer_stream_free(LIST_FIRST(&c->streams));
	bufferevent_free(c->bev);
	LIST_REMOVE(c, link);
	free(c);
}

static void peer_on_bytes(struct bufferevent *bev, void *user)
{
	struct peer_conn *c = user;
	struct evbuffer *in = bufferevent_get_input(bev);
	size_t size = evbuffer_get_length(in);

	c->pumping = true;
	assert_int_equal(nghttp2_session_mem_recv(c->session, evbuffer_pullup(in, -1), size), size);
	c->pumping = false;
	evbuffer_drain(in, size);
	peer_flush(c);
}

static void peer_on_event(struct bufferevent *bev, short what, void *user)
{
	(void)bev;
	(void)what;
	peer_conn_free(user);
}

static void peer_on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *from, int size,
			   void *user)
{
	struct peer *p = user;
	struct peer_conn *c = calloc(1, sizeof(*c));
	nghttp2_session_callbacks *callbacks;

	(void)listener;
	(void)from;
	(void)size;
	p->n_conns++;
	c->peer = p;
	c->bev = bufferevent_socket_new(p->loop, fd, BEV_OPT_CLOSE_ON_FREE);
	nghttp2_session_callbacks_new(&callbacks);
	nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, peer_on_begin);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, peer_on_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, peer_on_frame);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, peer_on_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, peer_on_close);
	nghttp2_session_server_new(&c->session, callbacks, c);
	nghttp2_session_callbacks_del(callbacks);
	nghttp2_submit_settings(c->session, NGHTTP2_FLAG_NONE, NULL, 0);
	bufferevent_setcb(c->bev, peer_on_bytes, NULL, peer_on_event, c);
	bufferevent_enable(c->bev, EV_READ | EV_WRITE);
	LIST_INSERT_HEAD(&p->conns, c, link);
	peer_flush(c);
}

static void peer_listen(struct peer *p)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(p->port)};
	socklen_t size = sizeof(address);

	p->listener = evconnlistener_new_bind(p->loop, peer_on_accept, p, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_REUSEABLE, 16,
					      (struct sockaddr *)&address, sizeof(address));
	assert_non_null(p->listener);
	getsockname(evconnlistener_get_fd(p->listener), (struct sockaddr *)&address, &size);
	p->port = ntohs(address.sin_port);
}

/* A well-behaved peer on a port of the kernel's choice. */
static void peer_init(struct peer *p, struct event_base *loop)
{
	*p = (struct peer){.loop = loop, .negotiates = true, .acknowledges = true, .answer = PEER_LIST};
	LIST_INIT(&p->conns);
	peer_listen(p);
}

/* All connections end; new ones are refused until peer_listen(). */
static void peer_stop(struct peer *p)
{
	while (!LIST_EMPTY(&p->conns))
		peer_conn_free(LIST_FIRST(&p->conns));
	if (p->listener)
		evconnlistener_free(p->listener);
	p->listener = NULL;
}
