// SPDX-License-Identifier: MIT
/* watch SERVER[,SERVER...] NAMESPACE SERVICE...: what the Nacos source alone reports, one JSON object a line:
 * {"state":"live","server":"127.0.0.1:8848"} and {"service":"GROUP@@name","hosts":[["127.0.0.1:80",1,true],...]}, where
 * a host is address, weight, healthy. Ends on SIGTERM, or after 600 s. */
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include "base/json.h"
#include "base/log.h"
#include "registry/nacos.h"

#define MAX_SERVERS 8

static void print(const cJSON *line)
{
	_cleanup_free_ char *text = cJSON_PrintUnformatted(line);

	puts(text ? text : "{}");
	(void)fflush(stdout);
}

static void on_snapshot(void *ctx, struct snapshot *s, uint64_t received_ns)
{
	_cleanup_json_ cJSON *line = cJSON_CreateObject();
	char service[700];
	cJSON *hosts;

	(void)ctx;
	(void)received_ns;
	snprintf(service, sizeof(service), "%s@@%s", s->group, s->name);
	cJSON_AddStringToObject(line, "service", service);
	hosts = cJSON_AddArrayToObject(line, "hosts");
	for (size_t i = 0; i < s->n_instances; i++) {
		cJSON *host = cJSON_CreateArray();
		cJSON_AddItemToArray(host, cJSON_CreateString(s->instances[i].address_text));
		cJSON_AddItemToArray(host, cJSON_CreateNumber(s->instances[i].weight));
		cJSON_AddItemToArray(host, cJSON_CreateBool(s->instances[i].healthy));
		cJSON_AddItemToArray(hosts, host);
	}
	print(line);
	snapshot_free(s);
}

static void on_state(void *ctx, const struct registry_status *status)
{
	_cleanup_json_ cJSON *line = cJSON_CreateObject();

	(void)ctx;
	cJSON_AddStringToObject(line, "state", registry_state_name(status->state));
	cJSON_AddStringToObject(line, "server", status->server);
	cJSON_AddStringToObject(line, "error", status->last_error);
	print(line);
}

static void on_end(evutil_socket_t fd, short what, void *user)
{
	(void)fd;
	(void)what;
	event_base_loopbreak(user);
}

static int servers_parse(char *list, struct nacos_server *ret)
{
	int n = 0;
	const char *why;

	for (char *one = strtok(list, ","); one && n < MAX_SERVERS; one = strtok(NULL, ",")) {
		if (nacos_server_parse(one, &ret[n], &why)) {
			fprintf(stderr, "watch: %s: %s\n", one, why);
			exit(2);
		}
		n++;
	}
	return n;
}

int main(int argc, char **argv)
{
	const struct registry_sink sink = {on_snapshot, on_state, NULL};
	const struct timeval longest = {600, 0};
	struct nacos_server servers[MAX_SERVERS];
	struct nacos_options options = {.servers = servers, .client_version = "steelyard-test"};
	struct event_base *loop = event_base_new();
	struct event *term;
	struct registry *r;

	if (argc < 3) {
		fprintf(stderr, "usage: watch SERVER[,SERVER...] NAMESPACE SERVICE...\n");
		return 2;
	}
	log_init(LOG_LEVEL_DEBUG, false);
	options.n_servers = (size_t)servers_parse(argv[1], servers);
	options.ns = argv[2];
	r = nacos_new(loop, "watch", &options, &sink);
	term = evsignal_new(loop, SIGTERM, on_end, loop);
	event_add(term, NULL);
	event_base_loopexit(loop, &longest);
	for (int i = 3; i < argc; i++)
		registry_subscribe(r, "DEFAULT_GROUP", argv[i]);
	registry_start(r);
	event_base_dispatch(loop);
	registry_free(r);
	event_base_loop(loop, EVLOOP_NONBLOCK);
	for (size_t i = 0; i < options.n_servers; i++)
		nacos_server_done(&servers[i]);
	event_free(term);
	event_base_free(loop);
	return 0;
}
