/* SPDX-License-Identifier: MIT */
#include "config_doc.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../base/cleanup.h"

static const struct place nowhere;

/* libyaml reads "key:" and "key: ~" as scalars; to us they are the same as no key. */
static bool node_is_null(const yaml_node_t *n)
{
	const char *text;

	if (n->type != YAML_SCALAR_NODE || n->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
		return false;
	text = (const char *)n->data.scalar.value;
	return !*text || !strcmp(text, "~") || !strcmp(text, "null");
}

static unsigned node_line(const struct config_doc *d, const yaml_node_t *n)
{
	return d->has_lines ? (unsigned)n->start_mark.line + 1 : 0;
}

/* A path too long for its field is cut: the line still tells where. */
static void __attribute__((format(printf, 2, 3))) path_set(struct place *p, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(p->path, sizeof(p->path), format, args);
	va_end(args);
}

struct place config_doc_root(struct config_doc *d)
{
	struct place p = nowhere;

	p.node = yaml_document_get_root_node(&d->yaml);
	if (!p.node)
		return p;
	p.line = node_line(d, p.node);
	if (node_is_null(p.node))
		p.node = NULL;
	return p;
}

struct place config_doc_key(struct config_doc *d, const struct place *map, const char *key)
{
	struct place p = nowhere;
	yaml_node_pair_t *pair;

	path_set(&p, "%s%s%.64s", map->path, *map->path ? "." : "", key);
	p.line = map->line;
	if (!map->node || map->node->type != YAML_MAPPING_NODE)
		return p;
	for (pair = map->node->data.mapping.pairs.start; pair < map->node->data.mapping.pairs.top; pair++) {
		yaml_node_t *k = yaml_document_get_node(&d->yaml, pair->key);
		yaml_node_t *v = yaml_document_get_node(&d->yaml, pair->value);

		if (k->type != YAML_SCALAR_NODE || strcmp((const char *)k->data.scalar.value, key))
			continue;
		p.line = node_line(d, k);
		p.node = node_is_null(v) ? NULL : v;
		return p;
	}
	return p;
}

size_t config_doc_n_items(const struct place *list)
{
	if (!list->node || list->node->type != YAML_SEQUENCE_NODE)
		return 0;
	return (size_t)(list->node->data.sequence.items.top - list->node->data.sequence.items.start);
}

struct place config_doc_item(struct config_doc *d, const struct place *list, size_t index)
{
	struct place p = nowhere;

	path_set(&p, "%s[%zu]", list->path, index);
	p.line = list->line;
	if (index >= config_doc_n_items(list))
		return p;
	p.node = yaml_document_get_node(&d->yaml, list->node->data.sequence.items.start[index]);
	p.line = node_line(d, p.node);
	return p;
}

const char *config_doc_text(const struct place *p)
{
	return p->node && p->node->type == YAML_SCALAR_NODE ? (const char *)p->node->data.scalar.value : NULL;
}

void config_doc_error(struct config_doc *d, const struct place *p, const char *format, ...)
{
	_cleanup_free_ char *what = NULL, *line = NULL;
	struct config_error *more;
	char number[16] = "";
	va_list args;
	int r;

	va_start(args, format);
	r = vasprintf(&what, format, args);
	va_end(args);
	if (r < 0) {
		what = NULL;
		d->no_memory = true;
		return;
	}
	if (p && p->line)
		(void)snprintf(number, sizeof(number), ":%u", p->line);
	r = asprintf(&line, "%s%s: %s%s%s", d->name, number, p ? p->path : "", p && *p->path ? ": " : "", what);
	if (r < 0)
		line = NULL;
	more = line ? realloc(d->errors, (d->n_errors + 1) * sizeof(*more)) : NULL;
	if (!more) {
		d->no_memory = true;
		return;
	}
	/* one line each, whatever the file holds */
	for (char *c = line; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			*c = '?';
	d->errors = more;
	d->errors[d->n_errors++] = (struct config_error){.line = p ? p->line : 0, .text = TAKE_PTR(line)};
}

void config_doc_clear_errors(struct config_doc *d)
{
	for (size_t i = 0; i < d->n_errors; i++)
		free(d->errors[i].text);
	d->n_errors = 0;
}

/* Insertion sort keeps the order of those on one line; files have few errors, and a whole file of them is still fine.
 */
static void errors_sort(struct config_error *e, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		struct config_error x = e[i];
		size_t j = i;

		for (; j > 0 && e[j - 1].line > x.line; j--)
			e[j] = e[j - 1];
		e[j] = x;
	}
}

char *config_doc_errors(struct config_doc *d)
{
	_cleanup_free_ char *all = NULL;
	size_t size = 1, used = 0;

	errors_sort(d->errors, d->n_errors);
	for (size_t i = 0; i < d->n_errors; i++)
		size += strlen(d->errors[i].text) + 1;
	all = malloc(size);
	if (!all)
		return NULL;
	*all = 0;
	for (size_t i = 0; i < d->n_errors; i++)
		used += (size_t)snprintf(all + used, size - used, "%s%s", i ? "\n" : "", d->errors[i].text);
	return TAKE_PTR(all);
}

static void parser_error(struct config_doc *d, const yaml_parser_t *parser)
{
	struct place p = nowhere;

	p.line = (unsigned)parser->problem_mark.line + 1;
	config_doc_error(d, &p, "not valid YAML: %s", parser->problem ? parser->problem : "cannot be parsed");
}

static bool has_second_document(yaml_parser_t *parser, struct place *ret)
{
	yaml_document_t second;
	bool found = false;

	if (!yaml_parser_load(parser, &second))
		return false;
	if (yaml_document_get_root_node(&second)) {
		ret->line = (unsigned)yaml_document_get_root_node(&second)->start_mark.line + 1;
		found = true;
	}
	yaml_document_delete(&second);
	return found;
}

/* YAML can write a NUL ("\0"), but all texts end at one here: what follows would be lost without a word. */
static bool has_nul(const struct config_doc *d, struct place *ret)
{
	for (const yaml_node_t *n = d->yaml.nodes.start; n < d->yaml.nodes.top; n++) {
		if (n->type != YAML_SCALAR_NODE || !memchr(n->data.scalar.value, 0, n->data.scalar.length))
			continue;
		ret->line = node_line(d, n);
		return true;
	}
	return false;
}

int config_doc_load(struct config_doc *d, const char *path)
{
	_cleanup_fclose_ FILE *f = NULL;
	struct place p = nowhere;
	yaml_parser_t parser;
	int r = 0;

	*d = (struct config_doc){.name = path, .has_lines = true};
	f = fopen(path, "re");
	if (!f) {
		r = -errno;
		config_doc_error(d, NULL, "cannot be read: %s", strerror(-r));
		return r;
	}
	if (!yaml_parser_initialize(&parser))
		return -ENOMEM;
	yaml_parser_set_input_file(&parser, f);
	if (!yaml_parser_load(&parser, &d->yaml)) {
		memset(&d->yaml, 0, sizeof(d->yaml));
		if (ferror(f))
			config_doc_error(d, NULL, "cannot be read: %s", strerror(errno));
		else
			parser_error(d, &parser);
		r = -EINVAL;
	} else if (yaml_document_get_root_node(&d->yaml) && has_second_document(&parser, &p)) {
		config_doc_error(d, &p, "a second YAML document, allowed: one");
		r = -EINVAL;
	} else if (has_nul(d, &p)) {
		config_doc_error(d, &p, "a NUL character in a text, allowed: printable text");
		r = -EINVAL;
	}
	yaml_parser_delete(&parser);
	return r;
}

int config_doc_init(struct config_doc *d, const char *name)
{
	*d = (struct config_doc){.name = name};
	return yaml_document_initialize(&d->yaml, NULL, NULL, NULL, 1, 1) ? 0 : -ENOMEM;
}

void config_doc_done(struct config_doc *d)
{
	config_doc_clear_errors(d);
	free(d->errors);
	d->errors = NULL;
	yaml_document_delete(&d->yaml);
}
