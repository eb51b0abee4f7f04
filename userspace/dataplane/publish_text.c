/* SPDX-License-Identifier: MIT */
#include "publish_text.h"
#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../base/cleanup.h"

#define KEPT(field) (sizeof(((struct sy_backend_info *)0)->field) - 1)

uint64_t publish_text_hash(const char *cluster)
{
	return id_key_text_hash_n(cluster, KEPT(cluster));
}

uint64_t publish_text_bad_hash(const char *address)
{
	return id_key_text_hash_n(address, KEPT(address));
}

static void info_fill(const struct candidate *c, struct sy_backend_info *ret)
{
	char address[ADDR_TEXT_LEN];

	memset(ret, 0, sizeof(*ret));
	if (c->reason == SY_R_BAD_ADDRESS)
		(void)snprintf(ret->address, sizeof(ret->address), "%s", c->instance->address_text);
	else
		(void)snprintf(ret->address, sizeof(ret->address), "%s",
			       endpoint_format(&c->instance->endpoint, address));
	(void)snprintf(ret->cluster, sizeof(ret->cluster), "%s", c->instance->cluster);
}

static int write_each(struct publish *p, const uint32_t *keys, const struct sy_backend_info *infos, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (bpf_map_update_elem(p->maps->fd_backend_info, &keys[i], &infos[i], BPF_ANY))
			return -errno;
	return 0;
}

static int write_batch(struct publish *p, const uint32_t *keys, const struct sy_backend_info *infos, uint32_t n)
{
	uint32_t done = n;

	if (n < 4 || bpf_map_update_batch(p->maps->fd_backend_info, keys, infos, &done, NULL))
		return write_each(p, keys, infos, n);
	return 0;
}

int publish_text_write(struct publish *p, const struct selection *sel, const uint32_t *ids)
{
	_cleanup_free_ struct sy_backend_info *infos = NULL;
	_cleanup_free_ uint32_t *keys = NULL;
	const char *last = NULL;
	uint64_t hash = 0;
	uint32_t n = 0, room = 0;
	int err;

	for (size_t i = 0; i < sel->n_candidates; i++) {
		const char *cluster = sel->candidates[i].instance->cluster;

		if (!last || strcmp(cluster, last)) /* clusters are few */
			hash = publish_text_hash(cluster);
		last = cluster;
		if (!ids[i] || hash == p->local[ids[i]].text)
			continue;
		if (n == room) {
			struct sy_backend_info *more = realloc(infos, (room ? 2 * room : 64) * sizeof(*infos));
			uint32_t *more_keys = realloc(keys, (room ? 2 * room : 64) * sizeof(*keys));

			infos = more ? more : infos;
			keys = more_keys ? more_keys : keys;
			if (!more || !more_keys)
				return -ENOMEM;
			room = room ? 2 * room : 64;
		}
		info_fill(&sel->candidates[i], &infos[n]);
		keys[n++] = ids[i];
	}
	err = n ? write_batch(p, keys, infos, n) : 0;
	for (uint32_t i = 0; !err && i < n; i++)
		p->local[keys[i]].text = publish_text_hash(infos[i].cluster);
	return err;
}
