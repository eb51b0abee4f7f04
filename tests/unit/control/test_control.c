/* SPDX-License-Identifier: MIT */
/* The real server and the real client over a real socket: the loop runs in this thread, the client in another. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "base/json.h"
#include "control/control.h"

static char folder[] = "/tmp/steelyard-control-XXXXXX";
static char socket_path[64];

static cJSON *get_echo(void *ctx, const cJSON *body, const char *query, int *ret_code, char *why, size_t why_size)
{
	cJSON *json = cJSON_CreateObject();

	(void)ret_code;
	(void)why;
	(void)why_size;
	(void)cJSON_AddStringToObject(json, "ctx", ctx);
	(void)cJSON_AddStringToObject(json, "query", query);
	(void)cJSON_AddBoolToObject(json, "body", body != NULL);
	return json;
}

static cJSON *post_verb(void *ctx, const cJSON *body, const char *query, int *ret_code, char *why, size_t why_size)
{
	const char *service = json_string(body, "service");
	cJSON *json;

	(void)ctx;
	(void)query;
	if (service && !strcmp(service, "odd")) {
		*ret_code = 409;
		(void)snprintf(why, why_size, "\xff\xc3 is odd");
		return NULL;
	}
	if (!service) {
		*ret_code = 404;
		(void)snprintf(why, why_size, "no service is named");
		return NULL;
	}
	json = cJSON_CreateObject();
	(void)cJSON_AddStringToObject(json, "service", service);
	return json;
}

static cJSON *get_large(void *ctx, const cJSON *body, const char *query, int *ret_code, char *why, size_t why_size)
{
	cJSON *json = cJSON_CreateArray();

	(void)ctx;
	(void)body;
	(void)query;
	(void)ret_code;
	(void)why;
	(void)why_size;
	for (int i = 0; i < 100000; i++)
		(void)cJSON_AddItemToArray(json, cJSON_CreateString("10.0.0.1:80 is one of very many"));
	return json;
}

static const struct control_route routes[] = {
	{"GET", "/api/echo", get_echo}, {"POST", "/api/verb", post_verb}, {"GET", "/api/large", get_large}, {0}};

struct call {
	const char *method, *path;
	const cJSON *body;
	cJSON *answer; /* owned */
	int r, code;
	int done[2]; /* pipe: written when the answer is there */
};

static void *call_thread(void *arg)
{
	struct call *c = arg;

	c->r = control_call(socket_path, c->method, c->path, c->body, &c->answer, &c->code);
	assert_int_equal(write(c->done[1], "", 1), 1);
	return NULL;
}

static void on_done(evutil_socket_t fd, short what, void *loop)
{
	(void)fd;
	(void)what;
	(void)event_base_loopbreak(loop);
}

static void on_late(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	fail_msg("no answer within 30 s");
}

/* Make the call while the server's loop runs. */
static void call(struct event_base *loop, struct call *c)
{
	const struct timeval limit = {.tv_sec = 30};
	struct event *done, *late = evtimer_new(loop, on_late, NULL);
	pthread_t thread;

	assert_int_equal(pipe2(c->done, O_CLOEXEC), 0);
	done = event_new(loop, c->done[0], EV_READ, on_done, loop);
	assert_int_equal(event_add(done, NULL), 0);
	assert_int_equal(event_add(late, &limit), 0);
	assert_int_equal(pthread_create(&thread, NULL, call_thread, c), 0);
	assert_int_equal(event_base_dispatch(loop), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	event_free(done);
	event_free(late);
	(void)close(c->done[0]);
	(void)close(c->done[1]);
}

struct server {
	struct event_base *loop;
	struct control *control;
};

static void server_start(struct server *s)
{
	s->loop = event_base_new();
	assert_non_null(s->loop);
	s->control = control_new(s->loop, socket_path, routes, (void *)(uintptr_t) "the context");
	assert_non_null(s->control);
}

static void server_stop(struct server *s)
{
	control_free(s->control);
	event_base_free(s->loop);
}

static int set_up(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	return snprintf(socket_path, sizeof(socket_path), "%s/run/control.sock", folder) < 0;
}

static int tear_down(void **state)
{
	(void)state;
	*strrchr(socket_path, '/') = 0;
	return rmdir(socket_path) || rmdir(folder);
}

static void a_page_gets_its_context_and_query(void **state)
{
	struct call c = {.method = "GET", .path = "/api/echo?service=a&limit=3"};
	struct server s;

	(void)state;
	server_start(&s);
	call(s.loop, &c);
	assert_int_equal(c.r, 0);
	assert_int_equal(c.code, 200);
	assert_string_equal(json_string(c.answer, "ctx"), "the context");
	assert_string_equal(json_string(c.answer, "query"), "service=a&limit=3");
	assert_false(json_bool(c.answer, "body", true));
	cJSON_Delete(c.answer);
	server_stop(&s);
}

static void a_verb_gets_its_body_and_answers_json(void **state)
{
	_cleanup_json_ cJSON *body = cJSON_CreateObject();
	struct call c = {.method = "POST", .path = "/api/verb", .body = body};
	struct server s;

	(void)state;
	(void)cJSON_AddStringToObject(body, "service", "DEFAULT_GROUP@@\"odd\" name\n");
	server_start(&s);
	call(s.loop, &c);
	assert_int_equal(c.r, 0);
	assert_int_equal(c.code, 200);
	assert_string_equal(json_string(c.answer, "service"), "DEFAULT_GROUP@@\"odd\" name\n");
	cJSON_Delete(c.answer);
	server_stop(&s);
}

static void a_refusal_is_a_sentence_and_a_status(void **state)
{
	static const struct {
		const char *method, *path;
		int code;
		const char *error;
	} cases[] = {
		{"POST", "/api/verb", 404, "no service is named"},
		{"GET", "/api/verb", 405, "this page does not take that method"},
		{"GET", "/api/none", 404, "no such page"},
	};
	struct server s;

	(void)state;
	server_start(&s);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct call c = {.method = cases[i].method, .path = cases[i].path};

		call(s.loop, &c);
		assert_int_equal(c.r, 0);
		assert_int_equal(c.code, cases[i].code);
		assert_string_equal(json_string(c.answer, "error"), cases[i].error);
		cJSON_Delete(c.answer);
	}
	server_stop(&s);
}

static void a_refusal_is_utf8_whatever_it_quotes(void **state)
{
	_cleanup_json_ cJSON *body = cJSON_CreateObject();
	struct call c = {.method = "POST", .path = "/api/verb", .body = body};
	struct server s;

	(void)state;
	(void)cJSON_AddStringToObject(body, "service", "odd");
	server_start(&s);
	call(s.loop, &c);
	assert_int_equal(c.code, 409);
	assert_string_equal(json_string(c.answer, "error"), "?? is odd");
	cJSON_Delete(c.answer);
	server_stop(&s);
}

static void an_answer_of_megabytes_arrives_whole(void **state)
{
	struct call c = {.method = "GET", .path = "/api/large"};
	struct server s;

	(void)state;
	server_start(&s);
	call(s.loop, &c);
	assert_int_equal(c.r, 0);
	assert_int_equal(cJSON_GetArraySize(c.answer), 100000);
	cJSON_Delete(c.answer);
	server_stop(&s);
}

static void a_body_that_is_no_json_is_refused(void **state)
{
	static const char request[] = "POST /api/verb HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n{oops";
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	char answer[1024] = "";
	struct server s;
	ssize_t n = -1;
	int fd;

	(void)state;
	server_start(&s);
	memcpy(a.sun_path, socket_path, strlen(socket_path));
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(write(fd, request, sizeof(request) - 1), sizeof(request) - 1);
	for (int i = 0; i < 1000 && n < 0; i++) {
		(void)event_base_loop(s.loop, EVLOOP_NONBLOCK);
		n = recv(fd, answer, sizeof(answer) - 1, MSG_DONTWAIT);
		if (n < 0)
			(void)usleep(10000);
	}
	assert_non_null(strstr(answer, "400"));
	assert_non_null(strstr(answer, "{\"error\":\"the request's body is not JSON\"}"));
	(void)close(fd);
	server_stop(&s);
}

static void the_socket_is_its_owners_alone_and_goes_with_the_server(void **state)
{
	struct server s;
	struct stat st;

	(void)state;
	server_start(&s);
	assert_int_equal(stat(socket_path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	server_stop(&s);
	assert_int_equal(stat(socket_path, &st), -1);
}

static void a_stale_socket_is_replaced_and_a_live_one_is_not(void **state)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	struct server s;
	int fd;

	(void)state;
	memcpy(a.sun_path, socket_path, strlen(socket_path));
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	(void)close(fd);
	server_start(&s);
	assert_null(control_new(s.loop, socket_path, routes, NULL));
	assert_int_equal(errno, EADDRINUSE);
	assert_int_equal(access(socket_path, F_OK), 0);
	server_stop(&s);
}

static void a_file_that_is_no_socket_is_left_alone(void **state)
{
	struct event_base *loop = event_base_new();
	FILE *f = fopen(socket_path, "we");

	(void)state;
	assert_non_null(f);
	(void)fclose(f);
	assert_null(control_new(loop, socket_path, routes, NULL));
	assert_int_equal(errno, EEXIST);
	assert_int_equal(unlink(socket_path), 0);
	event_base_free(loop);
}

static void nobody_there_is_told_from_trouble(void **state)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	cJSON *answer = NULL;
	int code = 0, fd;

	(void)state;
	assert_int_equal(control_call(socket_path, "GET", "/api/echo", NULL, &answer, &code), -ENOENT);
	memcpy(a.sun_path, socket_path, strlen(socket_path));
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	(void)close(fd);
	assert_int_equal(control_call(socket_path, "GET", "/api/echo", NULL, &answer, &code), -ECONNREFUSED);
	assert_null(answer);
	(void)unlink(socket_path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_page_gets_its_context_and_query),
		cmocka_unit_test(a_verb_gets_its_body_and_answers_json),
		cmocka_unit_test(a_refusal_is_a_sentence_and_a_status),
		cmocka_unit_test(a_refusal_is_utf8_whatever_it_quotes),
		cmocka_unit_test(an_answer_of_megabytes_arrives_whole),
		cmocka_unit_test(a_body_that_is_no_json_is_refused),
		cmocka_unit_test(the_socket_is_its_owners_alone_and_goes_with_the_server),
		cmocka_unit_test(a_stale_socket_is_replaced_and_a_live_one_is_not),
		cmocka_unit_test(a_file_that_is_no_socket_is_left_alone),
		cmocka_unit_test(nobody_there_is_told_from_trouble),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
