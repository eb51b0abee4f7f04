// SPDX-License-Identifier: MIT
/* provider SERVER NAMESPACE SERVICE IP PORT WEIGHT: registers one ephemeral instance over gRPC and keeps the
 * connection, so that the server drops the instance when this process dies. Prints "registered" when the server has
 * taken it. */
#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <string.h>
#include "base/json.h"
#include "registry/nacos.h"
#include "registry/nacos_grpc.h"

struct provider {
	struct event_base *loop;
	struct nacos_grpc *link;
	char **argv;
};

static void on_lost(void *user, const char *why)
{
	struct provider *p = user;

	fprintf(stderr, "provider: %s\n", why);
	event_base_loopbreak(p->loop);
}

static void on_registered(void *user, const struct nacos_msg *m, const char *why, uint64_t received_ns)
{
	struct provider *p = user;

	(void)received_ns;
	if (!m || nacos_msg_error(m, &why)) {
		on_lost(p, why);
		return;
	}
	puts("registered");
	(void)fflush(stdout);
}

static void on_ready(void *user)
{
	struct provider *p = user;
	const struct nacos_call_handler handler = {on_registered, p};
	_cleanup_(nacos_bytes_done) struct nacos_bytes request = {0};
	_cleanup_json_ cJSON *body = cJSON_CreateObject();
	cJSON *instance;

	cJSON_AddStringToObject(body, "namespace", p->argv[2]);
	cJSON_AddStringToObject(body, "groupName", "DEFAULT_GROUP");
	cJSON_AddStringToObject(body, "serviceName", p->argv[3]);
	cJSON_AddStringToObject(body, "module", "naming");
	cJSON_AddStringToObject(body, "type", "registerInstance");
	instance = cJSON_AddObjectToObject(body, "instance");
	cJSON_AddStringToObject(instance, "ip", p->argv[4]);
	cJSON_AddNumberToObject(instance, "port", atoi(p->argv[5]));
	cJSON_AddNumberToObject(instance, "weight", atof(p->argv[6]));
	cJSON_AddTrueToObject(instance, "healthy");
	cJSON_AddTrueToObject(instance, "enabled");
	cJSON_AddTrueToObject(instance, "ephemeral");
	cJSON_AddStringToObject(instance, "clusterName", "DEFAULT");
	if (nacos_msg_pack("InstanceRequest", body, &request) || !nacos_grpc_call(p->link, &request, &handler))
		on_lost(p, strerror(errno));
}

static void on_notify(void *user, const struct nacos_msg *m, uint64_t received_ns)
{
	(void)user;
	(void)m;
	(void)received_ns;
}

static void on_reset(void *user, const char *host, uint16_t port)
{
	(void)host;
	(void)port;
	on_lost(user, "asked to go elsewhere");
}

static void on_ignored(void *user, const char *what)
{
	(void)user;
	(void)what;
}

int main(int argc, char **argv)
{
	const struct timeval longest = {600, 0};
	struct provider p = {.loop = event_base_new(), .argv = argv};
	const struct nacos_grpc_handler handler = {on_ready, on_notify, on_reset, on_ignored, on_lost, &p};
	struct nacos_server server;
	const char *why;

	if (argc != 7) {
		fprintf(stderr, "usage: provider SERVER NAMESPACE SERVICE IP PORT WEIGHT\n");
		return 2;
	}
	if (nacos_server_parse(argv[1], &server, &why)) {
		fprintf(stderr, "provider: %s: %s\n", argv[1], why);
		return 2;
	}
	p.link = nacos_grpc_new(p.loop, &server, argv[2], "steelyard-test", &handler);
	event_base_loopexit(p.loop, &longest);
	event_base_dispatch(p.loop);
	nacos_grpc_free(p.link);
	nacos_server_done(&server);
	event_base_free(p.loop);
	return 1;
}
