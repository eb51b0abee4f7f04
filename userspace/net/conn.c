// SPDX-License-Identifier: MIT
/* Look up (unless host is an address), then try the addresses in the order of the answer until one connects.
 *
 * A cancelled evdns lookup still calls back, later and from inside its evdns_base; so a lookup is an object of its own,
 * which outlives the connection when it must and is freed by a timer, when nobody is inside it any more. */
#include "conn.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/dns.h>
#include <event2/event.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include "../base/cleanup.h"
#include "../base/clock.h"

#define READ_BYTES    (256 << 10)
#define PORT_TEXT_LEN 8

struct lookup {
	struct event_base *loop;
	struct evdns_base *dns;
	struct evdns_getaddrinfo_request *request; /* NULL: answered */
	struct conn *conn;			   /* NULL: nobody waits */
};

struct conn {
	struct event_base *loop;
	struct event *begin;		    /* so that nothing is called back from inside conn_new() */
	struct bufferevent *bev;	    /* NULL before an address is known */
	struct lookup *lookup;		    /* NULL when none runs */
	struct evutil_addrinfo *addresses;  /* owned */
	const struct evutil_addrinfo *next; /* to be tried */
	char *host;
	char port[PORT_TEXT_LEN];
	struct conn_handler handler;
};

DEFINE_CLEANUP(struct evbuffer *, evbuffer_free)

static void fail(struct conn *c, const char *why)
{
	if (c->bev)
		bufferevent_disable(c->bev, EV_READ | EV_WRITE);
	c->handler.on_closed(c->handler.ctx, why);
}

static void on_readable(struct bufferevent *bev, void *user)
{
	struct conn *c = user;
	uint64_t now_ns = clock_monotonic_ns();
	/* the bytes move to a buffer of this function, since the handler may free the connection */
	_cleanup_(evbuffer_freep) struct evbuffer *batch = evbuffer_new();
	const uint8_t *data = NULL;

	if (batch && !evbuffer_add_buffer(batch, bufferevent_get_input(bev)))
		data = evbuffer_pullup(batch, -1);
	if (data)
		c->handler.on_bytes(c->handler.ctx, data, evbuffer_get_length(batch), now_ns);
	else
		fail(c, "out of memory");
}

static void on_event(struct bufferevent *bev, short what, void *user);

static void connect_next(struct conn *c, const char *why_not_last)
{
	while (c->next) {
		const struct evutil_addrinfo *a = c->next;
		c->next = a->ai_next;
		if (c->bev)
			bufferevent_free(c->bev);
		c->bev = bufferevent_socket_new(c->loop, -1, BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS);
		if (!c->bev) {
			why_not_last = "out of memory";
			continue;
		}
		bufferevent_setcb(c->bev, on_readable, NULL, on_event, c);
		(void)bufferevent_set_max_single_read(c->bev, READ_BYTES);
		if (!bufferevent_enable(c->bev, EV_READ | EV_WRITE) &&
		    !bufferevent_socket_connect(c->bev, a->ai_addr, (int)a->ai_addrlen))
			return;
		why_not_last = strerror(errno);
	}
	fail(c, why_not_last);
}

static void on_event(struct bufferevent *bev, short what, void *user)
{
	struct conn *c = user;
	const char *why = what & BEV_EVENT_ERROR ? strerror(errno) : "closed by the server";
	int one = 1;

	if (what & BEV_EVENT_CONNECTED) {
		c->next = NULL;
		/* saves milliseconds; without it all works too */
		(void)setsockopt(bufferevent_getfd(bev), IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		c->handler.on_connected(c->handler.ctx);
		return;
	}
	connect_next(c, why);
}

static void lookup_free(evutil_socket_t fd, short what, void *user)
{
	struct lookup *l = user;

	(void)fd;
	(void)what;
	evdns_base_free(l->dns, 0);
	free(l);
}

static void on_lookup(int result, struct evutil_addrinfo *addresses, void *user)
{
	struct lookup *l = user;
	struct conn *c = l->conn;
	const struct timeval now = {0};

	l->request = NULL;
	/* without memory for a timer the lookup is leaked: freeing it here would pull it from under evdns */
	(void)event_base_once(l->loop, -1, EV_TIMEOUT, lookup_free, l, &now);
	if (!c) {
		if (addresses)
			evutil_freeaddrinfo(addresses);
		return;
	}
	c->lookup = NULL;
	if (result) {
		fail(c, evutil_gai_strerror(result));
		return;
	}
	c->addresses = addresses;
	c->next = addresses;
	connect_next(c, "name has no address");
}

static void lookup_start(struct conn *c)
{
	const struct evutil_addrinfo hints = {.ai_family = AF_UNSPEC,
					      .ai_socktype = SOCK_STREAM,
					      .ai_protocol = IPPROTO_TCP,
					      .ai_flags = EVUTIL_AI_ADDRCONFIG};
	struct lookup *l = calloc(1, sizeof(*l));
	struct evdns_getaddrinfo_request *request;

	if (l)
		l->dns = evdns_base_new(c->loop, EVDNS_BASE_INITIALIZE_NAMESERVERS | EVDNS_BASE_DISABLE_WHEN_INACTIVE);
	if (!l || !l->dns) {
		free(l);
		fail(c, "cannot set up name lookup");
		return;
	}
	l->loop = c->loop;
	l->conn = c;
	c->lookup = l;
	/* NULL when it called back at once; then c may be gone and l lives until its timer */
	request = evdns_getaddrinfo(l->dns, c->host, c->port, &hints, on_lookup, l);
	if (request)
		l->request = request;
}

static void on_begin(evutil_socket_t fd, short what, void *user)
{
	struct conn *c = user;
	const struct evutil_addrinfo hints = {.ai_family = AF_UNSPEC,
					      .ai_socktype = SOCK_STREAM,
					      .ai_protocol = IPPROTO_TCP,
					      .ai_flags = EVUTIL_AI_NUMERICHOST};

	(void)fd;
	(void)what;
	if (evutil_getaddrinfo(c->host, c->port, &hints, &c->addresses)) {
		c->addresses = NULL;
		lookup_start(c);
		return;
	}
	c->next = c->addresses;
	connect_next(c, "no address");
}

DEFINE_CLEANUP(struct conn *, conn_free)

struct conn *conn_new(struct event_base *loop, const char *host, uint16_t port, const struct conn_handler *handler)
{
	_cleanup_(conn_freep) struct conn *c = calloc(1, sizeof(*c));

	errno = ENOMEM;
	if (!c)
		return NULL;
	c->loop = loop;
	c->handler = *handler;
	c->host = strdup(host);
	snprintf(c->port, sizeof(c->port), "%u", port);
	c->begin = event_new(loop, -1, 0, on_begin, c);
	if (!c->host || !c->begin)
		return NULL;
	event_active(c->begin, EV_TIMEOUT, 0);
	return TAKE_PTR(c);
}

void conn_free(struct conn *c)
{
	if (!c)
		return;
	if (c->begin)
		event_free(c->begin);
	if (c->bev) {
		bufferevent_setcb(c->bev, NULL, NULL, NULL, NULL);
		bufferevent_free(c->bev);
	}
	if (c->lookup) {
		c->lookup->conn = NULL;
		if (c->lookup->request)
			evdns_getaddrinfo_cancel(c->lookup->request);
	}
	if (c->addresses)
		evutil_freeaddrinfo(c->addresses);
	free(c->host);
	free(c);
}

int conn_write(struct conn *c, const uint8_t *data, size_t size)
{
	return c->bev && !bufferevent_write(c->bev, data, size) ? 0 : -ENOMEM;
}
