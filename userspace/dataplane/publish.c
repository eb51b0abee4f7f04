/* SPDX-License-Identifier: MIT */
/* The service's state kept beside the maps, the operator's overrides and what time brings. Selections:
 * publish_selection.c. */
#include "publish.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "publish_private.h"

#define STORE(x, v)  __atomic_store_n(&(x), (v), __ATOMIC_RELEASE)
#define RETIRED_RING 32768

static uint64_t key_seed(const struct maps *m)
{
	uint64_t seed;

	memcpy(&seed, m->config->secret, sizeof(seed));
	return seed;
}

struct publish *publish_new(struct maps *maps)
{
	struct publish *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->maps = maps;
	p->round = 1; /* 0: not listed since this agent began */
	p->endpoint_refs = calloc(SY_MAX_ENDPOINTS, sizeof(*p->endpoint_refs));
	p->local = calloc(SY_MAX_BACKENDS, sizeof(*p->local));
	p->leaving = calloc(SY_MAX_BACKENDS, sizeof(*p->leaving));
	p->services = calloc(SY_MAX_SERVICES, sizeof(struct service_local *));
	p->service_heads = calloc(SY_MAX_SERVICES, sizeof(*p->service_heads));
	if (!p->endpoint_refs || !p->local || !p->leaving || !p->services || !p->service_heads ||
	    keyed_ids_init(&p->backends, SY_MAX_BACKENDS, key_seed(maps)) ||
	    keyed_ids_init(&p->endpoints, SY_MAX_ENDPOINTS, key_seed(maps)) ||
	    ids_init(&p->service_ids, SY_MAX_SERVICES) ||
	    regions_init(&p->regions, SY_TABLE_BYTES / SY_REGION_ALIGN, RETIRED_RING) || publish_adopt(p)) {
		publish_free(p);
		return NULL;
	}
	return p;
}

void publish_free(struct publish *p)
{
	if (!p)
		return;
	for (uint32_t id = 0; p->services && id < SY_MAX_SERVICES; id++)
		service_local_free(p->services[id]);
	keyed_ids_done(&p->backends);
	keyed_ids_done(&p->endpoints);
	ids_done(&p->service_ids);
	regions_done(&p->regions);
	free(p->services);
	free(p->service_heads);
	free(p->leaving);
	free(p->local);
	free(p->endpoint_refs);
	free(p);
}

void publish_set_hooks(struct publish *p, const struct publish_hooks *h)
{
	p->hooks = *h;
}

void publish_source(struct publish *p, uint32_t service, enum sy_source source, uint64_t now_ns)
{
	struct sy_service *record = &p->maps->services[service];

	if (record->source == source)
		return;
	STORE(record->source, source);
	STORE(record->since_ns, now_ns);
}

void publish_tick(struct publish *p, uint64_t now_ns)
{
	for (uint32_t i = p->n_leaving; i-- > 0;) {
		uint32_t id = p->leaving[i];
		const struct sy_backend *b = &p->maps->backends[id];
		uint64_t deadline_ns = p->services[b->service]->drain_deadline_ns;

		if (deadline_ns && SY_WORD_STATE(b->word) == SY_DRAINING && b->since_ns + deadline_ns <= now_ns)
			backend_set_word(p, id, SY_EVICTED, SY_WORD_REASON(b->word), now_ns);
	}
	backend_reclaim(p, now_ns, false);
	service_least_timeout(p);
}

int publish_override(struct publish *p, uint32_t service, const struct endpoint *e, enum override o, uint64_t now_ns)
{
	struct id_key key;
	uint32_t id;

	id_key_set(&key, service, e);
	id = keyed_ids_find(&p->backends, &key);
	if (!id)
		return -ENOENT;
	/* what an enabled backend is to be is for the next selection to say */
	if (o != OVERRIDE_NONE)
		backend_set_word(p, id, o == OVERRIDE_EVICT ? SY_EVICTED : SY_DRAINING, SY_R_OPERATOR, now_ns);
	return 0;
}

static void endpoint_of(const struct sy_backend *b, struct endpoint *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->port = ntohs(b->port);
	ret->addr.family = b->family;
	if (b->family == AF_INET6)
		memcpy(&ret->addr.v6, b->addr, sizeof(ret->addr.v6));
	else
		ret->addr.v4.s_addr = b->addr[3];
}

void publish_for_each_override(const struct publish *p, uint32_t service,
			       void (*cb)(void *ctx, const struct endpoint *e, enum override o), void *ctx)
{
	const struct service_local *s = p->services[service];

	for (size_t i = 0; s && i < s->n_ids; i++) {
		const struct sy_backend *b = &p->maps->backends[s->ids[i]];
		struct endpoint e;

		if (SY_WORD_REASON(b->word) != SY_R_OPERATOR)
			continue;
		endpoint_of(b, &e);
		cb(ctx, &e, SY_WORD_STATE(b->word) == SY_EVICTED ? OVERRIDE_EVICT : OVERRIDE_DRAIN);
	}
}

void publish_for_each_backend(const struct publish *p, void (*cb)(void *ctx, uint32_t id, const struct sy_backend *b),
			      void *ctx)
{
	for (uint32_t service = 0; service < SY_MAX_SERVICES; service++) {
		const struct service_local *s = p->services[service];

		for (size_t i = 0; s && i < s->n_ids; i++)
			if (p->maps->backends[s->ids[i]].family)
				cb(ctx, s->ids[i], &p->maps->backends[s->ids[i]]);
	}
}
