// SPDX-License-Identifier: MIT
/* The source against a scripted server on loopback: what a real one does only on a bad day. */
#include <arpa/inet.h>
#include <errno.h>
#include "peer.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "registry/nacos.h"
#include "loop.h"


struct scene {
	struct event_base *loop;
	struct event *heartbeat; /* so that a wait looks at the clock */
	struct peer peer[2];
	struct registry *registry;
	unsigned n_snapshots;
	struct snapshot *last; /* owned */
	unsigned n_live, n_states;
	enum registry_state state;
	char server[64], error[320];
};

static void on_snapshot(void *ctx, struct snapshot *s, uint64_t received_ns)
{
	struct scene *sc = ctx;

	assert_true(received_ns && received_ns <= clock_monotonic_ns());
	sc->n_snapshots++;
	snapshot_free(sc->last);
	sc->last = s;
}

static void on_state(void *ctx, const struct registry_status *status)
{
	struct scene *sc = ctx;

	sc->n_states++;
	sc->n_live += status->state == REGISTRY_LIVE && sc->state != REGISTRY_LIVE;
	sc->state = status->state;
	snprintf(sc->server, sizeof(sc->server), "%s", status->server);
	snprintf(sc->error, sizeof(sc->error), "%s", status->last_error);
}

/* Run the loop until one more message, asked for now, went to the server and came back. */
static void settle(struct scene *sc, struct peer *p)
{
	unsigned n = p->n_answers;

	peer_push(p, "ClientDetectionRequest", "{\"requestId\":\"settle\"}");
	until(sc, p->n_answers > n && !strcmp(p->answered_id, "settle"));
}

static struct scene *scene_new(void)
{
	struct scene *sc = calloc(1, sizeof(*sc));
	const struct timeval often = {0, 50000};

	sc->loop = event_base_new();
	sc->heartbeat = event_new(sc->loop, -1, EV_PERSIST, on_heartbeat, NULL);
	event_add(sc->heartbeat, &often);
	sc->state = REGISTRY_DOWN;
	peer_init(&sc->peer[0], sc->loop);
	peer_init(&sc->peer[1], sc->loop);
	return sc;
}

/* A source over the first n peers. */
static void scene_start(struct scene *sc, size_t n)
{
	const struct registry_sink sink = {on_snapshot, on_state, sc};
	struct nacos_server servers[2];
	struct nacos_options options = {servers, n, NULL, "steelyard:test"};

	for (size_t i = 0; i < n; i++)
		servers[i] = (struct nacos_server){(char *)"127.0.0.1", (uint16_t)(8848 + i), sc->peer[i].port};
	sc->registry = nacos_new(sc->loop, "test", &options, &sink);
	assert_non_null(sc->registry);
	assert_int_equal(registry_start(sc->registry), 0);
	assert_int_equal(sc->n_states, 0);
}

/* One peer, service svc subscribed and answered. */
static struct scene *scene_live(void)
{
	struct scene *sc = scene_new();

	scene_start(sc, 1);
	assert_int_equal(registry_subscribe(sc->registry, "DEFAULT_GROUP", "svc"), 0);
	until(sc, sc->n_snapshots == 1);
	assert_int_equal(sc->state, REGISTRY_LIVE);
	return sc;
}

static void scene_free(struct scene *sc)
{
	registry_free(sc->registry);
	peer_stop(&sc->peer[0]);
	peer_stop(&sc->peer[1]);
	snapshot_free(sc->last);
	event_base_loop(sc->loop, EVLOOP_NONBLOCK);
	event_free(sc->heartbeat);
	event_base_free(sc->loop);
	free(sc);
}

static void straight_path(void **state)
{
	struct scene *sc = scene_live();
	struct peer *p = &sc->peer[0];
	struct registry_status status;

	(void)state;
	assert_int_equal(p->n_setups, 1);
	assert_int_equal(p->n_subscribes, 1);
	assert_string_equal(p->last_service, "svc");
	assert_string_equal(sc->last->name, "svc");
	assert_int_equal(sc->last->n_instances, 1);
	assert_string_equal(sc->server, "127.0.0.1:8848");
	peer_notify(p, "7", PEER_EMPTY, "svc");
	until(sc, sc->n_snapshots == 2 && p->n_answers == 1);
	assert_int_equal(sc->last->n_instances, 0);
	assert_string_equal(p->answered_type, "NotifySubscriberResponse");
	assert_string_equal(p->answered_id, "7");
	registry_status(sc->registry, &status);
	assert_int_equal(status.state, REGISTRY_LIVE);
	assert_int_equal(status.n_services, 1);
	assert_true(status.since_ns);
	scene_free(sc);
}

static void without_negotiation(void **state)
{
	struct scene *sc = scene_new();

	(void)state;
	sc->peer[0].negotiates = sc->peer[0].acknowledges = false;
	scene_start(sc, 1);
	registry_subscribe(sc->registry, "DEFAULT_GROUP", "svc");
	until(sc, sc->n_snapshots == 1);
	assert_int_equal(sc->peer[0].n_conns, 1);
	scene_free(sc);
}

static void no_acknowledgement(void **state)
{
	struct scene *sc = scene_new();

	(void)state;
	sc->peer[0].acknowledges = false;
	scene_start(sc, 1);
	registry_subscribe(sc->registry, "DEFAULT_GROUP", "svc");
	until(sc, sc->state == REGISTRY_DOWN && sc->error[0]);
	assert_non_null(strstr(sc->error, "not acknowledged"));
	assert_int_equal(sc->peer[0].n_subscribes, 0);
	sc->peer[0].acknowledges = true;
	until(sc, sc->n_snapshots == 1);
	assert_string_equal(sc->error, "");
	scene_free(sc);
}

static void next_server(void **state)
{
	struct scene *sc = scene_new();

	(void)state;
	peer_stop(&sc->peer[1]);
	for (int i = 0; i < 8; i++) { /* the first server is random */
		sc->n_live = 0;
		sc->state = REGISTRY_DOWN;
		sc->n_states = 0;
		scene_start(sc, 2);
		until(sc, sc->n_live == 1);
		assert_string_equal(sc->server, "127.0.0.1:8848");
		registry_free(TAKE_PTR(sc->registry));
	}
	scene_free(sc);
}

static void forgotten(void **state)
{
	struct scene *sc = scene_new();

	(void)state;
	sc->peer[0].n_fail = 3;
	sc->peer[0].fail_code = NACOS_ERROR_UNREGISTERED;
	scene_start(sc, 1);
	registry_subscribe(sc->registry, "DEFAULT_GROUP", "svc");
	until(sc, sc->n_snapshots == 1);
	assert_int_equal(sc->peer[0].n_conns, 4);
	assert_int_equal(sc->peer[0].n_subscribes, 4);
	assert_int_equal(sc->last->n_instances, 1);
	scene_free(sc);
}

static void refused_alone(void **state)
{
	static const int codes[] = {403, 500, 503, NACOS_ERROR_STARTING};

	(void)state;
	for (size_t i = 0; i < sizeof(codes) / sizeof(*codes); i++) {
		struct scene *sc = scene_new();

		sc->peer[0].n_fail = 1;
		sc->peer[0].fail_code = codes[i];
		scene_start(sc, 1);
		registry_subscribe(sc->registry, "DEFAULT_GROUP", "a");
		registry_subscribe(sc->registry, "DEFAULT_GROUP", "b");
		until(sc, sc->n_snapshots == 2);
		assert_int_equal(sc->peer[0].n_conns, 1);
		assert_int_equal(sc->peer[0].n_subscribes, 3);
		scene_free(sc);
	}
}

static void no_list(void **state)
{
	struct scene *sc = scene_new();

	(void)state;
	sc->peer[0].answer = "{\"name\":\"%s\",\"groupName\":\"DEFAULT_GROUP\",\"hosts\":null}";
	scene_start(sc, 1);
	registry_subscribe(sc->registry, "DEFAULT_GROUP", "svc");
	until(sc, sc->peer[0].n_subscribes == 2);
	assert_int_equal(sc->n_snapshots, 0);
	peer_notify(&sc->peer[0], "1", sc->peer[0].answer, "svc");
	settle(sc, &sc->peer[0]);
	assert_int_equal(sc->n_snapshots, 0);
	sc->peer[0].answer = PEER_LIST;
	until(sc, sc->n_snapshots == 1);
	scene_free(sc);
}

static void detection(void **state)
{
	struct scene *sc = scene_live();
	struct peer *p = &sc->peer[0];

	(void)state;
	peer_push(p, "ClientDetectionRequest", "{\"requestId\":\"a-b-c\",\"module\":\"internal\"}");
	until(sc, p->n_answers == 1);
	assert_string_equal(p->answered_type, "ClientDetectionResponse");
	assert_string_equal(p->answered_id, "a-b-c");
	scene_free(sc);
}

static void odd_pushes(void **state)
{
	struct scene *sc = scene_live();
	struct peer *p = &sc->peer[0];

	(void)state;
	peer_push(p, "NamingFuzzyWatchChangeNotifyRequest", "{\"requestId\":\"1\"}");
	peer_push(p, "SetupAckRequest", "{}");
	peer_notify(p, "2", PEER_LIST, "somebody-else");
	settle(sc, p);
	assert_int_equal(p->n_answers, 2); /* the notify and the settling */
	assert_int_equal(sc->n_snapshots, 1);
	assert_int_equal(sc->state, REGISTRY_LIVE);
	assert_int_equal(p->n_conns, 1);
	scene_free(sc);
}

static void burst(void **state)
{
	struct scene *sc = scene_live();
	struct peer *p = &sc->peer[0];
	char id[16];

	(void)state;
	for (int i = 0; i < 100; i++) {
		snprintf(id, sizeof(id), "%d", i);
		peer_notify(p, id, i == 99 ? PEER_EMPTY : PEER_LIST, "svc");
	}
	until(sc, p->n_answers == 100 && !sc->last->n_instances);
	assert_true(sc->n_snapshots < 101);
	assert_string_equal(p->answered_id, "99");
	scene_free(sc);
}

/* A notify of n hosts whose first has metadata of so many bytes. */
static char *large_notify(size_t n, size_t metadata_bytes)
{
	char *buf = NULL;
	size_t size;
	FILE *f = open_memstream(&buf, &size);

	fprintf(f,
		"{\"requestId\":\"big\",\"serviceInfo\":{\"name\":\"svc\",\"groupName\":\"DEFAULT_GROUP\",\"hosts\":[");
	for (size_t i = 0; i < n; i++) {
		fprintf(f, "%s{\"ip\":\"10.0.%zu.%zu\",\"port\":80,\"weight\":1.0,\"metadata\":{\"a\":\"", i ? "," : "",
			i / 250, i % 250 + 1);
		for (size_t b = 0; !i && b < metadata_bytes; b++)
			fputc('x', f);
		fprintf(f, "\"}}");
	}
	fprintf(f, "]}}");
	fclose(f);
	return buf;
}

static void large_pushes(void **state)
{
	static const struct {
		size_t n, metadata_bytes;
	} rows[] = {{5000, 10}, {1, 1 << 20}, {16384, 10}};
	struct scene *sc = scene_live();
	struct peer *p = &sc->peer[0];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		_cleanup_free_ char *body = large_notify(rows[i].n, rows[i].metadata_bytes);

		peer_push(p, "NotifySubscriberRequest", body);
		until(sc, sc->last->n_instances == rows[i].n);
	}
	settle(sc, p);
	assert_int_equal(p->n_conns, 1);
	assert_int_equal(p->n_answers, 4);
	scene_free(sc);
}

static void over_the_bound(void **state)
{
	_cleanup_free_ char *body = large_notify(1, 17 << 20);
	struct scene *sc = scene_live();

	(void)state;
	peer_push(&sc->peer[0], "NotifySubscriberRequest", body);
	until(sc, sc->peer[0].n_conns == 2 && sc->n_snapshots == 2);
	assert_int_equal(sc->last->n_instances, 1);
	scene_free(sc);
}

static void reset_to(const char *body, unsigned from, const char *server)
{
	struct scene *sc = scene_new();
	struct peer *p;

	scene_start(sc, 2);
	registry_subscribe(sc->registry, "DEFAULT_GROUP", "svc");
	until(sc, sc->n_snapshots == 1);
	/* get to the wanted one first */
	if (strcmp(sc->server, from ? "127.0.0.1:8849" : "127.0.0.1:8848")) {
		peer_push(&sc->peer[!from], "ConnectResetRequest", "{\"requestId\":\"0\"}");
		until(sc, sc->n_snapshots == 2);
	}
	p = &sc->peer[from];
	sc->n_snapshots = 0;
	p->n_answers = 0;
	peer_push(p, "ConnectResetRequest", body);
	until(sc, p->n_answers == 1);
	assert_string_equal(p->answered_type, "ConnectResetResponse");
	assert_string_equal(p->answered_id, "9");
	until(sc, sc->n_snapshots == 1);
	assert_int_equal(sc->state, REGISTRY_LIVE);
	assert_string_equal(sc->server, server);
	scene_free(sc);
}

static void reset(void **state)
{
	(void)state;
	reset_to("{\"requestId\":\"9\"}", 0, "127.0.0.1:8849");
	reset_to("{\"requestId\":\"9\",\"serverIp\":\"127.0.0.1\",\"serverPort\":\"8848\"}", 0, "127.0.0.1:8848");
	reset_to("{\"requestId\":\"9\",\"serverIp\":\"127.0.0.1\",\"serverPort\":\"1\"}", 1, "127.0.0.1:8848");
	reset_to("{\"requestId\":\"9\",\"serverIp\":\"10.9.9.9\",\"serverPort\":\"8849\"}", 1, "127.0.0.1:8848");
}

static void server_restarts(void **state)
{
	struct scene *sc = scene_live();
	struct peer *p = &sc->peer[0];

	(void)state;
	registry_subscribe(sc->registry, "DEFAULT_GROUP", "other");
	until(sc, sc->n_snapshots == 2);
	peer_stop(p);
	until(sc, sc->state != REGISTRY_LIVE);
	assert_true(sc->error[0]);
	until(sc, sc->state == REGISTRY_DOWN);
	assert_int_equal(sc->n_snapshots, 2);
	peer_listen(p);
	until(sc, sc->n_snapshots == 4);
	assert_int_equal(sc->state, REGISTRY_LIVE);
	assert_int_equal(p->n_subscribes, 4);
	scene_free(sc);
}

static void goes_away_politely(void **state)
{
	struct scene *sc = scene_live();
	struct peer_conn *c = LIST_FIRST(&sc->peer[0].conns);

	(void)state;
	nghttp2_submit_goaway(c->session, NGHTTP2_FLAG_NONE, INT32_MAX, NGHTTP2_NO_ERROR, NULL, 0);
	peer_flush(c);
	until(sc, sc->n_snapshots == 2);
	assert_int_equal(sc->peer[0].n_conns, 2);
	scene_free(sc);
}

static void stream_ends(void **state)
{
	struct scene *sc = scene_live();
	struct peer_stream *s = LIST_FIRST(&sc->peer[0].conns)->push;

	(void)state;
	s->answered = true;
	nghttp2_session_resume_data(s->conn->session, s->id);
	peer_flush(s->conn);
	until(sc, sc->n_snapshots == 2);
	assert_int_equal(sc->peer[0].n_conns, 2);
	scene_free(sc);
}

static void health(void **state)
{
	struct scene *sc = scene_live();
	struct peer *p = &sc->peer[0];

	(void)state;
	until(sc, p->n_health == 1);
	assert_int_equal(p->n_conns, 1);
	p->silent = true; /* a server that hangs is left */
	until(sc, sc->state != REGISTRY_LIVE);
	assert_non_null(strstr(sc->error, "health check"));
	p->silent = false;
	until(sc, sc->n_snapshots == 2);
	scene_free(sc);
}

static void subscriptions_come_and_go(void **state)
{
	struct scene *sc = scene_live();
	struct peer *p = &sc->peer[0];
	struct registry_status status;

	(void)state;
	assert_int_equal(registry_subscribe(sc->registry, "DEFAULT_GROUP", "svc"), 0);
	assert_int_equal(registry_subscribe(sc->registry, "DEFAULT_GROUP", ""), -EINVAL);
	assert_int_equal(registry_unsubscribe(sc->registry, "DEFAULT_GROUP", "never"), 0);
	assert_int_equal(registry_unsubscribe(sc->registry, "DEFAULT_GROUP", "svc"), 0);
	peer_notify(p, "1", PEER_EMPTY, "svc");
	until(sc, p->n_unsubscribes == 1);
	settle(sc, p);
	assert_int_equal(sc->n_snapshots, 1);
	registry_status(sc->registry, &status);
	assert_int_equal(status.n_services, 0);
	/* one that is taken back while its subscribe is under way */
	p->silent = true;
	registry_subscribe(sc->registry, "DEFAULT_GROUP", "brief");
	registry_unsubscribe(sc->registry, "DEFAULT_GROUP", "brief");
	p->silent = false;
	registry_subscribe(sc->registry, "DEFAULT_GROUP", "svc");
	until(sc, sc->n_snapshots == 2);
	assert_int_equal(p->n_conns, 1);
	scene_free(sc);
}

static void many(void **state)
{
	enum { N = 1000 };
	struct scene *sc = scene_new();
	char name[32];

	(void)state;
	scene_start(sc, 1);
	for (int i = 0; i < N; i++) {
		snprintf(name, sizeof(name), "svc-%d", i);
		assert_int_equal(registry_subscribe(sc->registry, "DEFAULT_GROUP", name), 0);
	}
	until(sc, sc->n_snapshots >= N);
	assert_int_equal(sc->peer[0].n_subscribes, N);
	peer_stop(&sc->peer[0]);
	peer_listen(&sc->peer[0]);
	until(sc, sc->n_snapshots >= 2 * N);
	assert_int_equal(sc->peer[0].n_conns, 2);
	assert_int_equal(sc->peer[0].n_subscribes, 2 * N);
	scene_free(sc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE("subscribe, its answer, a push and its acknowledgement", straight_path),
		CASE("a server without negotiation is used without its acknowledgement", without_negotiation),
		CASE("a server that promised an acknowledgement and sends none is left", no_acknowledgement),
		CASE("the next server is tried when one refuses", next_server),
		CASE("a forgotten connection is made anew and services are asked for again", forgotten),
		CASE("a refused subscribe is asked again alone", refused_alone),
		CASE("an answer or a push without a list is no empty list", no_list),
		CASE("a detection is answered with its id", detection),
		CASE("an unknown push, a late acknowledgement and another's list change nothing", odd_pushes),
		CASE("of a burst of pushes the last one wins", burst),
		CASE("pushes of 16,384 hosts or 1 MiB of metadata are taken", large_pushes),
		CASE("a push over 16 MiB costs the connection and leaves the list", over_the_bound),
		CASE("a reset is followed: to the server named if it is ours, else to the next", reset),
		CASE("a server that restarts is found again and changes nothing meanwhile", server_restarts),
		CASE("GOAWAY is followed by a new connection", goes_away_politely),
		CASE("the end of the push stream is followed by a new connection", stream_ends),
		CASE("an idle server is asked for its health, and left when it does not answer", health),
		CASE("subscriptions come and go on one connection", subscriptions_come_and_go),
		CASE("a thousand services share a connection and survive its loss", many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
