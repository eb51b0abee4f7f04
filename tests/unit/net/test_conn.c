// SPDX-License-Identifier: MIT
#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <stdbool.h>
#include "unit.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "net/conn.h"
#include "loop.h"


struct scene {
	struct event_base *loop;
	struct event *heartbeat;
	struct evconnlistener *listener;
	struct bufferevent *accepted;
	uint16_t port;
	struct conn *conn;
	unsigned n_connected, n_closed;
	char got[64];
	size_t n_got;
	char why[128];
	bool free_on_bytes;
};

static void on_connected(void *ctx)
{
	struct scene *sc = ctx;

	sc->n_connected++;
}

static void on_bytes(void *ctx, const uint8_t *data, size_t size, uint64_t received_ns)
{
	struct scene *sc = ctx;

	assert_true(received_ns <= clock_monotonic_ns());
	if (sc->free_on_bytes)
		conn_free(TAKE_PTR(sc->conn));
	assert_true(sc->n_got + size <= sizeof(sc->got));
	memcpy(sc->got + sc->n_got, data, size);
	sc->n_got += size;
}

static void on_closed(void *ctx, const char *why)
{
	struct scene *sc = ctx;

	sc->n_closed++;
	snprintf(sc->why, sizeof(sc->why), "%s", why);
	conn_free(TAKE_PTR(sc->conn));
}

static void echo(struct bufferevent *bev, void *user)
{
	(void)user;
	bufferevent_write_buffer(bev, bufferevent_get_input(bev));
}

static void on_accept(struct evconnlistener *l, evutil_socket_t fd, struct sockaddr *from, int size, void *user)
{
	struct scene *sc = user;

	(void)l;
	(void)from;
	(void)size;
	sc->accepted = bufferevent_socket_new(sc->loop, fd, BEV_OPT_CLOSE_ON_FREE);
	bufferevent_setcb(sc->accepted, echo, NULL, NULL, sc);
	bufferevent_enable(sc->accepted, EV_READ | EV_WRITE);
}

static void scene_init(struct scene *sc)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const struct timeval often = {0, 50000};
	socklen_t size = sizeof(address);

	*sc = (struct scene){.loop = event_base_new()};
	sc->heartbeat = event_new(sc->loop, -1, EV_PERSIST, on_heartbeat, NULL);
	event_add(sc->heartbeat, &often);
	sc->listener = evconnlistener_new_bind(sc->loop, on_accept, sc, LEV_OPT_CLOSE_ON_FREE, 4,
					       (struct sockaddr *)&address, sizeof(address));
	assert_non_null(sc->listener);
	getsockname(evconnlistener_get_fd(sc->listener), (struct sockaddr *)&address, &size);
	sc->port = ntohs(address.sin_port);
}

static void start(struct scene *sc, const char *host)
{
	const struct conn_handler handler = {on_connected, on_bytes, on_closed, sc};

	sc->conn = conn_new(sc->loop, host, sc->port, &handler);
	assert_non_null(sc->conn);
	assert_int_equal(sc->n_connected + sc->n_closed, 0);
}

static void scene_done(struct scene *sc)
{
	conn_free(sc->conn);
	if (sc->accepted)
		bufferevent_free(sc->accepted);
	if (sc->listener)
		evconnlistener_free(sc->listener);
	for (int i = 0; i < 10; i++) /* what was cancelled or deferred ends in the loop */
		event_base_loop(sc->loop, EVLOOP_NONBLOCK);
	event_free(sc->heartbeat);
	event_base_free(sc->loop);
}

static void there_and_back(void **state)
{
	static const char *const hosts[] = {"127.0.0.1", "localhost"};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct scene sc;

		scene_init(&sc);
		start(&sc, hosts[i]);
		until(&sc, sc.n_connected == 1);
		assert_int_equal(conn_write(sc.conn, (const uint8_t *)"hello", 5), 0);
		until(&sc, sc.n_got == 5);
		assert_memory_equal(sc.got, "hello", 5);
		bufferevent_free(TAKE_PTR(sc.accepted));
		until(&sc, sc.n_closed == 1);
		assert_string_equal(sc.why, "closed by the server");
		scene_done(&sc);
	}
}

static void refused(void **state)
{
	struct scene sc;

	(void)state;
	scene_init(&sc);
	evconnlistener_free(TAKE_PTR(sc.listener));
	start(&sc, "localhost");
	until(&sc, sc.n_closed == 1);
	assert_string_equal(sc.why, "Connection refused");
	scene_done(&sc);
}

static void freed_from_inside(void **state)
{
	struct scene sc;

	(void)state;
	scene_init(&sc);
	sc.free_on_bytes = true;
	start(&sc, "127.0.0.1");
	until(&sc, sc.n_connected == 1);
	assert_int_equal(conn_write(sc.conn, (const uint8_t *)"bye", 3), 0);
	until(&sc, sc.n_got == 3);
	assert_null(sc.conn);
	scene_done(&sc);
}

static void freed_while_looking_up(void **state)
{
	struct scene sc;

	(void)state;
	scene_init(&sc);
	start(&sc, "no-such-name.invalid");
	conn_free(TAKE_PTR(sc.conn)); /* before anything began */
	start(&sc, "no-such-name.invalid");
	event_base_loop(sc.loop, EVLOOP_NONBLOCK);
	scene_done(&sc); /* with the lookup under way */
	assert_int_equal(sc.n_connected + sc.n_closed, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE("bytes go there and back, by address and by name", there_and_back),
		CASE("a refused connection is told with its reason", refused),
		CASE("a connection may be freed by the callback that it calls", freed_from_inside),
		CASE("a connection freed while its name is looked up leaves nothing behind", freed_while_looking_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
