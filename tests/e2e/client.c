/* SPDX-License-Identifier: MIT */
/* client VERB ADDR:PORT …: the clients of the namespace tests and of the demo. Talks to tests/e2e/backend.c; one line of JSON at
 * the end.
 *
 *   shares ADDR:PORT N [-c AT_ONCE] [-v VERB] [-t SECONDS]   N connections; how many each backend answered, and the errors
 *   bulk ADDR:PORT up|down|both BYTES [-t SECONDS]           one connection; every byte checked in its place
 *   load ADDR:PORT CONNS [-i MS] [-x EXCHANGES] [-t SECONDS] CONNS connections that echo without end, or are closed and opened
 *                                                            anew after so many exchanges; prints "ready" when all are open;
 *                                                            to SIGTERM or SECONDS; counts lost, stalled, corrupt
 *   watch ADDR:PORT [-t SECONDS] [-r FROM=TO]                new connections one after another; a line "NANOSECONDS NAME"
 *                                                            each (CLOCK_REALTIME when it was answered), to SIGTERM; after
 *                                                            the 200th renames FROM to TO and says so in such a line */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MAX_NAMES 64
#define STALL_NS 8000000000ULL

/* How often each word was seen: backends' names, or errors. */
struct tally {
	char name[MAX_NAMES][32];
	uint64_t n[MAX_NAMES];
	int len;
};

static struct sockaddr_in server;
static struct tally answers, errors;
static volatile sig_atomic_t stopping;
static double seconds = 60;
static int at_once = 16, interval_ms = 20, n_exchanges;
static const char *verb = "name";
static char *rename_pair;

static void on_signal(int sig)
{
	(void)sig;
	stopping = 1;
}

static uint64_t now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void tally_add(struct tally *t, const char *name)
{
	int i = 0;

	while (i < t->len && strcmp(t->name[i], name))
		i++;
	if (i == MAX_NAMES)
		return;
	if (i == t->len)
		snprintf(t->name[t->len++], sizeof(t->name[0]), "%s", name);
	t->n[i]++;
}

static void tally_error(int err)
{
	tally_add(&errors, err ? strerrorname_np(err) : "EOF");
}

static void tally_print(const char *key, const struct tally *t)
{
	printf("\"%s\": {", key);
	for (int i = 0; i < t->len; i++)
		printf("%s\"%s\": %" PRIu64, i ? ", " : "", t->name[i], t->n[i]);
	printf("}");
}

static uint64_t pattern_word(uint64_t x)
{
	x = (x + 1) * 0x9e3779b97f4a7c15;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
	return x ^ (x >> 31);
}

static void pattern_fill(char *buf, size_t n, uint64_t seed, uint64_t at)
{
	for (size_t i = 0; i < n;) {
		uint64_t w = pattern_word((seed << 40) + (at + i) / 8);
		size_t skip = (at + i) % 8, len = 8 - skip;

		if (len > n - i)
			len = n - i;
		memcpy(buf + i, (char *)&w + skip, len);
		i += len;
	}
}

/* A connection begun without waiting, or -1 with the error counted. */
static int begin(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd >= 0 && (!connect(fd, (struct sockaddr *)&server, sizeof(server)) || errno == EINPROGRESS))
		return fd;
	tally_error(errno);
	if (fd >= 0)
		close(fd);
	return -1;
}

/* ---- shares and load: many connections in one epoll ---- */
struct conn {
	int fd; /* -1: none */
	bool connected, greeted;
	uint64_t seed;
	uint64_t at; /* pattern bytes sent and checked before the exchange under way */
	size_t n_line;
	char line[64];
	size_t n_sent, n_got, n_len; /* of the exchange; n_len 0: none under way */
	uint64_t due_ns; /* next exchange */
	uint64_t asked_ns; /* since when it waits for the other side */
	int n_done; /* exchanges */
	char data[4096];
};

static int loop;
static uint64_t n_opened, n_finished, n_lost, n_stalled, n_corrupt, n_exchanged;

static void conn_end(struct conn *c)
{
	close(c->fd);
	c->fd = -1;
	n_finished++;
}

static void conn_fail(struct conn *c, int err)
{
	tally_error(err);
	n_lost++;
	conn_end(c);
}

static void conn_open(struct conn *c, uint64_t seed)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLOUT, .data.ptr = c };

	memset(c, 0, offsetof(struct conn, data));
	c->seed = seed;
	c->asked_ns = now_ns(CLOCK_MONOTONIC);
	c->fd = begin();
	n_opened++;
	if (c->fd < 0) {
		n_lost++;
		n_finished++;
		return;
	}
	epoll_ctl(loop, EPOLL_CTL_ADD, c->fd, &ev);
}

/* The socket says it is connected or has failed: asks, and waits for input only from then on. */
static bool conn_connected(struct conn *c, const char *ask)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = c };
	char text[32];
	int err = 0, n;
	socklen_t len = sizeof(err);

	getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &err, &len);
	n = snprintf(text, sizeof(text), "%s\n", ask);
	if (!err && send(c->fd, text, (size_t)n, MSG_NOSIGNAL) != n)
		err = errno;
	if (err) {
		conn_fail(c, err);
		return false;
	}
	c->connected = true;
	epoll_ctl(loop, EPOLL_CTL_MOD, c->fd, &ev);
	return true;
}

/* Reads towards the first line; true when it is whole and counted, with nothing read beyond it. */
static bool conn_greeting(struct conn *c)
{
	while (c->n_line < sizeof(c->line) - 1) {
		ssize_t n = recv(c->fd, c->line + c->n_line, 1, 0);

		if (n < 0 && errno == EAGAIN)
			return false;
		if (n <= 0) {
			conn_fail(c, n ? errno : 0);
			return false;
		}
		if (c->line[c->n_line] == '\n') {
			c->line[c->n_line] = 0;
			c->greeted = true;
			tally_add(&answers, c->line);
			return true;
		}
		c->n_line++;
	}
	conn_fail(c, EMSGSIZE);
	return false;
}

static void exchange_send(struct conn *c)
{
	while (c->n_sent < c->n_len) {
		ssize_t n = send(c->fd, c->data + c->n_sent, c->n_len - c->n_sent, MSG_NOSIGNAL);

		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0) {
			conn_fail(c, errno);
			return;
		}
		c->n_sent += (size_t)n;
	}
}

static void exchange_begin(struct conn *c, uint64_t now)
{
	c->n_len = 1 + (size_t)(pattern_word(c->seed ^ c->at) % sizeof(c->data));
	c->n_sent = c->n_got = 0;
	c->asked_ns = now;
	pattern_fill(c->data, c->n_len, c->seed, c->at);
	exchange_send(c);
}

static void exchange_read(struct conn *c, uint64_t now)
{
	char got[sizeof(c->data)];
	ssize_t n = recv(c->fd, got, c->n_len ? c->n_len - c->n_got : 1, 0);

	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0) {
		conn_fail(c, n ? errno : 0);
		return;
	}
	if (!c->n_len || memcmp(got, c->data + c->n_got, (size_t)n)) {
		n_corrupt++;
		conn_end(c);
		return;
	}
	c->n_got += (size_t)n;
	if (c->n_got < c->n_len)
		return;
	c->at += c->n_len;
	c->n_len = 0;
	c->n_done++;
	c->due_ns = now + (uint64_t)interval_ms * 1000000;
	n_exchanged++;
	if (n_exchanges && c->n_done >= n_exchanges)
		conn_end(c);
}

static int do_shares(uint64_t n_wanted)
{
	struct conn *all = calloc((size_t)at_once, sizeof(*all));
	uint64_t start = now_ns(CLOCK_MONOTONIC), end = start + (uint64_t)(seconds * 1e9), now = start, n_ok = 0;

	for (int i = 0; i < at_once; i++)
		all[i].fd = -1;
	while (n_finished < n_wanted && now < end && !stopping) {
		struct epoll_event got[64];
		int n;

		for (int i = 0; i < at_once && n_opened < n_wanted; i++) {
			if (all[i].fd < 0)
				conn_open(&all[i], n_opened);
		}
		n = epoll_wait(loop, got, 64, 100);
		now = now_ns(CLOCK_MONOTONIC);
		for (int i = 0; i < n; i++) {
			struct conn *c = got[i].data.ptr;

			if (!c->connected && !conn_connected(c, verb))
				continue;
			if (conn_greeting(c)) {
				n_ok++;
				conn_end(c);
			}
		}
	}
	for (uint64_t i = n_finished; i < n_opened; i++)
		tally_error(ETIMEDOUT);
	printf("{\"connections\": %" PRIu64 ", \"answered\": %" PRIu64 ", \"seconds\": %.3f, ", n_opened, n_ok,
	       (double)(now - start) / 1e9);
	tally_print("answers", &answers);
	printf(", ");
	tally_print("errors", &errors);
	printf("}\n");
	free(all);
	return 0;
}

static void load_tick(struct conn *all, int n_all, uint64_t now)
{
	for (int i = 0; i < n_all; i++) {
		struct conn *c = &all[i];

		if (c->fd < 0) {
			if (n_exchanges)
				conn_open(c, n_opened);
			continue;
		}
		if ((!c->greeted || c->n_len) && now - c->asked_ns > STALL_NS) {
			n_stalled++;
			conn_end(c);
		} else if (c->greeted && c->n_len) {
			exchange_send(c);
		} else if (c->greeted && now >= c->due_ns) {
			exchange_begin(c, now);
		}
	}
}

static void load_event(struct conn *c, uint64_t now, int *n_ready)
{
	if (c->fd < 0 || (!c->connected && !conn_connected(c, "echo")))
		return;
	if (c->greeted)
		exchange_read(c, now);
	else if (conn_greeting(c))
		(*n_ready)++;
}

static int do_load(int n_all)
{
	struct conn *all = calloc((size_t)n_all, sizeof(*all));
	uint64_t end = now_ns(CLOCK_MONOTONIC) + (uint64_t)(seconds * 1e9), now = 0;
	int n_ready = 0;
	bool said = false;

	for (int i = 0; i < n_all; i++)
		conn_open(&all[i], n_opened);
	while (now < end && !stopping) {
		struct epoll_event got[256];
		int n = epoll_wait(loop, got, 256, 5);

		now = now_ns(CLOCK_MONOTONIC);
		for (int i = 0; i < n; i++)
			load_event(got[i].data.ptr, now, &n_ready);
		load_tick(all, n_all, now);
		if (!said && n_ready >= n_all) {
			said = true;
			puts("ready");
			fflush(stdout);
		}
	}
	printf("{\"opened\": %" PRIu64 ", \"exchanges\": %" PRIu64 ", \"lost\": %" PRIu64 ", \"stalled\": %" PRIu64
	       ", \"corrupt\": %" PRIu64 ", ", n_opened, n_exchanged, n_lost, n_stalled, n_corrupt);
	tally_print("answers", &answers);
	printf(", ");
	tally_print("errors", &errors);
	printf("}\n");
	free(all);
	return 0;
}

/* ---- bulk and watch: one connection at a time ---- */

/* Connects and asks, waits for the backend's name; 0 or the error. The socket stays non-blocking. */
static int ask(const char *text, int *ret_fd, char name[32])
{
	int fd = begin(), err = 0;
	socklen_t len = sizeof(err);
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	size_t n = 0;

	if (fd < 0)
		return EHOSTUNREACH;
	if (poll(&p, 1, 10000) < 1)
		err = ETIMEDOUT;
	else
		getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len);
	if (!err && send(fd, text, strlen(text), MSG_NOSIGNAL) < 0)
		err = errno;
	p.events = POLLIN;
	while (!err && n < 31) {
		ssize_t r;

		if (poll(&p, 1, 10000) < 1) {
			err = ETIMEDOUT;
			break;
		}
		r = recv(fd, name + n, 1, 0);
		if (r <= 0)
			err = r ? errno : ECONNRESET;
		else if (name[n] == '\n')
			break;
		n++;
	}
	name[n] = 0;
	if (err) {
		close(fd);
		return err;
	}
	*ret_fd = fd;
	return 0;
}

struct bulk {
	int fd;
	uint64_t n_out, n_in, to_send, to_read;
	uint64_t seed_out, seed_in;
	bool bad, eof;
	char report[128]; /* what follows the pattern */
	size_t n_report;
};

/* One poll's worth of both directions; 0 or the error. */
static int bulk_step(struct bulk *b)
{
	struct pollfd p = { .fd = b->fd, .events = (short)(POLLIN | (b->n_out < b->to_send ? POLLOUT : 0)) };
	char data[65536], want[65536];
	ssize_t n;

	if (poll(&p, 1, 10000) < 1)
		return ETIMEDOUT;
	if (p.revents & POLLOUT) {
		size_t len = b->to_send - b->n_out < sizeof(data) ? (size_t)(b->to_send - b->n_out) : sizeof(data);

		pattern_fill(data, len, b->seed_out, b->n_out);
		n = send(b->fd, data, len, MSG_NOSIGNAL);
		if (n < 0 && errno != EAGAIN)
			return errno;
		b->n_out += n > 0 ? (uint64_t)n : 0;
		if (b->n_out == b->to_send)
			shutdown(b->fd, SHUT_WR);
	}
	if (!(p.revents & (POLLIN | POLLHUP | POLLERR)))
		return 0;
	n = recv(b->fd, data, b->n_in < b->to_read && b->to_read - b->n_in < sizeof(data) ? (size_t)(b->to_read - b->n_in) : sizeof(data), 0);
	if (n < 0)
		return errno == EAGAIN ? 0 : errno;
	b->eof = n == 0;
	if (b->n_in < b->to_read) {
		pattern_fill(want, (size_t)n, b->seed_in, b->n_in);
		b->bad |= memcmp(want, data, (size_t)n) != 0;
		b->n_in += (uint64_t)n;
	} else if ((size_t)n < sizeof(b->report) - b->n_report) {
		memcpy(b->report + b->n_report, data, (size_t)n);
		b->n_report += (size_t)n;
	}
	return 0;
}

static int do_bulk(const char *way, uint64_t n_bytes)
{
	bool up = !strcmp(way, "up"), down = !strcmp(way, "down");
	struct bulk b = { .to_send = down ? 0 : n_bytes, .to_read = up ? 0 : n_bytes };
	uint64_t start = now_ns(CLOCK_MONOTONIC), end = start + (uint64_t)(seconds * 1e9), seed = start & 0xffff;
	char text[64], name[32] = "", said[32] = "", verdict[8] = "";
	uint64_t taken = 0;
	int err;

	if (up)
		snprintf(text, sizeof(text), "sink %" PRIu64 "\n", seed + 1);
	else
		snprintf(text, sizeof(text), "%s %" PRIu64 " %" PRIu64 "\n", down ? "source" : "both", n_bytes, seed);
	b.seed_out = seed + 1;
	b.seed_in = seed;
	err = ask(text, &b.fd, name);
	while (!err && !b.eof) {
		err = bulk_step(&b);
		if (!err && now_ns(CLOCK_MONOTONIC) > end)
			err = ETIMEDOUT;
	}
	if (!err && b.n_in < b.to_read)
		err = EPIPE;
	/* the backend's word about what it got */
	if (!err && !down && (sscanf(b.report, "%31s %" SCNu64 " %7s", said, &taken, verdict) != 3 || taken != n_bytes ||
			      strcmp(verdict, "ok") || strcmp(said, name)))
		b.bad = true;
	printf("{\"ok\": %s, \"error\": \"%s\", \"backend\": \"%s\", \"sent\": %" PRIu64 ", \"received\": %" PRIu64
	       ", \"seconds\": %.3f}\n", !err && !b.bad ? "true" : "false", err ? strerrorname_np(err) : b.bad ? "corrupt" : "", name,
	       b.n_out, b.n_in, (double)(now_ns(CLOCK_MONOTONIC) - start) / 1e9);
	return err || b.bad;
}

static void watch_rename(void)
{
	char *to = strchr(rename_pair, '=');
	uint64_t at = now_ns(CLOCK_REALTIME);

	if (to)
		*to++ = 0;
	if (!to || rename(rename_pair, to))
		perror("client: rename");
	printf("%" PRIu64 " renamed\n", at);
}

static int do_watch(void)
{
	uint64_t end = now_ns(CLOCK_MONOTONIC) + (uint64_t)(seconds * 1e9);

	for (int i = 0; now_ns(CLOCK_MONOTONIC) < end && !stopping; i++) {
		char name[32];
		int fd, err;

		if (rename_pair && i == 200)
			watch_rename();
		err = ask("name\n", &fd, name);

		printf("%" PRIu64 " %s\n", now_ns(CLOCK_REALTIME), err ? strerrorname_np(err) : name);
		fflush(stdout);
		if (err)
			usleep(2000);
		else
			close(fd);
	}
	return 0;
}

static int usage(void)
{
	fprintf(stderr, "usage: client shares ADDR:PORT N [-c AT_ONCE] [-v VERB] [-t SECONDS]\n"
			"       client bulk ADDR:PORT up|down|both BYTES [-t SECONDS]\n"
			"       client load ADDR:PORT CONNS [-i MS] [-x EXCHANGES] [-t SECONDS]\n"
			"       client watch ADDR:PORT [-t SECONDS] [-r FROM=TO]\n");
	return 2;
}

static int parse_server(const char *text)
{
	const char *colon = strrchr(text, ':');
	char addr[32];

	if (!colon || (size_t)(colon - text) >= sizeof(addr))
		return -1;
	memcpy(addr, text, (size_t)(colon - text));
	addr[colon - text] = 0;
	server.sin_family = AF_INET;
	server.sin_port = htons((uint16_t)atoi(colon + 1));
	return inet_pton(AF_INET, addr, &server.sin_addr) == 1 ? 0 : -1;
}

int main(int argc, char **argv)
{
	struct sigaction stop = { .sa_handler = on_signal };
	struct rlimit files = { 65536, 65536 };
	int opt;

	(void)setrlimit(RLIMIT_NOFILE, &files);
	sigaction(SIGTERM, &stop, NULL);
	sigaction(SIGINT, &stop, NULL);
	while ((opt = getopt(argc, argv, "c:v:t:i:x:r:")) > 0) {
		switch (opt) {
		case 'c': at_once = atoi(optarg); break;
		case 'v': verb = optarg; break;
		case 't': seconds = atof(optarg); break;
		case 'i': interval_ms = atoi(optarg); break;
		case 'r': rename_pair = optarg; break;
		case 'x': n_exchanges = atoi(optarg); break;
		default: return usage();
		}
	}
	argc -= optind;
	argv += optind;
	loop = epoll_create1(EPOLL_CLOEXEC);
	if (argc < 2 || parse_server(argv[1]))
		return usage();
	if (!strcmp(argv[0], "shares") && argc == 3)
		return do_shares(strtoull(argv[2], NULL, 10));
	if (!strcmp(argv[0], "bulk") && argc == 4)
		return do_bulk(argv[2], strtoull(argv[3], NULL, 10));
	if (!strcmp(argv[0], "load") && argc == 3)
		return do_load(atoi(argv[2]));
	if (!strcmp(argv[0], "watch") && argc == 2)
		return do_watch();
	return usage();
}
