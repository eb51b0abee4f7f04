/* SPDX-License-Identifier: MIT */
#include "config_schema.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum shape { TEXT, NUMBER, TEXTS, MAP, MAPS };
static const char *const shape_names[] = {
	[TEXT] = "one value",
	[NUMBER] = "a whole number",
	[TEXTS] = "a list of values",
	[MAP] = "keys with values",
	[MAPS] = "a list of entries with keys",
};

struct key {
	const char *name;
	enum shape shape;
	const struct key *keys; /* of MAP and MAPS */
	bool later;		/* known by name, refused until it works */
};

#define KEY(text, of_shape)                                                                                            \
	{                                                                                                              \
		.name = text, .shape = of_shape                                                                        \
	}
#define MAP_OF(text, of_keys)                                                                                          \
	{                                                                                                              \
		.name = text, .shape = MAP, .keys = of_keys                                                            \
	}
#define MAPS_OF(text, of_keys)                                                                                         \
	{                                                                                                              \
		.name = text, .shape = MAPS, .keys = of_keys                                                           \
	}
#define LATER(text)                                                                                                    \
	{                                                                                                              \
		.name = text, .later = true                                                                            \
	}

static const struct key interface_keys[] = {KEY("name", TEXT), KEY("attach", TEXT), KEY("foreign_xdp", TEXT), {0}};

static const struct key registry_keys[] = {
	KEY("name", TEXT),
	KEY("kind", TEXT),
	KEY("servers", TEXTS),
	KEY("api", TEXT),
	KEY("namespace", TEXT),
	KEY("path", TEXT),
	LATER("context_path"),
	LATER("username"),
	LATER("password_file"),
	LATER("tls"),
	{0},
};

static const struct key log_keys[] = {KEY("level", TEXT), KEY("format", TEXT), {0}};
static const struct key on_evict_keys[] = {KEY("registry", TEXT), KEY("probe", TEXT), {0}};
static const struct key timeout_keys[] = {
	KEY("syn", TEXT),     KEY("established", TEXT), KEY("half_closed", TEXT),
	KEY("closing", TEXT), KEY("reset", TEXT),	{0},
};

#define SETTING_KEYS                                                                                                   \
	KEY("group", TEXT), KEY("registry", TEXT), KEY("mode", TEXT), KEY("algorithm", TEXT), KEY("cluster", TEXT),    \
		KEY("cluster_fallback", TEXT), MAP_OF("on_evict", on_evict_keys), KEY("drain_deadline", TEXT),         \
		KEY("on_empty", TEXT), KEY("hold_empty", TEXT), MAP_OF("timeouts", timeout_keys), LATER("port"),       \
		LATER("slow_start"), LATER("check"), LATER("passive"), LATER("allow")

static const struct key defaults_keys[] = {SETTING_KEYS, {0}};
static const struct key service_keys[] = {KEY("name", TEXT), KEY("listen", TEXTS), SETTING_KEYS, {0}};

static const struct key top_keys[] = {
	MAPS_OF("interfaces", interface_keys),
	MAPS_OF("registries", registry_keys),
	KEY("snat_addresses", TEXTS),
	KEY("snat_ports", TEXT),
	KEY("state_dir", TEXT),
	KEY("pin_dir", TEXT),
	KEY("control_socket", TEXT),
	MAP_OF("log", log_keys),
	KEY("flows", NUMBER),
	MAP_OF("defaults", defaults_keys),
	MAPS_OF("services", service_keys),
	LATER("http_listen"),
	LATER("seed"),
	LATER("policies"),
	{0},
};

#define MAX_WORD 40

/* Levenshtein distance, one row at a time. */
static size_t distance(const char *a, const char *b)
{
	size_t row[MAX_WORD + 1], n = strlen(b);

	if (strlen(a) > MAX_WORD || n > MAX_WORD)
		return MAX_WORD;
	for (size_t j = 0; j <= n; j++)
		row[j] = j;
	for (size_t i = 1; a[i - 1]; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= n; j++) {
			size_t change = diagonal + (a[i - 1] != b[j - 1]), above = row[j] + 1, left = row[j - 1] + 1;

			diagonal = row[j];
			row[j] = change < above ? change : above;
			row[j] = left < row[j] ? left : row[j];
		}
	}
	return row[n];
}

static const struct key *key_find(const struct key *keys, const char *name)
{
	for (; keys->name; keys++)
		if (!strcmp(keys->name, name))
			return keys;
	return NULL;
}

/* The known name that was probably meant, or NULL when none is near. */
static const char *key_nearest(const struct key *keys, const char *name)
{
	size_t best = strlen(name) / 2 + 1;
	const char *nearest = NULL;

	for (; keys->name; keys++) {
		size_t d = distance(name, keys->name);

		if (d < best || (d == best && !nearest && d <= 2)) {
			best = d;
			nearest = keys->name;
		}
	}
	return nearest;
}

static int unknown_key(struct config_doc *d, const struct place *p, const char *name, const struct key *keys)
{
	const char *nearest = key_nearest(keys, name);
	char allowed[512] = "";
	size_t used = 0;

	for (const struct key *k = keys; k->name && used < sizeof(allowed); k++)
		used += (size_t)snprintf(allowed + used, sizeof(allowed) - used, "%s%s", used ? ", " : "", k->name);
	config_doc_clear_errors(d);
	if (nearest)
		config_doc_error(d, p, "unknown key, did you mean \"%s\"? allowed: %s", nearest, allowed);
	else
		config_doc_error(d, p, "unknown key, allowed: %s", allowed);
	return -EINVAL;
}

static int wrong_shape(struct config_doc *d, const struct place *p, const char *wanted)
{
	const char *text = config_doc_text(p);

	config_doc_clear_errors(d);
	if (text)
		config_doc_error(d, p, "\"%.64s\" is of the wrong type, allowed: %s", text, wanted);
	else
		config_doc_error(d, p, "%s of the wrong type, allowed: %s",
				 p->node->type == YAML_SEQUENCE_NODE ? "a list is" : "keys with values are", wanted);
	return -EINVAL;
}

static bool is_number(const char *text)
{
	return *text && strspn(text, "0123456789") == strlen(text);
}

static int map_check(struct config_doc *d, const struct place *map, const struct key *keys);

static int list_check(struct config_doc *d, const struct place *list, const struct key *k)
{
	for (size_t i = 0; i < config_doc_n_items(list); i++) {
		struct place item = config_doc_item(d, list, i);
		int r;

		if (k->shape == TEXTS && item.node->type != YAML_SCALAR_NODE)
			return wrong_shape(d, &item, shape_names[TEXT]);
		r = k->shape == MAPS ? map_check(d, &item, k->keys) : 0;
		if (r < 0)
			return r;
	}
	return 0;
}

static int value_check(struct config_doc *d, const struct place *p, const struct key *k)
{
	yaml_node_type_t wanted = k->shape == MAP			  ? YAML_MAPPING_NODE
				  : k->shape == TEXTS || k->shape == MAPS ? YAML_SEQUENCE_NODE
									  : YAML_SCALAR_NODE;

	if (k->later) {
		config_doc_error(d, p, "%s is not supported yet by this version, allowed: leave it out", k->name);
		return 0;
	}
	if (!p->node)
		return 0;
	if (p->node->type != wanted || (k->shape == NUMBER && !is_number(config_doc_text(p))))
		return wrong_shape(d, p, shape_names[k->shape]);
	if (k->shape == MAP)
		return map_check(d, p, k->keys);
	return wanted == YAML_SEQUENCE_NODE ? list_check(d, p, k) : 0;
}

static int map_check(struct config_doc *d, const struct place *map, const struct key *keys)
{
	yaml_node_pair_t *start, *pair;

	if (map->node->type != YAML_MAPPING_NODE)
		return wrong_shape(d, map, shape_names[MAP]);
	start = map->node->data.mapping.pairs.start;
	for (pair = start; pair < map->node->data.mapping.pairs.top; pair++) {
		yaml_node_t *name = yaml_document_get_node(&d->yaml, pair->key);
		const struct key *k;
		struct place p;
		int r;

		if (name->type != YAML_SCALAR_NODE)
			return wrong_shape(d, map, "keys that are one word");
		p = config_doc_key(d, map, (const char *)name->data.scalar.value);
		k = key_find(keys, (const char *)name->data.scalar.value);
		if (!k)
			return unknown_key(d, &p, (const char *)name->data.scalar.value, keys);
		for (yaml_node_pair_t *other = start; other < pair; other++) {
			yaml_node_t *o = yaml_document_get_node(&d->yaml, other->key);

			if (strcmp((const char *)o->data.scalar.value, k->name))
				continue;
			p.line = (unsigned)name->start_mark.line + 1;
			config_doc_clear_errors(d);
			config_doc_error(d, &p, "key given twice, first on line %zu, allowed: once",
					 o->start_mark.line + 1);
			return -EINVAL;
		}
		r = value_check(d, &p, k);
		if (r < 0)
			return r;
	}
	return 0;
}

int config_schema_check(struct config_doc *d)
{
	struct place root = config_doc_root(d);

	return root.node ? map_check(d, &root, top_keys) : 0;
}
