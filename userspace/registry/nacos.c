// SPDX-License-Identifier: MIT
/* The source: which server, when to connect, which services are asked for, and what the owner is told.
 *
 *   server list ─▶ one nacos_grpc at a time ─answers, pushes─▶ latest of each service ─timer─▶ sink
 *        ▲                 │ lost, reset
 *        └── back-off ◀────┘
 *
 * - What arrives last on the connection is the truth: an answer or a push replaces what waits for the owner, so that a
 *   burst is one snapshot. lastRefTime is the clock of whichever server spoke, and is not looked at.
 * - A refusal, a missing answer or one without a list leaves what the owner has as it is. It is asked again, alone.
 * - Each service is asked for again once a minute, at a moment of its own: pushes can be off or broken at the server.
 */
#include "nacos.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/util.h>
#include <search.h>
#include <string.h>
#include <sys/queue.h>
#include "../base/backoff.h"
#include "../base/cleanup.h"
#include "../base/clock.h"
#include "../base/log.h"
#include "nacos_grpc.h"

#define CONNECT_MIN_NS	 (100 * NS_PER_MS)
#define CONNECT_MAX_NS	 (5 * NS_PER_S)
#define SUBSCRIBE_MIN_NS (500 * NS_PER_MS)
#define SUBSCRIBE_MAX_NS (30 * NS_PER_S)
#define QUERY_NS	 (60 * NS_PER_S)
#define MAX_CALLS	 64 /* open at a time: a server counts requests a second */
#define LOG_NS		 (10 * NS_PER_S)
#define SERVER_TEXT	 300
#define WHY_BYTES	 320

struct service {
	TAILQ_ENTRY(service) all;
	TAILQ_ENTRY(service) queue; /* while queued */
	TAILQ_ENTRY(service) fresh; /* while latest */
	struct nacos *nacos;
	char *group, *name;
	bool subscribed;	 /* on this connection */
	bool queued;		 /* for its turn among the calls */
	struct nacos_call *call; /* open, or NULL */
	struct event *due;	 /* its next turn */
	struct backoff backoff;
	struct snapshot *latest; /* owned; not told to the owner yet, or NULL */
	uint64_t latest_ns;
};

TAILQ_HEAD(services, service);

struct nacos {
	struct registry registry;
	struct nacos_server *servers; /* owned array */
	size_t n_servers;
	size_t server; /* index: in use, or next to be tried */
	char *ns, *client_version, *log_area;
	struct nacos_grpc *link; /* NULL between connections */
	bool ready;		 /* link may be called on */
	bool moving;		 /* told to go: server is where to, retry says when */
	struct event *retry, *deliver;
	struct backoff backoff;
	void *index; /* tsearch tree of struct service, by group and name */
	struct services all, queue, fresh;
	unsigned n_services, n_calls;
	enum registry_state state;
	uint64_t since_ns;
	char server_text[SERVER_TEXT];
	char last_error[WHY_BYTES];
	struct log_limit lost_limit, refused_limit;
};

static uint32_t random_u32(void)
{
	uint32_t r;

	evutil_secure_rng_get_bytes(&r, sizeof(r));
	return r;
}

static void arm(struct event *e, uint64_t ns)
{
	const struct timeval t = {(time_t)(ns / NS_PER_S), (suseconds_t)(ns % NS_PER_S / NS_PER_US)};

	(void)event_add(e, &t);
}

/* ---- what the owner is told ---- */

static void status(const struct registry *r, struct registry_status *ret)
{
	const struct nacos *n = (const struct nacos *)r;

	*ret = (struct registry_status){n->state, n->server_text, n->since_ns, n->n_services, n->last_error};
}

static void tell_state(struct nacos *n, enum registry_state state)
{
	struct registry_status now;

	if (state != n->state)
		n->since_ns = clock_realtime_ns();
	n->state = state;
	status(&n->registry, &now);
	n->registry.sink.on_state(n->registry.sink.ctx, &now);
}

static void on_deliver(evutil_socket_t fd, short what, void *user)
{
	struct nacos *n = user;
	struct service *s;

	(void)fd;
	(void)what;
	while ((s = TAILQ_FIRST(&n->fresh))) {
		TAILQ_REMOVE(&n->fresh, s, fresh);
		n->registry.sink.on_snapshot(n->registry.sink.ctx, TAKE_PTR(s->latest), s->latest_ns);
	}
}

/* Takes snapshot. It goes to the owner after the acknowledgements of this round of the loop went to the server. */
static void keep(struct nacos *n, struct service *s, struct snapshot *snapshot, uint64_t received_ns)
{
	if (!s->latest)
		TAILQ_INSERT_TAIL(&n->fresh, s, fresh);
	snapshot_free(s->latest);
	s->latest = snapshot;
	s->latest_ns = received_ns;
	arm(n->deliver, 0);
}

/* ---- services ---- */

static int service_compare(const void *a, const void *b)
{
	const struct service *x = a, *y = b;

	return strcmp(x->name, y->name) ?: strcmp(x->group, y->group);
}

static struct service *service_find(struct nacos *n, const char *group, const char *name)
{
	const struct service key = {.group = (char *)group, .name = (char *)name};
	struct service **found = tfind(&key, &n->index, service_compare);

	return found ? *found : NULL;
}

static void service_enqueue(struct service *s)
{
	if (s->queued || s->call)
		return;
	s->queued = true;
	TAILQ_INSERT_TAIL(&s->nacos->queue, s, queue);
}

/* Off the connection: nothing asked, nothing due. */
static void service_rest(struct service *s)
{
	event_del(s->due);
	if (s->queued)
		TAILQ_REMOVE(&s->nacos->queue, s, queue);
	s->queued = false;
	s->subscribed = false;
	s->call = NULL;
	backoff_reset(&s->backoff);
}

static void service_free(struct service *s)
{
	if (!s)
		return;
	if (s->due)
		event_free(s->due);
	snapshot_free(s->latest);
	free(s->group);
	free(s->name);
	free(s);
}
DEFINE_CLEANUP(struct service *, service_free)

/* Not now; again after a while of its own, whatever the other services do. */
static void service_failed(struct service *s, const char *why)
{
	struct nacos *n = s->nacos;
	uint64_t delay_ns = backoff_next(&s->backoff, random_u32());
	uint64_t held_back;

	arm(s->due, delay_ns);
	if (log_limit_passes(&n->refused_limit, clock_monotonic_ns(), LOG_NS, &held_back))
		log_warning(n->log_area, "%s@@%s: not %s: %s; again in %.1f s (%llu more such)", s->group, s->name,
			    s->subscribed ? "asked for again" : "subscribed", why, (double)delay_ns / NS_PER_S,
			    (unsigned long long)held_back);
}

static void pump(struct nacos *n);

static void on_answer(void *user, const struct nacos_msg *m, const char *why, uint64_t received_ns)
{
	struct service *s = user;
	struct nacos *n = s->nacos;
	struct snapshot *snapshot;

	s->call = NULL;
	n->n_calls--;
	if (!m || nacos_msg_error(m, &why) || nacos_msg_snapshot(m, &snapshot, &why)) {
		service_failed(s, why);
	} else {
		/* only now is the connection known to be good: a server that forgets us at once is not hurried */
		backoff_reset(&n->backoff);
		backoff_reset(&s->backoff);
		/* the first one comes in 30 to 60 s, and so they stay spread */
		arm(s->due, s->subscribed ? QUERY_NS : QUERY_NS / 2 + (QUERY_NS / 2 * (random_u32() >> 16) >> 16));
		s->subscribed = true;
		keep(n, s, snapshot, received_ns);
	}
	pump(n);
}

static void service_ask(struct service *s)
{
	struct nacos *n = s->nacos;
	const struct nacos_call_handler handler = {on_answer, s};
	_cleanup_(nacos_bytes_done) struct nacos_bytes request = {0};
	int r = s->subscribed ? nacos_msg_query(n->ns, s->group, s->name, &request)
			      : nacos_msg_subscribe(n->ns, s->group, s->name, true, &request);

	if (!r)
		s->call = nacos_grpc_call(n->link, &request, &handler);
	if (s->call)
		n->n_calls++;
	else
		service_failed(s, r ? strerror(-r) : strerror(errno));
}

static void pump(struct nacos *n)
{
	struct service *s;

	while (n->ready && n->n_calls < MAX_CALLS && (s = TAILQ_FIRST(&n->queue))) {
		TAILQ_REMOVE(&n->queue, s, queue);
		s->queued = false;
		service_ask(s);
	}
}

static void on_due(evutil_socket_t fd, short what, void *user)
{
	struct service *s = user;

	(void)fd;
	(void)what;
	service_enqueue(s);
	pump(s->nacos);
}

/* ---- the connection ---- */

static void unlink_all(struct nacos *n)
{
	struct service *s;

	nacos_grpc_free(TAKE_PTR(n->link));
	n->ready = false;
	n->n_calls = 0;
	TAILQ_FOREACH(s, &n->all, all)
	service_rest(s);
}

static void on_ready(void *user)
{
	struct nacos *n = user;
	struct service *s;

	n->ready = true;
	n->last_error[0] = 0;
	if (TAILQ_EMPTY(&n->all))
		backoff_reset(&n->backoff);
	log_info(n->log_area, "live: connected to %s", n->server_text);
	TAILQ_FOREACH(s, &n->all, all)
	service_enqueue(s);
	pump(n);
	tell_state(n, REGISTRY_LIVE);
}

static void on_notify(void *user, const struct nacos_msg *m, uint64_t received_ns)
{
	struct nacos *n = user;
	struct snapshot *snapshot;
	struct service *s;
	const char *why;
	int r = nacos_msg_snapshot(m, &snapshot, &why);

	if (r) {
		log_warning(n->log_area, "push ignored: %s", why);
		return;
	}
	s = service_find(n, snapshot->group, snapshot->name);
	if (s)
		keep(n, s, snapshot, received_ns);
	else
		snapshot_free(snapshot);
}

static void on_ignored(void *user, const char *what)
{
	struct nacos *n = user;

	log_debug(n->log_area, "message ignored: %s", what);
}

static void retry_later(struct nacos *n, const char *why)
{
	uint64_t delay_ns = backoff_next(&n->backoff, random_u32());
	const struct nacos_server *next = &n->servers[n->server];
	uint64_t held_back;

	arm(n->retry, delay_ns);
	if (log_limit_passes(&n->lost_limit, clock_monotonic_ns(), LOG_NS, &held_back))
		log_warning(n->log_area, "%s: %s; next is %s:%u in %.1f s (%llu more such)", n->server_text, why,
			    next->host, next->port, (double)delay_ns / NS_PER_S, (unsigned long long)held_back);
}

/* The named server if it is one of ours, else the next. The connection stays in use until the new one is tried. */
static void on_reset(void *user, const char *host, uint16_t port)
{
	struct nacos *n = user;
	size_t next = (n->server + 1) % n->n_servers;

	if (n->moving)
		return;
	for (size_t i = 0; i < n->n_servers; i++)
		if (!strcmp(n->servers[i].host, host) && n->servers[i].port == port)
			next = i;
	n->server = next;
	n->moving = true;
	retry_later(n, "the server asks to connect elsewhere");
}

static void on_lost(void *user, const char *why)
{
	struct nacos *n = user;
	bool was_live = n->ready;

	/* why dies with the connection */
	snprintf(n->last_error, sizeof(n->last_error), "%s", why);
	unlink_all(n);
	if (!n->moving) {
		n->server = (n->server + 1) % n->n_servers;
		retry_later(n, n->last_error);
	}
	tell_state(n, was_live ? REGISTRY_CONNECTING : REGISTRY_DOWN);
}

static void on_retry(evutil_socket_t fd, short what, void *user)
{
	struct nacos *n = user;
	const struct nacos_server *server = &n->servers[n->server];
	const struct nacos_grpc_handler handler = {on_ready, on_notify, on_reset, on_ignored, on_lost, n};
	enum registry_state state = n->state == REGISTRY_LIVE ? REGISTRY_CONNECTING : n->state;

	(void)fd;
	(void)what;
	unlink_all(n);
	n->moving = false;
	snprintf(n->server_text, sizeof(n->server_text), strchr(server->host, ':') ? "[%s]:%u" : "%s:%u", server->host,
		 server->port);
	n->link = nacos_grpc_new(n->registry.loop, server, n->ns, n->client_version, &handler);
	if (!n->link) {
		snprintf(n->last_error, sizeof(n->last_error), "%s", strerror(errno));
		n->server = (n->server + 1) % n->n_servers;
		retry_later(n, n->last_error);
		state = REGISTRY_DOWN;
	}
	tell_state(n, state);
}

/* ---- the five calls ---- */

static int start(struct registry *r)
{
	struct nacos *n = (struct nacos *)r;

	n->server = random_u32() % n->n_servers;
	arm(n->retry, 0);
	return 0;
}

static int subscribe(struct registry *r, const char *group, const char *name)
{
	struct nacos *n = (struct nacos *)r;
	_cleanup_(service_freep) struct service *s = NULL;

	if (service_find(n, group, name))
		return 0;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->nacos = n;
	s->backoff = (struct backoff){SUBSCRIBE_MIN_NS, SUBSCRIBE_MAX_NS, 0};
	s->group = strdup(group);
	s->name = strdup(name);
	s->due = event_new(r->loop, -1, 0, on_due, s);
	if (!s->group || !s->name || !s->due || !tsearch(s, &n->index, service_compare))
		return -ENOMEM;
	TAILQ_INSERT_TAIL(&n->all, s, all);
	n->n_services++;
	if (n->ready)
		service_enqueue(s);
	TAKE_PTR(s);
	pump(n);
	return 0;
}

static void on_unsubscribed(void *user, const struct nacos_msg *m, const char *why, uint64_t received_ns)
{
	(void)user;
	(void)m;
	(void)why;
	(void)received_ns;
}

static void forget(struct nacos *n, struct service *s)
{
	if (s->call) {
		nacos_grpc_cancel(s->call);
		n->n_calls--;
	}
	service_rest(s);
	if (s->latest)
		TAILQ_REMOVE(&n->fresh, s, fresh);
	TAILQ_REMOVE(&n->all, s, all);
	tdelete(s, &n->index, service_compare);
	n->n_services--;
	service_free(s);
}

static int unsubscribe(struct registry *r, const char *group, const char *name)
{
	struct nacos *n = (struct nacos *)r;
	struct service *s = service_find(n, group, name);
	const struct nacos_call_handler handler = {on_unsubscribed, n};
	_cleanup_(nacos_bytes_done) struct nacos_bytes request = {0};

	if (!s)
		return 0;
	/* when this does not get through, pushes for it are acknowledged and dropped until the connection ends */
	if (n->ready && !nacos_msg_subscribe(n->ns, group, name, false, &request))
		(void)nacos_grpc_call(n->link, &request, &handler);
	forget(n, s);
	pump(n);
	return 0;
}

static void nacos_free(struct registry *r)
{
	struct nacos *n = (struct nacos *)r;
	struct service *s;

	unlink_all(n);
	while ((s = TAILQ_FIRST(&n->all)))
		forget(n, s);
	for (size_t i = 0; i < n->n_servers; i++)
		nacos_server_done(&n->servers[i]);
	if (n->retry)
		event_free(n->retry);
	if (n->deliver)
		event_free(n->deliver);
	free(n->servers);
	free(n->ns);
	free(n->client_version);
	free(n->log_area);
	free(n->registry.name);
	free(n);
}
DEFINE_CLEANUP(struct registry *, registry_free)

static int servers_copy(struct nacos *n, const struct nacos_options *options)
{
	n->servers = calloc(options->n_servers, sizeof(*n->servers));
	if (!n->servers)
		return -ENOMEM;
	for (; n->n_servers < options->n_servers; n->n_servers++) {
		n->servers[n->n_servers] = options->servers[n->n_servers];
		n->servers[n->n_servers].host = strdup(options->servers[n->n_servers].host);
		if (!n->servers[n->n_servers].host)
			return -ENOMEM;
	}
	return 0;
}

struct registry *nacos_new(struct event_base *loop, const char *name, const struct nacos_options *options,
			   const struct registry_sink *sink)
{
	static const struct registry_ops ops = {start, subscribe, unsubscribe, status, nacos_free};
	_cleanup_(registry_freep) struct registry *r = NULL;
	struct nacos *n;

	if (!options->n_servers) {
		errno = EINVAL;
		return NULL;
	}
	n = calloc(1, sizeof(*n));
	errno = ENOMEM;
	if (!n)
		return NULL;
	r = &n->registry;
	*r = (struct registry){&ops, loop, *sink, strdup(name)};
	TAILQ_INIT(&n->all);
	TAILQ_INIT(&n->queue);
	TAILQ_INIT(&n->fresh);
	n->backoff = (struct backoff){CONNECT_MIN_NS, CONNECT_MAX_NS, 0};
	n->state = REGISTRY_CONNECTING;
	n->since_ns = clock_realtime_ns();
	n->ns = strdup(options->ns && *options->ns ? options->ns : "public");
	n->client_version = strdup(options->client_version);
	n->retry = event_new(loop, -1, 0, on_retry, n);
	n->deliver = event_new(loop, -1, 0, on_deliver, n);
	if (asprintf(&n->log_area, "registry %s", name) < 0)
		n->log_area = NULL;
	if (!r->name || !n->ns || !n->client_version || !n->retry || !n->deliver || !n->log_area ||
	    servers_copy(n, options))
		return NULL;
	return TAKE_PTR(r);
}
