/* SPDX-License-Identifier: MIT */
#include "keyed_ids.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * 0x9e3779b97f4a7c15ULL;
	return h ^ (h >> 29);
}

/* Addresses come from outside: the seed keeps them from being chosen to share a chain. */
static uint32_t bucket(const struct keyed_ids *k, const struct id_key *key)
{
	uint64_t part[sizeof(*key) / 8], h = k->seed;

	memcpy(part, key, sizeof(part));
	for (size_t i = 0; i < sizeof(part) / sizeof(part[0]); i++)
		h = mix(h, part[i]);
	return (uint32_t)(h >> 32) & k->mask;
}

int keyed_ids_init(struct keyed_ids *k, uint32_t n, uint64_t seed)
{
	struct keyed_ids fresh = {.mask = 1, .seed = seed};

	while (fresh.mask < n)
		fresh.mask <<= 1;
	fresh.keys = calloc(n, sizeof(*fresh.keys));
	fresh.heads = calloc(fresh.mask, sizeof(*fresh.heads));
	fresh.next = calloc(n, sizeof(*fresh.next));
	fresh.mask--;
	if (!fresh.keys || !fresh.heads || !fresh.next || ids_init(&fresh.ids, n)) {
		keyed_ids_done(&fresh);
		return -ENOMEM;
	}
	(void)ids_claim(&fresh.ids, 0);
	*k = fresh;
	return 0;
}

void keyed_ids_done(struct keyed_ids *k)
{
	ids_done(&k->ids);
	free(k->keys);
	free(k->heads);
	free(k->next);
	*k = (struct keyed_ids){0};
}

uint32_t keyed_ids_find(const struct keyed_ids *k, const struct id_key *key)
{
	uint32_t id = k->heads[bucket(k, key)];

	while (id && memcmp(&k->keys[id], key, sizeof(*key)))
		id = k->next[id];
	return id;
}

bool keyed_ids_has(const struct keyed_ids *k, const struct id_key *key, uint32_t id)
{
	return id && id < k->ids.n && (k->ids.used[id / 64] >> (id % 64) & 1) &&
	       !memcmp(&k->keys[id], key, sizeof(*key));
}

static void link_id(struct keyed_ids *k, const struct id_key *key, uint32_t id)
{
	uint32_t b = bucket(k, key);

	k->keys[id] = *key;
	k->next[id] = k->heads[b];
	k->heads[b] = id;
}

int keyed_ids_take(struct keyed_ids *k, const struct id_key *key, uint32_t *ret_id)
{
	uint32_t id;
	int err = ids_take(&k->ids, &id);

	if (err)
		return err;
	link_id(k, key, id);
	*ret_id = id;
	return 0;
}

bool keyed_ids_claim(struct keyed_ids *k, const struct id_key *key, uint32_t id)
{
	if (keyed_ids_find(k, key) || !ids_claim(&k->ids, id))
		return false;
	link_id(k, key, id);
	return true;
}

void keyed_ids_release(struct keyed_ids *k, uint32_t id)
{
	uint32_t *at = &k->heads[bucket(k, &k->keys[id])];

	while (*at && *at != id)
		at = &k->next[*at];
	if (!*at)
		return;
	*at = k->next[id];
	k->next[id] = 0;
	ids_release(&k->ids, id);
}

void id_key_set(struct id_key *key, uint32_t service, const struct endpoint *e)
{
	memset(key, 0, sizeof(*key));
	key->service = service;
	key->port = htons(e->port);
	key->family = (uint8_t)e->addr.family;
	if (e->addr.family == AF_INET6) {
		memcpy(key->addr, &e->addr.v6, sizeof(key->addr));
	} else {
		key->addr[2] = htonl(0xffff);
		key->addr[3] = e->addr.v4.s_addr;
	}
}

uint64_t id_key_text_hash_n(const char *text, size_t max)
{
	const unsigned char *c = (const unsigned char *)text;
	uint64_t h = 0xcbf29ce484222325ULL;

	for (size_t i = 0; i < max && c[i]; i++)
		h = (h ^ c[i]) * 0x100000001b3ULL;
	return h ? h : 1;
}

uint64_t id_key_text_hash(const char *text)
{
	return id_key_text_hash_n(text, SIZE_MAX);
}
