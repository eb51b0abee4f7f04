/* SPDX-License-Identifier: MIT */
#include "config.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../base/cleanup.h"
#include "config_doc.h"
#include "config_read.h"

static void service_done(struct config_service *s)
{
	free(s->name);
	free(s->group);
	free(s->listen);
	free(s->cluster);
}

static void registry_done(struct config_registry *r)
{
	free(r->name);
	for (size_t i = 0; i < r->n_servers; i++)
		nacos_server_done(&r->servers[i]);
	free(r->servers);
	free(r->ns);
	free(r->path);
}

void config_free(struct config *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->n_interfaces; i++)
		free(c->interfaces[i].name);
	free(c->interfaces);
	for (size_t i = 0; i < c->n_registries; i++)
		registry_done(&c->registries[i]);
	free(c->registries);
	for (size_t i = 0; i < c->n_services; i++)
		service_done(&c->services[i]);
	free(c->services);
	free(c->snat_addresses);
	free(c->state_dir);
	free(c->pin_dir);
	free(c->control_socket);
	free(c);
}

int config_load(const char *path, struct config **ret, char **ret_errors)
{
	struct config_doc d;
	int r;

	*ret_errors = NULL;
	r = config_doc_load(&d, path);
	if (!r)
		r = config_read(&d, ret);
	if (r < 0 && r != -ENOMEM)
		*ret_errors = config_doc_errors(&d);
	config_doc_done(&d);
	return r;
}

int config_restart_only(const struct config *running, const struct config *wanted, char *buf, size_t size)
{
	const struct {
		const char *name;
		bool differs;
	} keys[] = {
		{"state_dir", strcmp(running->state_dir, wanted->state_dir) != 0},
		{"pin_dir", strcmp(running->pin_dir, wanted->pin_dir) != 0},
		{"control_socket", strcmp(running->control_socket, wanted->control_socket) != 0},
		{"flows", running->flows != wanted->flows},
	};
	size_t used = 0;

	*buf = 0;
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		if (keys[i].differs && used < size)
			used += (size_t)snprintf(buf + used, size - used, "%s%s", used ? ", " : "", keys[i].name);
	return used ? -EPERM : 0;
}
