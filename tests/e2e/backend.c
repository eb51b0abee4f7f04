/* SPDX-License-Identifier: MIT */
/* backend NAME PORT: the server of the namespace tests. One thread, one epoll; the first line of a connection says what it is:
 *
 *   name           answers NAME, waits for the client to close            (the client keeps TIME_WAIT)
 *   bye            answers NAME and closes first                          (the backend keeps TIME_WAIT)
 *   echo           answers NAME, then sends back what comes, until the client closes its side
 *   sink SEED      reads the pattern of SEED to the client's FIN, then answers "NAME BYTES ok" (or bad)
 *   source N SEED  sends N bytes of the pattern of SEED (0: without end), then closes its side and waits
 *   both N SEED    source N SEED and sink SEED + 1 at once; the answer follows the N bytes
 *   stats          answers "NAME accepted=N open=N reset=N"; such connections do not count
 *
 * The pattern is a function of seed and position, so every byte is checked for being right and in its place. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum mode { MODE_NONE, MODE_NAME, MODE_BYE, MODE_ECHO, MODE_SINK, MODE_SOURCE, MODE_BOTH, MODE_STATS };

struct conn {
	int fd;
	enum mode mode;
	bool eof; /* the client has closed its side */
	bool shut; /* we have closed ours */
	bool reported;
	bool bad; /* a byte of the pattern was wrong */
	uint32_t events;
	uint64_t n_in, n_out; /* pattern bytes so far */
	uint64_t n_wanted; /* to send */
	uint64_t seed_in, seed_out;
	size_t n_queued, n_sent;
	char queue[16384]; /* the first line until it is whole, then what waits to be sent */
};

static const char *own_name;
static uint64_t n_accepted, n_open, n_reset;
static int loop;

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

static void conn_close(struct conn *c)
{
	if (c->mode != MODE_STATS)
		n_open--;
	close(c->fd);
	free(c);
}

static void conn_queue_line(struct conn *c, const char *rest)
{
	int n = snprintf(c->queue + c->n_queued, sizeof(c->queue) - c->n_queued, "%s%s\n", own_name, rest);

	c->n_queued += (size_t)n;
}

/* The first line is whole at end: 0, or -1 when it says nothing we know. */
static int conn_start(struct conn *c, char *end)
{
	size_t rest = c->n_queued - (size_t)(end + 1 - c->queue);
	char verb[16], text[96];
	uint64_t a = 0, b = 0;
	int n;

	*end = 0;
	n = sscanf(c->queue, "%15s %" SCNu64 " %" SCNu64, verb, &a, &b);
	memmove(c->queue, end + 1, rest);
	c->n_queued = 0;
	if (n < 1 || rest)
		return -1; /* clients wait for an answer, or send the pattern after a pause of one packet */
	if (!strcmp(verb, "name") || !strcmp(verb, "bye") || !strcmp(verb, "echo")) {
		c->mode = verb[0] == 'n' ? MODE_NAME : verb[0] == 'b' ? MODE_BYE : MODE_ECHO;
		conn_queue_line(c, "");
	} else if (!strcmp(verb, "sink") && n == 2) {
		c->mode = MODE_SINK;
		c->seed_in = a;
		conn_queue_line(c, "");
	} else if ((!strcmp(verb, "source") || !strcmp(verb, "both")) && n == 3) {
		c->mode = verb[0] == 's' ? MODE_SOURCE : MODE_BOTH;
		c->n_wanted = a || c->mode == MODE_BOTH ? a : UINT64_MAX;
		c->seed_out = b;
		c->seed_in = b + 1;
		conn_queue_line(c, "");
	} else if (!strcmp(verb, "stats")) {
		c->mode = MODE_STATS;
		n_open--;
		n_accepted--;
		snprintf(text, sizeof(text), " accepted=%" PRIu64 " open=%" PRIu64 " reset=%" PRIu64, n_accepted, n_open, n_reset);
		conn_queue_line(c, text);
	} else {
		return -1;
	}
	return 0;
}

static int conn_take(struct conn *c, const char *data, size_t n)
{
	char want[65536], *end;

	switch (c->mode) {
	case MODE_NONE:
		memcpy(c->queue + c->n_queued, data, n);
		c->n_queued += n;
		end = memchr(c->queue, '\n', c->n_queued);
		return end ? conn_start(c, end) : 0;
	case MODE_ECHO:
		memcpy(c->queue + c->n_queued, data, n);
		c->n_queued += n;
		return 0;
	case MODE_SINK:
	case MODE_BOTH:
		pattern_fill(want, n, c->seed_in, c->n_in);
		c->bad |= memcmp(want, data, n) != 0;
		c->n_in += n;
		return 0;
	default:
		return 0;
	}
}

/* How much may be read now. */
static size_t conn_room(const struct conn *c)
{
	if (c->eof)
		return 0;
	if (c->mode == MODE_NONE || c->mode == MODE_ECHO)
		return sizeof(c->queue) - 128 - c->n_queued;
	return 65536;
}

/* 1: something read; 0: nothing there, or no room; -1: the connection is broken. */
static int conn_read(struct conn *c)
{
	char data[65536];
	size_t room = conn_room(c);
	ssize_t n;

	if (!room)
		return 0;
	n = recv(c->fd, data, room, 0);
	if (n < 0)
		return errno == EAGAIN ? 0 : -1;
	if (n == 0) {
		c->eof = true;
		return 1;
	}
	return conn_take(c, data, (size_t)n) < 0 ? -1 : 1;
}

/* The same for sending: what is queued, then the pattern. */
static int conn_write(struct conn *c)
{
	char data[65536];
	ssize_t n;

	if (c->mode == MODE_NONE)
		return 0;
	if (c->n_queued > c->n_sent) {
		n = send(c->fd, c->queue + c->n_sent, c->n_queued - c->n_sent, MSG_NOSIGNAL);
		if (n < 0)
			return errno == EAGAIN ? 0 : -1;
		c->n_sent += (size_t)n;
		if (c->n_sent == c->n_queued)
			c->n_sent = c->n_queued = 0;
		return 1;
	}
	if (c->n_out < c->n_wanted) {
		size_t len = c->n_wanted - c->n_out < sizeof(data) ? (size_t)(c->n_wanted - c->n_out) : sizeof(data);

		pattern_fill(data, len, c->seed_out, c->n_out);
		n = send(c->fd, data, len, MSG_NOSIGNAL);
		if (n < 0)
			return errno == EAGAIN ? 0 : -1;
		c->n_out += (uint64_t)n;
		return 1;
	}
	return 0;
}

/* Does what follows when all is sent; true when the connection is done with. */
static bool conn_finished(struct conn *c)
{
	char text[64];

	if (c->n_queued || c->n_out < c->n_wanted)
		return false;
	switch (c->mode) {
	case MODE_NONE:
		return c->eof;
	case MODE_BYE:
		return true;
	case MODE_SOURCE:
		if (!c->shut)
			shutdown(c->fd, SHUT_WR);
		c->shut = true;
		return c->eof;
	case MODE_SINK:
	case MODE_BOTH:
		if (!c->eof || c->reported)
			return c->reported;
		snprintf(text, sizeof(text), " %" PRIu64 " %s", c->n_in, c->bad ? "bad" : "ok");
		conn_queue_line(c, text);
		c->reported = true;
		return false;
	default:
		return c->eof;
	}
}

static void conn_step(struct conn *c)
{
	struct epoll_event ev = { .data.ptr = c };

	/* bounded, so that one busy connection does not keep the others waiting */
	for (int i = 0; i < 8; i++) {
		int in = conn_read(c), out = in < 0 ? 0 : conn_write(c);

		if (in < 0 || out < 0) {
			n_reset += c->mode != MODE_STATS;
			conn_close(c);
			return;
		}
		if (conn_finished(c)) {
			conn_close(c);
			return;
		}
		if (!in && !out)
			break;
	}
	ev.events = (conn_room(c) ? EPOLLIN : 0) | (c->mode && (c->n_queued || c->n_out < c->n_wanted) ? EPOLLOUT : 0);
	if (ev.events != c->events)
		epoll_ctl(loop, EPOLL_CTL_MOD, c->fd, &ev);
	c->events = ev.events;
}

static void accept_all(int listener)
{
	for (;;) {
		int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		struct epoll_event ev = { .events = EPOLLIN };
		struct conn *c;

		if (fd < 0)
			return;
		c = calloc(1, sizeof(*c));
		if (!c) {
			close(fd);
			return;
		}
		c->fd = fd;
		c->events = EPOLLIN;
		ev.data.ptr = c;
		epoll_ctl(loop, EPOLL_CTL_ADD, fd, &ev);
		n_accepted++;
		n_open++;
	}
}

static int listen_on(uint16_t port)
{
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_port = htons(port) };
	int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (fd < 0 || bind(fd, (struct sockaddr *)&sa, sizeof(sa)) || listen(fd, 16384)) {
		perror("backend: listen");
		exit(1);
	}
	return fd;
}

int main(int argc, char **argv)
{
	struct rlimit files = { 65536, 65536 };
	struct epoll_event ev = { .events = EPOLLIN };
	int listener;

	if (argc != 3) {
		fprintf(stderr, "usage: backend NAME PORT\n");
		return 2;
	}
	own_name = argv[1];
	(void)setrlimit(RLIMIT_NOFILE, &files);
	listener = listen_on((uint16_t)atoi(argv[2]));
	loop = epoll_create1(EPOLL_CLOEXEC);
	epoll_ctl(loop, EPOLL_CTL_ADD, listener, &ev);
	puts("ready");
	fflush(stdout);
	for (;;) {
		struct epoll_event got[64];
		int n = epoll_wait(loop, got, 64, -1);

		for (int i = 0; i < n; i++) {
			if (got[i].data.ptr)
				conn_step(got[i].data.ptr);
			else
				accept_all(listener);
		}
	}
}
