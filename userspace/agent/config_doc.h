/* SPDX-License-Identifier: MIT */
/* A YAML document with places that people can find again, and the list of what is wrong with it. The command line is
 * turned into such a document too, so that there is one reader and one set of checks. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <yaml.h>

struct config_error {
	unsigned line;
	char *text; /* owned */
};

struct config_doc {
	yaml_document_t yaml;
	const char *name; /* file, or "command line"; borrowed */
	bool has_lines;
	struct config_error *errors; /* owned */
	size_t n_errors;
	bool no_memory; /* an error could not even be noted */
};

#define CONFIG_PATH_LEN 192

/* A value in the document, or where one could be. */
struct place {
	yaml_node_t *node;	    /* NULL: absent (or null, which is the same) */
	unsigned line;		    /* its own, else the nearest one above */
	char path[CONFIG_PATH_LEN]; /* "services[2].listen[0]" */
};

/* Parse a file. 0; -EINVAL: not YAML (noted as an error); -errno of reading (noted as well). config_doc_done in any
 * case. */
int config_doc_load(struct config_doc *d, const char *path);
/* An empty document to be filled with yaml_document_add_*. 0 or -ENOMEM. */
int config_doc_init(struct config_doc *d, const char *name);
void config_doc_done(struct config_doc *d);

struct place config_doc_root(struct config_doc *d);
struct place config_doc_key(struct config_doc *d, const struct place *map, const char *key);
struct place config_doc_item(struct config_doc *d, const struct place *list, size_t index);
size_t config_doc_n_items(const struct place *list); /* 0 when absent or no list */
const char *config_doc_text(const struct place *p);  /* borrowed; NULL when absent or no scalar */

void config_doc_error(struct config_doc *d, const struct place *p, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Forget the errors noted so far: one that makes them meaningless comes next. */
void config_doc_clear_errors(struct config_doc *d);
/* Every error, one line each, by line; owned. NULL: no memory. */
char *config_doc_errors(struct config_doc *d);
