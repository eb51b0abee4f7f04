/* SPDX-License-Identifier: MIT */
/* The control socket's server side: libevent's HTTP server on a Unix socket. Who may connect is the file system's
 * business: the socket is its owner's alone. */
#include "control.h"
#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <event2/listener.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "../base/cleanup.h"
#include "../base/json.h"
#include "../base/utf8.h"

#define MAX_BODY_BYTES	 65536
#define MAX_HEADER_BYTES 16384

struct control {
	struct evhttp *http;
	char *path; /* owned; set once the socket file is ours */
	const struct control_route *routes;
	void *ctx;
};

static int address_of(const char *path, struct sockaddr_un *ret)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	if (strlen(path) >= sizeof(a.sun_path))
		return -ENAMETOOLONG;
	memcpy(a.sun_path, path, strlen(path));
	*ret = a;
	return 0;
}

/* Every missing folder above the socket, each its owner's alone to write. */
static int folder_make(const char *path)
{
	_cleanup_free_ char *copy = strdup(path);

	if (!copy)
		return -ENOMEM;
	for (char *slash = strchr(copy + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		if (mkdir(copy, 0755) < 0 && errno != EEXIST)
			return -errno;
		*slash = '/';
	}
	return 0;
}

/* A file that nobody answers behind was left by an agent that died. */
static int stale_remove(const char *path, const struct sockaddr_un *a)
{
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct stat st;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode))
		return -EEXIST;
	if (fd < 0)
		return -errno;
	if (!connect(fd, (const struct sockaddr *)a, sizeof(*a)))
		return -EADDRINUSE;
	return unlink(path) < 0 ? -errno : 0;
}

static int socket_open(const char *path)
{
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct sockaddr_un a;
	mode_t mask;
	int r;

	if (fd < 0)
		return -errno;
	r = address_of(path, &a);
	if (!r)
		r = folder_make(path);
	if (!r)
		r = stale_remove(path, &a);
	if (r < 0)
		return r;
	mask = umask(0177);
	r = bind(fd, (const struct sockaddr *)&a, sizeof(a)) < 0 ? -errno : 0;
	(void)umask(mask);
	if (r < 0)
		return r;
	if (listen(fd, SOMAXCONN) < 0) {
		r = -errno;
		(void)unlink(path);
		return r;
	}
	return TAKE_FD(fd);
}

static const char *method_name(const struct evhttp_request *q)
{
	switch (evhttp_request_get_command(q)) {
	case EVHTTP_REQ_GET:
		return "GET";
	case EVHTTP_REQ_POST:
		return "POST";
	default:
		return "";
	}
}

static const char *status_text(int code)
{
	switch (code) {
	case 200:
		return "OK";
	case 400:
		return "Bad Request";
	case 404:
		return "Not Found";
	case 405:
		return "Method Not Allowed";
	case 409:
		return "Conflict";
	default:
		return code < 500 ? "Refused" : "Internal Server Error";
	}
}

static void text_free(const void *data, size_t size, void *arg)
{
	(void)size;
	(void)arg;
	cJSON_free((void *)(uintptr_t)data);
}

static void answer(struct evhttp_request *q, int code, const cJSON *json)
{
	struct evkeyvalq *headers = evhttp_request_get_output_headers(q);
	struct evbuffer *out = evhttp_request_get_output_buffer(q);
	char *text = json ? cJSON_PrintUnformatted(json) : NULL;

	if (!text) {
		evhttp_send_error(q, 500, NULL);
		return;
	}
	(void)evhttp_add_header(headers, "Content-Type", "application/json");
	/* handed over, not copied: an answer may be tens of megabytes */
	if (evbuffer_add_reference(out, text, strlen(text), text_free, NULL) < 0)
		cJSON_free(text);
	evhttp_send_reply(q, code, status_text(code), NULL);
}

static void answer_error(struct evhttp_request *q, int code, const char *why)
{
	_cleanup_json_ cJSON *json = cJSON_CreateObject();

	if (json && cJSON_AddStringToObject(json, "error", why))
		answer(q, code, json);
	else
		evhttp_send_error(q, 500, NULL);
}

/* What the client sent may be quoted in a refusal, and need not be UTF-8; JSON has to be. */
static void clean(char *text)
{
	if (utf8_valid(text, strlen(text)))
		return;
	for (; *text; text++)
		if (*text & 0x80)
			*text = '?';
}

/* true and the value (NULL: no body), or false when there is a body that is no JSON. */
static bool body_parse(struct evhttp_request *q, cJSON **ret)
{
	struct evbuffer *in = evhttp_request_get_input_buffer(q);
	size_t n = evbuffer_get_length(in);

	*ret = n ? json_parse((const char *)evbuffer_pullup(in, -1), n) : NULL;
	return !n || *ret;
}

static void on_request(struct evhttp_request *q, void *arg)
{
	struct control *c = arg;
	const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(q);
	const char *path = uri ? evhttp_uri_get_path(uri) : NULL, *query = uri ? evhttp_uri_get_query(uri) : NULL;
	_cleanup_json_ cJSON *body = NULL, *json = NULL;
	char why[512] = "no such page";
	bool known = false;
	int code = 500;

	if (!path)
		path = "";
	for (const struct control_route *r = c->routes; r->path; r++) {
		if (strcmp(r->path, path))
			continue;
		known = true;
		if (strcmp(r->method, method_name(q)))
			continue;
		if (!body_parse(q, &body)) {
			answer_error(q, 400, "the request's body is not JSON");
			return;
		}
		json = r->handler(c->ctx, body, query ? query : "", &code, why, sizeof(why));
		if (json) {
			answer(q, 200, json);
			return;
		}
		clean(why);
		answer_error(q, code, why);
		return;
	}
	answer_error(q, known ? 405 : 404, known ? "this page does not take that method" : why);
}

struct control *control_new(struct event_base *loop, const char *socket_path, const struct control_route *routes,
			    void *ctx)
{
	_cleanup_close_ int fd = -1;
	struct evconnlistener *listener;
	struct control *c = calloc(1, sizeof(*c));
	int r = -ENOMEM;

	if (!c)
		return NULL;
	c->routes = routes;
	c->ctx = ctx;
	c->http = evhttp_new(loop);
	if (!c->http)
		goto fail;
	fd = socket_open(socket_path);
	if (fd < 0) {
		r = fd;
		goto fail;
	}
	c->path = strdup(socket_path);
	listener = evconnlistener_new(loop, NULL, NULL, LEV_OPT_CLOSE_ON_FREE, 0, fd);
	if (!c->path || !listener) {
		(void)unlink(socket_path);
		goto fail;
	}
	(void)TAKE_FD(fd);
	if (!evhttp_bind_listener(c->http, listener)) {
		evconnlistener_free(listener);
		goto fail;
	}
	evhttp_set_max_body_size(c->http, MAX_BODY_BYTES);
	evhttp_set_max_headers_size(c->http, MAX_HEADER_BYTES);
	evhttp_set_timeout(c->http, 60);
	evhttp_set_gencb(c->http, on_request, c);
	return c;
fail:
	control_free(c);
	errno = -r;
	return NULL;
}

void control_free(struct control *c)
{
	if (!c)
		return;
	if (c->path)
		(void)unlink(c->path);
	if (c->http)
		evhttp_free(c->http);
	free(c->path);
	free(c);
}
