/* SPDX-License-Identifier: MIT */
/* Backends' records: made, changed by one store, given back. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <bpf/bpf.h>
#include "publish_private.h"

#define STORE(x, v) __atomic_store_n(&(x), (v), __ATOMIC_RELEASE)

static bool is_leaving(const struct sy_backend *b)
{
	return backend_in_use(b) && (!(b->flags & SY_B_LISTED) || SY_WORD_STATE(b->word) == SY_DRAINING);
}

void backend_note_leaving(struct publish *p, uint32_t id)
{
	struct backend_local *local = &p->local[id];
	bool wanted = is_leaving(&p->maps->backends[id]);

	if (wanted && !local->leaving) {
		p->leaving[p->n_leaving++] = id;
		local->leaving = p->n_leaving;
	} else if (!wanted && local->leaving) {
		uint32_t last = p->leaving[--p->n_leaving];

		p->leaving[local->leaving - 1] = last;
		p->local[last].leaving = local->leaving;
		local->leaving = 0;
	}
}

void backend_set_word(struct publish *p, uint32_t id, enum sy_state state, enum sy_reason reason, uint64_t now_ns)
{
	struct sy_backend *b = &p->maps->backends[id];
	uint64_t word = SY_BACKEND_WORD(SY_WORD_GEN(b->word), state, reason);

	if (b->word == word)
		return;
	STORE(b->word, word);
	b->since_ns = now_ns;
	backend_note_leaving(p, id);
}

void backend_set_gone(struct publish *p, uint32_t id, enum sy_state state, uint64_t now_ns)
{
	struct sy_backend *b = &p->maps->backends[id];

	backend_set_word(p, id, state, SY_R_GONE, now_ns);
	STORE(b->flags, (__u8)(b->flags & ~SY_B_LISTED));
	backend_note_leaving(p, id);
}

static int endpoint_get(struct publish *p, const struct id_key *key, uint32_t *ret)
{
	struct id_key e = *key;
	uint32_t id;

	/* rejected entries are never reached, so they have none */
	if (!key->family || key->ordinal) {
		*ret = 0;
		return 0;
	}
	e.service = 0;
	id = keyed_ids_find(&p->endpoints, &e);
	if (!id) {
		int err = keyed_ids_take(&p->endpoints, &e, &id);

		if (err)
			return err;
		STORE(p->maps->endpoints[id].agent, 0);
		STORE(p->maps->endpoints[id].program, 0);
	}
	p->endpoint_refs[id]++;
	*ret = id;
	return 0;
}

static void endpoint_put(struct publish *p, uint32_t id)
{
	if (!id || !p->endpoint_refs[id] || --p->endpoint_refs[id])
		return;
	keyed_ids_release(&p->endpoints, id);
	STORE(p->maps->endpoints[id].agent, 0);
	STORE(p->maps->endpoints[id].program, 0);
}

static int service_add_id(struct publish *p, struct service_local *s, uint32_t id)
{
	if (s->n_ids == s->room_ids) {
		size_t room = s->room_ids ? 2 * s->room_ids : 8;
		uint32_t *ids = realloc(s->ids, room * sizeof(*ids));

		if (!ids)
			return -ENOMEM;
		s->ids = ids;
		s->room_ids = room;
	}
	p->local[id].place = (uint32_t)s->n_ids;
	s->ids[s->n_ids++] = id;
	return 0;
}

static void service_drop_id(struct publish *p, struct service_local *s, uint32_t id)
{
	uint32_t last = s->ids[--s->n_ids];

	s->ids[p->local[id].place] = last;
	p->local[last].place = p->local[id].place;
}

int backend_make(struct publish *p, struct service_local *s, const struct id_key *key, double weight, uint32_t *ret_id)
{
	struct sy_backend *b;
	uint32_t id, endpoint;
	int err;

	err = keyed_ids_take(&p->backends, key, &id);
	if (err)
		return err;
	err = endpoint_get(p, key, &endpoint);
	if (!err) {
		err = service_add_id(p, s, id);
		if (err)
			endpoint_put(p, endpoint);
	}
	if (err) {
		keyed_ids_release(&p->backends, id);
		return err;
	}
	b = &p->maps->backends[id];
	STORE(b->word, SY_BACKEND_WORD(SY_WORD_GEN(b->word), SY_EVICTED, SY_R_GONE));
	memcpy(b->addr, key->addr, sizeof(b->addr));
	b->port = key->port;
	b->service = s->id;
	b->endpoint = endpoint;
	b->pool = 0;
	STORE(b->nh, 0);
	memcpy(&b->weight, &weight, sizeof(weight));
	STORE(b->family, key->family);
	STORE(b->flags, (__u8)SY_B_LISTED);
	p->local[id].text = 0;
	*ret_id = id;
	return 0;
}

bool backend_adopt(struct publish *p, struct service_local *s, const struct id_key *key, uint32_t id)
{
	const struct sy_backend *b = &p->maps->backends[id];
	struct id_key e = *key;

	if (!keyed_ids_claim(&p->backends, key, id))
		return false;
	if (service_add_id(p, s, id)) {
		keyed_ids_release(&p->backends, id);
		return false;
	}
	e.service = 0;
	if (b->endpoint && b->endpoint < SY_MAX_ENDPOINTS) {
		if (keyed_ids_find(&p->endpoints, &e) == b->endpoint || keyed_ids_claim(&p->endpoints, &e, b->endpoint))
			p->endpoint_refs[b->endpoint]++;
	}
	backend_note_leaving(p, id);
	return true;
}

/* Counts of one id stay with the service when the id is given to another. */
static void fold_counts(struct publish *p, uint32_t id)
{
	struct sy_service *service = &p->maps->services[p->maps->backends[id].service];

	for (uint32_t cpu = 0; cpu < p->maps->config->n_cpus; cpu++) {
		struct sy_backend_count *c = &p->maps->counters[(size_t)cpu * SY_MAX_BACKENDS + id];

		if (!c->packets && !c->picks && !c->connections)
			continue;
		service->gone_connections += c->connections;
		service->gone_packets += c->packets;
		service->gone_bytes += c->bytes;
		memset(c, 0, sizeof(*c));
	}
}

void backend_release(struct publish *p, uint32_t id)
{
	struct sy_backend *b = &p->maps->backends[id];
	struct sy_load *load = &p->maps->loads[id];
	struct service_local *s = p->services[b->service];

	/* first the generation: whatever still names this id is of the past from here on */
	STORE(b->word, SY_BACKEND_WORD(SY_WORD_GEN(b->word) + 1, SY_EVICTED, SY_R_GONE));
	fold_counts(p, id);
	STORE(load->word, 0);
	load->cursor = 0;
	load->fails = 0;
	load->syns = 0;
	load->synacks = 0;
	load->refused = 0;
	(void)bpf_map_delete_elem(p->maps->fd_backend_info, &id);
	endpoint_put(p, b->endpoint);
	STORE(b->flags, 0);
	STORE(b->family, 0);
	STORE(b->nh, 0);
	b->endpoint = 0;
	b->pool = 0;
	b->port = 0;
	b->weight = 0;
	b->since_ns = 0;
	b->service = 0;
	memset(b->addr, 0, sizeof(b->addr));

	backend_note_leaving(p, id);
	p->local[id].text = 0;
	service_drop_id(p, s, id);
	keyed_ids_release(&p->backends, id);
	service_finish(p, s);
}

void backend_reclaim(struct publish *p, uint64_t now_ns, bool hurry)
{
	/* backwards: a release moves the last one into its place */
	for (uint32_t i = p->n_leaving; i-- > 0;) {
		uint32_t id = p->leaving[i];
		const struct sy_backend *b = &p->maps->backends[id];

		if (b->flags & SY_B_LISTED)
			continue;
		/* in a hurry is a selection that has run out of ids: what it lists again is about to be of use */
		if (hurry && p->local[id].round == p->round)
			continue;
		if (__atomic_load_n(&p->maps->loads[id].active, __ATOMIC_ACQUIRE))
			continue;
		if (hurry || p->services[b->service]->removed || b->since_ns + PUBLISH_GONE_NS <= now_ns)
			backend_release(p, id);
	}
}
