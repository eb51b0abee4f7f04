/* SPDX-License-Identifier: MIT */
/* Registry kind "nacos" over gRPC (Nacos 2.x and 3.x): one connection for one registry entry and namespace. */
#pragma once
#include <stddef.h>
#include "registry.h"

struct nacos_server {
	char *host;	    /* name or address, without brackets */
	uint16_t port;	    /* HTTP */
	uint16_t grpc_port; /* port + 1000 unless given */
};

struct nacos_options {
	const struct nacos_server *servers; /* copied */
	size_t n_servers;
	const char *ns;		    /* namespace id; "" and NULL mean "public" */
	const char *client_version; /* told to the server */
};

/* "host:port", "host", "[v6]:port", each optionally followed by "/grpc=PORT". 0, or -EINVAL with *ret_why a sentence.
 */
int nacos_server_parse(const char *text, struct nacos_server *ret, const char **ret_why);
void nacos_server_done(struct nacos_server *s);

/* Owned; NULL with errno. */
struct registry *nacos_new(struct event_base *loop, const char *name, const struct nacos_options *options,
			   const struct registry_sink *sink);
