/* SPDX-License-Identifier: MIT */
#include "ids.h"
#include <errno.h>
#include <stdlib.h>

int ids_init(struct ids *s, uint32_t n)
{
	uint64_t *used = calloc(((size_t)n + 63) / 64, sizeof(*used));

	if (!used)
		return -ENOMEM;
	*s = (struct ids){.used = used, .n = n};
	return 0;
}

void ids_done(struct ids *s)
{
	free(s->used);
	*s = (struct ids){0};
}

int ids_take(struct ids *s, uint32_t *ret)
{
	uint32_t n_words = (s->n + 63) / 64;

	for (; s->from < n_words; s->from++) {
		uint64_t unused = ~s->used[s->from];
		uint32_t id;

		if (!unused)
			continue;
		id = s->from * 64 + (uint32_t)__builtin_ctzll(unused);
		if (id >= s->n)
			break;
		s->used[s->from] |= 1ULL << (id % 64);
		s->n_used++;
		*ret = id;
		return 0;
	}
	return -ENOSPC;
}

bool ids_claim(struct ids *s, uint32_t id)
{
	uint64_t bit = 1ULL << (id % 64);

	if (id >= s->n || (s->used[id / 64] & bit))
		return false;
	s->used[id / 64] |= bit;
	s->n_used++;
	return true;
}

void ids_release(struct ids *s, uint32_t id)
{
	uint64_t bit = 1ULL << (id % 64);

	if (id >= s->n || !(s->used[id / 64] & bit))
		return;
	s->used[id / 64] &= ~bit;
	s->n_used--;
	if (id / 64 < s->from)
		s->from = id / 64;
}
