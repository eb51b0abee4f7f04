/* SPDX-License-Identifier: MIT */
/* Services' records and listeners. A packet meets listener, then service, then table: they are made in the order
 * record, address gate, listener, and unmade the other way round. */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "../base/clock.h"
#include "publish_private.h"

#define STORE(x, v) __atomic_store_n(&(x), (v), __ATOMIC_RELEASE)
/* store only what differs: an unchanged configuration writes no map */
#define STORE_CHANGED(x, v)                                                                                            \
	do {                                                                                                           \
		if ((x) != (v))                                                                                        \
			STORE((x), (v));                                                                               \
	} while (0)

static uint32_t *name_head(struct publish *p, const struct sy_service_info *info)
{
	uint64_t h = id_key_text_hash(info->registry) * 3 + id_key_text_hash(info->ns) * 5 +
		     id_key_text_hash(info->group) * 7 + id_key_text_hash(info->name);

	return &p->service_heads[(h ^ (h >> 32)) % SY_MAX_SERVICES];
}

struct service_local *service_local_new(struct publish *p, uint32_t id, const struct sy_service_info *info)
{
	struct service_local *s = calloc(1, sizeof(*s));
	uint32_t *head;

	if (!s)
		return NULL;
	s->id = id;
	s->info = *info;
	s->dirty = true;
	head = name_head(p, info);
	s->next = *head;
	*head = id + 1;
	p->services[id] = s;
	return s;
}

void service_local_free(struct service_local *s)
{
	if (!s)
		return;
	free(s->listeners);
	free(s->ids);
	free(s);
}

static int info_from_key(const struct service_key *k, struct sy_service_info *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (strlen(k->registry) >= sizeof(ret->registry) || strlen(k->ns) >= sizeof(ret->ns) ||
	    strlen(k->group) >= sizeof(ret->group) || strlen(k->name) >= sizeof(ret->name))
		return -ENAMETOOLONG;
	strcpy(ret->registry, k->registry);
	strcpy(ret->ns, k->ns);
	strcpy(ret->group, k->group);
	strcpy(ret->name, k->name);
	return 0;
}

static struct service_local *find_by_name(struct publish *p, const struct sy_service_info *info)
{
	for (uint32_t i = *name_head(p, info); i; i = p->services[i - 1]->next) {
		struct service_local *s = p->services[i - 1];

		if (!s->removed && !memcmp(&s->info, info, sizeof(*info)))
			return s;
	}
	return NULL;
}

static void unlink_name(struct publish *p, struct service_local *s)
{
	uint32_t *at = name_head(p, &s->info);

	while (*at && *at != s->id + 1)
		at = &p->services[*at - 1]->next;
	if (*at)
		*at = s->next;
}

/* ---- listeners ---- */

static int gate_add(struct publish *p, __be32 addr, int by)
{
	uint32_t n = 0;

	(void)bpf_map_lookup_elem(p->maps->fd_vips4, &addr, &n);
	n += (uint32_t)by;
	if (!n)
		return bpf_map_delete_elem(p->maps->fd_vips4, &addr) ? -errno : 0;
	return bpf_map_update_elem(p->maps->fd_vips4, &addr, &n, BPF_ANY) ? -errno : 0;
}

static bool has_listener(const struct service_local *s, const struct sy_listener_key *key)
{
	for (size_t i = 0; i < s->n_listeners; i++)
		if (!memcmp(&s->listeners[i], key, sizeof(*key)))
			return true;
	return false;
}

static void forget_listener(struct service_local *s, const struct sy_listener_key *key)
{
	for (size_t i = 0; i < s->n_listeners; i++) {
		if (memcmp(&s->listeners[i], key, sizeof(*key)))
			continue;
		s->listeners[i] = s->listeners[--s->n_listeners];
		return;
	}
}

static void listener_remove(struct publish *p, struct service_local *s, struct sy_listener_key key)
{
	(void)bpf_map_delete_elem(p->maps->fd_listeners4, &key);
	(void)gate_add(p, key.addr, -1);
	forget_listener(s, &key);
}

static struct sy_listener_key listener_key(const struct endpoint *e)
{
	return (struct sy_listener_key){.addr = e->addr.v4.s_addr, .port = htons(e->port), .proto = IPPROTO_TCP};
}

/* Whose it is: NULL when nobody's. */
static struct service_local *listener_owner(struct publish *p, const struct sy_listener_key *key)
{
	struct sy_listener value;

	if (bpf_map_lookup_elem(p->maps->fd_listeners4, key, &value) || value.service >= SY_MAX_SERVICES)
		return NULL;
	return p->services[value.service];
}

/* An adopted service that the configuration has not named (yet) loses its listener to one that it does name, in one
 * store. */
static int listener_add(struct publish *p, struct service_local *s, const struct sy_listener_key *key)
{
	struct service_local *owner = listener_owner(p, key);
	struct sy_listener value = {.service = s->id};
	struct sy_listener_key *grown;
	int err = 0;

	if (owner == s)
		return 0;
	grown = realloc(s->listeners, (s->n_listeners + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	s->listeners = grown;
	if (!owner)
		err = gate_add(p, key->addr, 1);
	if (!err && bpf_map_update_elem(p->maps->fd_listeners4, key, &value, BPF_ANY))
		err = -errno;
	if (err) {
		if (!owner)
			(void)gate_add(p, key->addr, -1);
		return err == -E2BIG ? -ENOSPC : err;
	}
	s->listeners[s->n_listeners++] = *key;
	if (owner)
		forget_listener(owner, key);
	return 0;
}

static int listeners_set(struct publish *p, struct service_local *s, const struct service_settings *set)
{
	for (size_t i = s->n_listeners; i-- > 0;) {
		struct sy_listener_key key = s->listeners[i];
		bool wanted = false;

		for (size_t j = 0; j < set->n_listen && !wanted; j++) {
			struct sy_listener_key other = listener_key(&set->listen[j]);

			wanted = !memcmp(&other, &key, sizeof(key));
		}
		if (!wanted)
			listener_remove(p, s, key);
	}
	for (size_t j = 0; j < set->n_listen; j++) {
		struct sy_listener_key key = listener_key(&set->listen[j]);
		int err = has_listener(s, &key) ? 0 : listener_add(p, s, &key);

		if (err)
			return err;
	}
	return 0;
}

static int listeners_check(struct publish *p, const struct service_local *s, const struct service_settings *set)
{
	for (size_t j = 0; j < set->n_listen; j++) {
		struct sy_listener_key key = listener_key(&set->listen[j]);
		const struct service_local *owner;

		if (set->listen[j].addr.family != AF_INET)
			return -EAFNOSUPPORT;
		owner = listener_owner(p, &key);
		if (owner && owner != s && owner->claimed)
			return -EEXIST;
	}
	return 0;
}

/* ---- records ---- */

static uint32_t to_jiffies(const struct publish *p, uint64_t ns)
{
	uint64_t hz = p->maps->config->hz, max = UINT32_MAX / 2, s = ns / NS_PER_S;
	uint64_t n = s > max / hz ? max : s * hz + (ns % NS_PER_S * hz + NS_PER_S - 1) / NS_PER_S;

	return n < 1 ? 1 : n > max ? (uint32_t)max : (uint32_t)n;
}

static void record_set(struct publish *p, uint32_t id, const struct service_settings *set)
{
	struct sy_service *r = &p->maps->services[id];
	struct sy_config *c = p->maps->config;

	for (unsigned t = 0; t < SY_N_TIMEOUTS; t++) {
		uint32_t jiffies = to_jiffies(p, set->timeout_ns[t]);

		if (jiffies == r->timeout[t])
			continue;
		/* the sweeper must not skip this service's lines from now on; publish_tick finds the exact least */
		if (jiffies < c->min_timeout)
			STORE(c->min_timeout, jiffies);
		STORE(r->timeout[t], jiffies);
		p->timeouts_changed = true;
	}
	STORE_CHANGED(r->mode, (__u8)set->mode);
	STORE_CHANGED(r->algorithm, (__u8)set->algorithm);
	STORE_CHANGED(r->on_empty, (__u8)set->on_empty);
	STORE_CHANGED(r->used, 1);
}

void service_least_timeout(struct publish *p)
{
	struct sy_config *c = p->maps->config;
	uint32_t least = UINT32_MAX;

	if (!p->timeouts_changed)
		return;
	p->timeouts_changed = false;
	for (unsigned t = 0; t < SY_N_TIMEOUTS; t++)
		if (c->default_timeout[t] < least)
			least = c->default_timeout[t];
	for (uint32_t id = 0; id < SY_MAX_SERVICES; id++)
		for (unsigned t = 0; p->services[id] && t < SY_N_TIMEOUTS; t++)
			if (p->maps->services[id].timeout[t] < least)
				least = p->maps->services[id].timeout[t];
	STORE_CHANGED(c->min_timeout, least);
}

static struct service_local *service_make(struct publish *p, const struct sy_service_info *info, int *ret_err)
{
	struct service_local *s = NULL;
	uint32_t id;

	*ret_err = ids_take(&p->service_ids, &id);
	if (*ret_err)
		return NULL;
	s = service_local_new(p, id, info);
	*ret_err = s ? 0 : -ENOMEM;
	if (s && bpf_map_update_elem(p->maps->fd_service_info, &id, info, BPF_ANY)) {
		*ret_err = -errno;
		unlink_name(p, s);
		p->services[id] = NULL;
		service_local_free(s);
		s = NULL;
	}
	if (!s)
		ids_release(&p->service_ids, id);
	return s;
}

int publish_service(struct publish *p, const struct service_key *k, const struct service_settings *set,
		    uint32_t *ret_id)
{
	struct sy_service_info info;
	struct service_local *s;
	int err = info_from_key(k, &info);

	if (err)
		return err;
	s = find_by_name(p, &info);
	err = listeners_check(p, s, set);
	if (err)
		return err;
	if (!s)
		s = service_make(p, &info, &err);
	if (!s)
		return err;
	s->claimed = true;
	s->drain_deadline_ns = set->drain_deadline_ns;
	record_set(p, s->id, set);
	err = listeners_set(p, s, set);
	if (err)
		return err;
	*ret_id = s->id;
	return 0;
}

void service_rest_region(struct publish *p, struct service_local *s)
{
	const struct timespec rest = {.tv_nsec = REGION_REST_NS};

	/* the ring is full only when thousands of tables went within a millisecond */
	while (s->n_units && !regions_retire(&p->regions, s->off, s->n_units, clock_monotonic_ns()))
		(void)nanosleep(&rest, NULL);
	s->n_units = 0;
}

void service_clear_table(struct publish *p, struct service_local *s)
{
	struct sy_service *r = &p->maps->services[s->id];

	STORE(r->table, SY_TABLE_WORD(0, 0, SY_TABLE_VER(r->table) + 1));
	service_rest_region(p, s);
}

/* The table word's version lives on, so that no reader takes a later service's table for the one it began with. */
void service_finish(struct publish *p, struct service_local *s)
{
	struct sy_service *r = &p->maps->services[s->id];
	uint64_t table = r->table;
	uint32_t id = s->id;

	if (!s->removed || s->n_ids)
		return;
	memset((char *)r + sizeof(r->table), 0, sizeof(*r) - sizeof(r->table));
	STORE(r->table, table);
	(void)bpf_map_delete_elem(p->maps->fd_service_info, &id);
	unlink_name(p, s);
	p->services[id] = NULL;
	service_local_free(s);
	ids_release(&p->service_ids, id);
	p->timeouts_changed = true;
}

void publish_service_remove(struct publish *p, uint32_t id)
{
	struct service_local *s = id < SY_MAX_SERVICES ? p->services[id] : NULL;
	uint64_t now_ns = clock_realtime_ns();

	if (!s || s->removed)
		return;
	while (s->n_listeners)
		listener_remove(p, s, s->listeners[s->n_listeners - 1]);
	service_clear_table(p, s);
	for (size_t i = s->n_ids; i-- > 0;) {
		struct sy_backend *b = &p->maps->backends[s->ids[i]];

		STORE(b->flags, (__u8)(b->flags & ~SY_B_MEMBER));
		backend_set_gone(p, s->ids[i], SY_WORD_STATE(b->word) == SY_EVICTED ? SY_EVICTED : SY_DRAINING, now_ns);
	}
	STORE(p->maps->services[id].used, 0);
	s->removed = true;
	service_finish(p, s);
}

void publish_remove_unclaimed(struct publish *p)
{
	for (uint32_t id = 0; id < SY_MAX_SERVICES; id++)
		if (p->services[id] && !p->services[id]->claimed)
			publish_service_remove(p, id);
}
