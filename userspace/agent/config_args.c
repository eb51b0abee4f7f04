/* SPDX-License-Identifier: MIT */
/* The command line without a file: made into the document that a file would have been, so that one reader checks both.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../base/cleanup.h"
#include "config.h"
#include "config_doc.h"
#include "config_read.h"

/* libyaml's calls return an id, or 0 when out of memory; one flag collects that. */
struct maker {
	yaml_document_t *yaml;
	bool failed;
};

static int scalar(struct maker *m, const char *text)
{
	int id = yaml_document_add_scalar(m->yaml, NULL, (const yaml_char_t *)text, (int)strlen(text),
					  YAML_DOUBLE_QUOTED_SCALAR_STYLE);

	m->failed |= !id;
	return id;
}

static int map(struct maker *m)
{
	int id = yaml_document_add_mapping(m->yaml, NULL, YAML_BLOCK_MAPPING_STYLE);

	m->failed |= !id;
	return id;
}

static int list(struct maker *m)
{
	int id = yaml_document_add_sequence(m->yaml, NULL, YAML_FLOW_SEQUENCE_STYLE);

	m->failed |= !id;
	return id;
}

static void put(struct maker *m, int to, const char *key, int value)
{
	int k = scalar(m, key);

	if (!m->failed)
		m->failed |= !yaml_document_append_mapping_pair(m->yaml, to, k, value);
}

static int item(struct maker *m, int to, int value)
{
	if (!m->failed)
		m->failed |= !yaml_document_append_sequence_item(m->yaml, to, value);
	return value;
}

static void put_registry(struct maker *m, int root, const struct config_arguments *a)
{
	int registries = list(m), entry = item(m, registries, map(m));

	put(m, root, "registries", registries);
	put(m, entry, "name", scalar(m, "main"));
	put(m, entry, "kind", scalar(m, a->nacos ? "nacos" : "file"));
	if (a->nacos) {
		int servers = list(m);

		(void)item(m, servers, scalar(m, a->nacos));
		put(m, entry, "servers", servers);
	} else {
		put(m, entry, "path", scalar(m, a->file));
	}
}

/* NAME=ADDR:PORT, where NAME may be GROUP@@NAME. */
static void put_service(struct maker *m, int services, const char *text)
{
	const char *equals = strrchr(text, '='), *at = strstr(text, "@@");
	_cleanup_free_ char *name = strndup(text, equals ? (size_t)(equals - text) : strlen(text));
	int entry = item(m, services, map(m)), listen = list(m);
	char *bare = name;

	if (!name) {
		m->failed = true;
		return;
	}
	if (at && at - text < (ptrdiff_t)strlen(name)) {
		name[at - text] = 0;
		bare = name + (at - text) + 2;
		put(m, entry, "group", scalar(m, name));
	}
	put(m, entry, "name", scalar(m, bare));
	(void)item(m, listen, scalar(m, equals ? equals + 1 : ""));
	put(m, entry, "listen", listen);
}

int config_from_arguments(const struct config_arguments *a, struct config **ret, char **ret_errors)
{
	struct config_doc d;
	struct maker m = {.yaml = &d.yaml};
	int root, interfaces, services, r;

	*ret_errors = NULL;
	r = config_doc_init(&d, "command line");
	if (r < 0)
		return r;
	root = map(&m);
	interfaces = list(&m);
	put(&m, root, "interfaces", interfaces);
	for (size_t i = 0; i < a->n_interfaces; i++)
		put(&m, item(&m, interfaces, map(&m)), "name", scalar(&m, a->interfaces[i]));
	if (a->nacos || a->file)
		put_registry(&m, root, a);
	services = list(&m);
	put(&m, root, "services", services);
	for (size_t i = 0; i < a->n_services; i++)
		put_service(&m, services, a->services[i]);
	r = m.failed ? -ENOMEM : config_read(&d, ret);
	if (r < 0 && r != -ENOMEM)
		*ret_errors = config_doc_errors(&d);
	config_doc_done(&d);
	return r;
}
