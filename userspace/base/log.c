// SPDX-License-Identifier: MIT
#include "log.h"
#include "clock.h"
#include "utf8.h"
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MESSAGE_BYTES 2048			/* longer ones are cut */
#define LINE_BYTES    (MESSAGE_BYTES * 6 + 256) /* \u00XX for every byte, and the rest of the line */

static const char *const level_names[] = {"debug", "info", "warning", "error"};

static struct {
	enum log_level level;
	bool json;
	bool journal; /* it has its own timestamps */
	unsigned long n_lost;
} settings = {.level = LOG_LEVEL_INFO};

struct line {
	char text[LINE_BYTES];
	size_t size;
};

/* $JOURNAL_STREAM is "device:inode" of the journal's socket; stderr may have been redirected since (systemd.exec(5)).
 */
static bool stderr_is_journal(void)
{
	const char *text = getenv("JOURNAL_STREAM");
	unsigned long long device, inode;
	struct stat st;

	if (!text || sscanf(text, "%llu:%llu", &device, &inode) != 2 || fstat(STDERR_FILENO, &st) < 0)
		return false;
	return st.st_dev == device && st.st_ino == inode;
}

void log_init(enum log_level level, bool json)
{
	settings.level = level;
	settings.json = json;
	settings.journal = stderr_is_journal();
}

static void put_bytes(struct line *l, const char *bytes, size_t n)
{
	if (n > sizeof(l->text) - l->size)
		n = sizeof(l->text) - l->size;
	memcpy(l->text + l->size, bytes, n);
	l->size += n;
}

static void put(struct line *l, const char *text)
{
	put_bytes(l, text, strlen(text));
}

/* One character as JSON, or, in text, made harmless: a name from the registry must not be able to start a line of its
 * own or talk to the terminal. */
static void put_escaped(struct line *l, const char *c, size_t n, bool json)
{
	unsigned char first = (unsigned char)*c;
	char escape[8];

	if (n == 0) {
		put(l, "?");
	} else if (first < 0x20 || first == 0x7f) {
		(void)snprintf(escape, sizeof(escape), "\\u%04x", first);
		put(l, json ? escape : "?");
	} else {
		if (json && (*c == '"' || *c == '\\'))
			put(l, "\\");
		put_bytes(l, c, n);
	}
}

static void put_text(struct line *l, const char *text, bool json)
{
	size_t size = strlen(text);

	for (size_t i = 0, n; i < size; i += n ? n : 1) {
		n = utf8_char(text + i, size - i);
		put_escaped(l, text + i, n, json);
	}
}

static void put_line(struct line *l, enum log_level level, const char *area, const char *message)
{
	char now[32];

	time_format(clock_realtime_ns(), now, sizeof(now));
	if (settings.json) {
		put(l, "{\"time\":\"");
		put(l, now);
		put(l, "\",\"level\":\"");
		put(l, level_names[level]);
		put(l, "\",\"area\":\"");
		put_text(l, area, true);
		put(l, "\",\"message\":\"");
		put_text(l, message, true);
		put(l, "\"}\n");
		return;
	}
	if (!settings.journal) {
		put(l, now);
		put(l, " ");
	}
	put(l, level_names[level]);
	put(l, " ");
	put_text(l, area, false);
	put(l, ": ");
	put_text(l, message, false);
	put(l, "\n");
}

/* Whoever reads our stderr through a pipe may have stopped reading, and the event loop must not wait for it. poll()
 * tells whether a write of up to PIPE_BUF goes in at once. One write, so that lines of several processes do not mix; a
 * log that cannot be written has nobody to tell. */
static bool write_line(const struct line *l)
{
	struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};

	if (poll(&p, 1, 0) == 0)
		return false;
	while (write(STDERR_FILENO, l->text, l->size) < 0 && errno == EINTR)
		;
	return true;
}

static void write_message(enum log_level level, const char *area, const char *message)
{
	struct line l;
	char lost[64];

	if (settings.n_lost) {
		(void)snprintf(lost, sizeof(lost), "%lu lines are lost: nobody read the log", settings.n_lost);
		l.size = 0;
		put_line(&l, LOG_LEVEL_WARNING, "log", lost);
		if (write_line(&l))
			settings.n_lost = 0;
	}
	l.size = 0;
	put_line(&l, level, area, message);
	settings.n_lost += !write_line(&l);
}

void log_write(enum log_level level, const char *area, const char *format, ...)
{
	char message[MESSAGE_BYTES];
	int saved = errno;
	va_list ap;

	if (level < settings.level)
		return;
	va_start(ap, format);
	if (vsnprintf(message, sizeof(message), format, ap) < 0)
		message[0] = '\0';
	va_end(ap);
	write_message(level, area, message);
	errno = saved;
}

bool log_limit_passes(struct log_limit *limit, uint64_t now_ns, uint64_t interval_ns, uint64_t *ret_held_back)
{
	if (limit->last_ns && now_ns - limit->last_ns < interval_ns) {
		limit->n_held_back++;
		return false;
	}
	*ret_held_back = limit->n_held_back;
	limit->n_held_back = 0;
	limit->last_ns = now_ns;
	return true;
}
