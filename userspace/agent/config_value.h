/* SPDX-License-Identifier: MIT */
/* Single values of the configuration: each reader leaves *ret untouched when the key is absent, and when the value is
 * wrong, which it notes as an error of the document. */
#pragma once
#include <stdint.h>
#include "../base/addr.h"
#include "config_doc.h"

struct config_word {
	const char *name; /* one that ends with ':' stands for every word that begins so; NULL ends the list */
	int value;	  /* CONFIG_LATER: known, not supported yet */
};
#define CONFIG_LATER (-1)

void config_value_word(struct config_doc *d, const struct place *p, const struct config_word *words, int *ret);
void config_value_duration(struct config_doc *d, const struct place *p, uint64_t min_ns, uint64_t max_ns,
			   uint64_t *ret);
void config_value_number(struct config_doc *d, const struct place *p, uint64_t min, uint64_t max, uint64_t *ret);
/* Text of at most max_len bytes; *ret is replaced and freed. "" is noted as an error unless empty_ok. */
void config_value_text(struct config_doc *d, const struct place *p, size_t max_len, bool empty_ok, char **ret);
/* The same, beginning with '/'. */
void config_value_path(struct config_doc *d, const struct place *p, size_t max_len, char **ret);
/* "FIRST-LAST" or one port. */
void config_value_ports(struct config_doc *d, const struct place *p, uint16_t *ret_first, uint16_t *ret_last);
/* IPv4 that packets can be sent from. false: noted. */
bool config_value_addr(struct config_doc *d, const struct place *p, struct addr *ret);
/* "ADDR:PORT" with or without "/tcp". false: noted. */
bool config_value_listener(struct config_doc *d, const struct place *p, struct endpoint *ret);

/* Values that may be there once only. */
struct config_seen {
	struct config_seen_entry *entries; /* owned */
	size_t n;
};
void config_seen_add(struct config_doc *d, struct config_seen *s, const struct place *p, const char *value);
/* Notes each value that came before, and forgets all. */
void config_seen_done(struct config_doc *d, struct config_seen *s);
