// SPDX-License-Identifier: MIT
#include "unit.h"
#include "base/json.h"
#include "base/log.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

/* stderr is a datagram socket while a line is caught: one datagram is one write */
static int catcher = -1;
static int saved_stderr = -1;

static int catch_stderr(void **state)
{
	int pair[2];

	(void)state;
	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return -1;
	saved_stderr = dup(STDERR_FILENO);
	if (saved_stderr < 0 || dup2(pair[1], STDERR_FILENO) < 0)
		return -1;
	catcher = pair[0];
	return close(pair[1]);
}

static int release_stderr(void **state)
{
	(void)state;
	if (dup2(saved_stderr, STDERR_FILENO) < 0)
		return -1;
	return close(saved_stderr) | close(catcher);
}

/* The one line written, without its newline; "": none. */
static const char *caught(void)
{
	static char line[65536];
	ssize_t n = recv(catcher, line, sizeof(line) - 1, 0);

	if (n < 0)
		return "";
	assert_true(n > 0 && line[n - 1] == '\n');
	line[n - 1] = '\0';
	assert_null(strchr(line, '\n'));
	assert_int_equal(recv(catcher, line + n, 1, 0), -1); /* one write */
	return line;
}

static void text_lines(void **state)
{
	const char *line;

	(void)state;
	(void)unsetenv("JOURNAL_STREAM");
	log_init(LOG_LEVEL_INFO, false);
	errno = ENOENT;
	log_warning("nacos", "%s is %d", "x", 7);
	assert_int_equal(errno, ENOENT);
	line = caught();
	assert_int_equal(line[10], 'T');
	assert_int_equal(line[23], 'Z');
	assert_string_equal(line + 24, " warning nacos: x is 7");
}

static void levels(void **state)
{
	(void)state;
	log_init(LOG_LEVEL_WARNING, false);
	log_debug("a", "m");
	assert_string_equal(caught(), "");
	log_info("a", "m");
	assert_string_equal(caught(), "");
	log_warning("a", "m");
	assert_non_null(strstr(caught(), " warning a: m"));
	log_error("a", "m");
	assert_non_null(strstr(caught(), " error a: m"));
	log_init(LOG_LEVEL_DEBUG, false);
	log_debug("a", "m");
	assert_non_null(strstr(caught(), " debug a: m"));
}

static void forged_lines(void **state)
{
	(void)state;
	log_init(LOG_LEVEL_INFO, false);
	log_info("a", "%s", "svc\n2026 error agent: forged\x1b[2J\xff é");
	assert_non_null(strstr(caught(), " info a: svc?2026 error agent: forged?[2J? é"));
}

static void json_lines(void **state)
{
	_cleanup_json_ cJSON *json = NULL;
	const char *line;

	(void)state;
	log_init(LOG_LEVEL_INFO, true);
	log_info("file", "%s", "a \"quoted\" \\ name\n\x01 \xff é");
	line = caught();
	json = json_parse(line, strlen(line));
	assert_non_null(json);
	assert_string_equal(json_string(json, "level"), "info");
	assert_string_equal(json_string(json, "area"), "file");
	assert_string_equal(json_string(json, "message"), "a \"quoted\" \\ name\n\x01 ? é");
	assert_int_equal(strlen(json_string(json, "time")), 24);
}

static void long_lines(void **state)
{
	_cleanup_json_ cJSON *json = NULL;
	_cleanup_free_ char *text = malloc(100001);
	const char *line;

	(void)state;
	assert_non_null(text);
	memset(text, '\x01', 100000);
	text[100000] = '\0';
	log_init(LOG_LEVEL_INFO, true);
	log_info("a", "%s", text);
	line = caught();
	json = json_parse(line, strlen(line));
	assert_non_null(json);
	assert_in_range(strlen(json_string(json, "message")), 1000, 10000);
}

static void unread_pipe(void **state)
{
	static char all[1 << 17];
	size_t n = 0;
	int pair[2], saved = dup(STDERR_FILENO);

	(void)state;
	log_init(LOG_LEVEL_INFO, false);
	assert_int_equal(pipe2(pair, O_CLOEXEC | O_NONBLOCK), 0);
	assert_int_equal(fcntl(pair[1], F_SETFL, 0), 0); /* its writer would wait */
	assert_true(saved >= 0 && dup2(pair[1], STDERR_FILENO) >= 0);
	for (int i = 0; i < 10000; i++)
		log_info("a", "line %d", i);
	for (ssize_t got; (got = read(pair[0], all + n, sizeof(all) - 1 - n)) > 0;)
		n += (size_t)got;
	log_info("a", "read again");
	for (ssize_t got; (got = read(pair[0], all, sizeof(all) - 1)) > 0;)
		all[got] = '\0';
	assert_true(dup2(saved, STDERR_FILENO) >= 0);
	assert_true(n > 10000 && n < sizeof(all) - 1);
	assert_non_null(strstr(all, " warning log: "));
	assert_non_null(strstr(all, " lines are lost: nobody read the log\n"));
	assert_non_null(strstr(all, " info a: read again\n"));
	(void)close(saved);
	(void)close(pair[0]);
	(void)close(pair[1]);
}

static void limits(void **state)
{
	struct log_limit l = {0};
	uint64_t held_back = 42;

	(void)state;
	assert_true(log_limit_passes(&l, 100, 10, &held_back));
	assert_int_equal(held_back, 0);
	for (uint64_t t = 101; t < 110; t++)
		assert_false(log_limit_passes(&l, t, 10, &held_back));
	assert_true(log_limit_passes(&l, 110, 10, &held_back));
	assert_int_equal(held_back, 9);
	assert_true(log_limit_passes(&l, 500, 10, &held_back));
	assert_int_equal(held_back, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE("a line of text has time, level, area and message, in one write", text_lines),
		CASE("lines below the level are not written", levels),
		CASE("what a registry says cannot start a line or talk to the terminal", forged_lines),
		CASE("a line of JSON is JSON whatever the message", json_lines),
		CASE("a message too long is cut and its line is still whole", long_lines),
		CASE("a pipe that nobody reads is not waited for, and what was lost is counted", unread_pipe),
		CASE("one line passes an interval and tells how many were held back", limits),
	};

	return cmocka_run_group_tests_name("log", tests, catch_stderr, release_stderr);
}
