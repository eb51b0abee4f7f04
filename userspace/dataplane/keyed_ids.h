/* SPDX-License-Identifier: MIT */
/* Ids by key: a backend is (service, address, port), an endpoint (address, port). A hash over arrays, no memory per id.
 * Pure; private to dataplane. */
#pragma once
#include <linux/types.h>
#include "../base/addr.h"
#include "ids.h"

struct id_key {
	uint64_t text;	/* hash of the text of what is no address, else 0 */
	__be32 addr[4]; /* as struct sy_backend has it */
	uint32_t service;
	uint32_t ordinal; /* 0; 1 and up for entries that another one with the same address and port beat */
	__be16 port;
	uint8_t family;
	uint8_t zero[5];
};
_Static_assert(sizeof(struct id_key) == 40, "compared as bytes");

struct keyed_ids {
	struct ids ids;
	struct id_key *keys;	/* owned, by id */
	uint32_t *heads, *next; /* owned: chains of ids, 0 ends */
	uint32_t mask;
	uint64_t seed;
};

/* n ids at most; id 0 is never given out. 0 or -ENOMEM. */
int keyed_ids_init(struct keyed_ids *k, uint32_t n, uint64_t seed);
void keyed_ids_done(struct keyed_ids *k);
/* 0: none. */
uint32_t keyed_ids_find(const struct keyed_ids *k, const struct id_key *key);
/* Is that its id? */
bool keyed_ids_has(const struct keyed_ids *k, const struct id_key *key, uint32_t id);
/* The key must not be there yet. 0 or -ENOSPC. */
int keyed_ids_take(struct keyed_ids *k, const struct id_key *key, uint32_t *ret_id);
/* Take this very id for the key. false: the id or the key is taken. */
bool keyed_ids_claim(struct keyed_ids *k, const struct id_key *key, uint32_t id);
void keyed_ids_release(struct keyed_ids *k, uint32_t id);

/* The address part of a key. */
void id_key_set(struct id_key *key, uint32_t service, const struct endpoint *e);
uint64_t id_key_text_hash(const char *text); /* never 0 */
uint64_t id_key_text_hash_n(const char *text, size_t max); /* of its first max bytes at most */
