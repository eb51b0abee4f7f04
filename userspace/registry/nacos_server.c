// SPDX-License-Identifier: MIT
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <string.h>
#include "../base/cleanup.h"
#include "nacos.h"

#define DEFAULT_PORT 8848
#define GRPC_OFFSET  1000 /* com.alibaba.nacos.common.remote.client.grpc.GrpcSdkClient, rpcPortOffset */
#define MAX_HOST     253

/* Digits up to the end, 1..65535. 0: not that. */
static unsigned port_parse(const char *text)
{
	unsigned port = 0;

	for (; *text; text++) {
		if (!isdigit((unsigned char)*text) || port > UINT16_MAX)
			return 0;
		port = port * 10 + (unsigned)(*text - '0');
	}
	return port <= UINT16_MAX ? port : 0;
}

static bool is_name(const char *host)
{
	size_t size = strlen(host);

	return size && size <= MAX_HOST && host[0] != '-' && host[0] != '.' &&
	       strspn(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_") == size;
}

/* Cuts text in place into host and what follows it, "" or ":port" or nonsense. NULL with *ret_why. */
static char *host_cut(char *text, char **ret_rest, const char **ret_why)
{
	struct in6_addr v6;
	char *end;

	if (*text == '[') {
		end = strchr(++text, ']');
		if (end)
			*end = 0;
		if (!end || inet_pton(AF_INET6, text, &v6) != 1) {
			*ret_why = "brackets without an IPv6 address in them";
			return NULL;
		}
		*ret_rest = end + 1;
		return text;
	}
	if (inet_pton(AF_INET6, text, &v6) == 1) {
		*ret_why = "an IPv6 address needs brackets, [fd00::1]:8848";
		return NULL;
	}
	*ret_rest = strchrnul(text, ':');
	return text;
}

int nacos_server_parse(const char *text, struct nacos_server *ret, const char **ret_why)
{
	static const char wanted[] = "/grpc=";
	_cleanup_free_ char *copy = strdup(text);
	_cleanup_free_ char *owned = NULL;
	unsigned port = DEFAULT_PORT, grpc_port = 0;
	char *host, *rest, *option;

	*ret_why = "out of memory";
	if (!copy)
		return -ENOMEM;
	option = strchr(copy, '/');
	if (option && strncmp(option, wanted, sizeof(wanted) - 1)) {
		*ret_why = "only /grpc=PORT may follow, no scheme and no path";
		return -EINVAL;
	}
	if (option) {
		grpc_port = port_parse(option + sizeof(wanted) - 1);
		if (!grpc_port) {
			*ret_why = "gRPC port is not a number of 1 to 65535";
			return -EINVAL;
		}
		*option = 0;
	}
	host = host_cut(copy, &rest, ret_why);
	if (!host)
		return -EINVAL;
	if (*rest == ':') {
		port = port_parse(rest + 1);
		*rest++ = 0;
		if (!port) {
			*ret_why = "port is not a number of 1 to 65535";
			return -EINVAL;
		}
	} else if (*rest) {
		*ret_why = "only :PORT may follow the brackets";
		return -EINVAL;
	}
	if (!strchr(host, ':') && !is_name(host)) {
		*ret_why = "not a host name or address";
		return -EINVAL;
	}
	if (!grpc_port)
		grpc_port = port + GRPC_OFFSET;
	if (grpc_port > UINT16_MAX) {
		*ret_why = "port + 1000 is no port: say which with /grpc=PORT";
		return -EINVAL;
	}
	owned = strdup(host);
	if (!owned)
		return -ENOMEM;
	*ret = (struct nacos_server){TAKE_PTR(owned), (uint16_t)port, (uint16_t)grpc_port};
	return 0;
}

void nacos_server_done(struct nacos_server *s)
{
	free(s->host);
	*s = (struct nacos_server){0};
}
