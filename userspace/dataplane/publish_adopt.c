/* SPDX-License-Identifier: MIT */
/* What an earlier agent left in the maps: ids by key, regions, listeners and texts are found again, so that the first
 * selection after a restart, being the same, writes nothing. What an agent that died half way left undone is finished.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "../base/cleanup.h"
#include "../policy/table.h"
#include "publish_private.h"
#include "publish_text.h"

#define STORE(x, v) __atomic_store_n(&(x), (v), __ATOMIC_RELEASE)

static int adopt_service(struct publish *p, uint32_t id, bool removed)
{
	struct sy_service_info info = {0};
	struct service_local *s;

	if (!ids_claim(&p->service_ids, id))
		return 0;
	(void)bpf_map_lookup_elem(p->maps->fd_service_info, &id, &info);
	s = service_local_new(p, id, &info);
	if (!s)
		return -ENOMEM;
	s->removed = removed;
	return 0;
}

static void adopt_key(struct publish *p, uint32_t id, struct id_key *ret)
{
	const struct sy_backend *b = &p->maps->backends[id];
	struct sy_backend_info info = {0};

	if (bpf_map_lookup_elem(p->maps->fd_backend_info, &id, &info) == 0)
		p->local[id].text = publish_text_hash(info.cluster);
	memset(ret, 0, sizeof(*ret));
	ret->service = b->service;
	if (!b->family) {
		ret->text = publish_text_bad_hash(info.address);
		return;
	}
	memcpy(ret->addr, b->addr, sizeof(ret->addr));
	ret->port = b->port;
	ret->family = b->family;
	ret->ordinal = SY_WORD_REASON(b->word) == SY_R_DUPLICATE;
}

static int adopt_backend(struct publish *p, uint32_t id)
{
	struct sy_backend *b = &p->maps->backends[id];
	struct id_key key;
	int err;

	if (b->service >= SY_MAX_SERVICES)
		b->service = 0;
	if (!p->services[b->service]) {
		err = adopt_service(p, b->service, true);
		if (err)
			return err;
	}
	adopt_key(p, id, &key);
	while (keyed_ids_find(&p->backends, &key))
		key.ordinal++;
	return backend_adopt(p, p->services[b->service], &key, id) ? 0 : -ENOMEM;
}

/* Does the table in force say what the records say? If not it is written anew by the next selection. */
static bool table_is_true(struct publish *p, const struct service_local *s, const struct sy_member *region, size_t n)
{
	_cleanup_free_ double *weights = calloc(n + 1, sizeof(*weights));
	_cleanup_free_ uint32_t *bounds = calloc(n + 1, sizeof(*bounds));
	size_t n_members = 0;

	if (!weights || !bounds)
		return false;
	for (size_t i = 0; i < s->n_ids; i++)
		n_members += !!(p->maps->backends[s->ids[i]].flags & SY_B_MEMBER);
	if (n_members != n)
		return false;
	for (size_t i = 0; i < n; i++) {
		const struct sy_backend *b =
			region[i].backend < SY_MAX_BACKENDS ? &p->maps->backends[region[i].backend] : NULL;

		if (!b || b->service != s->id || !(b->flags & SY_B_MEMBER))
			return false;
		memcpy(&weights[i], &b->weight, sizeof(weights[i]));
	}
	if (n && table_bounds(weights, n, bounds))
		return false;
	for (size_t i = 0; i < n; i++)
		if (bounds[i] != region[i].bound)
			return false;
	return true;
}

static void adopt_table(struct publish *p, struct service_local *s)
{
	uint64_t word = p->maps->services[s->id].table;
	uint32_t n = SY_TABLE_LEN(word), off = SY_TABLE_OFF(word), units;

	if (n > SY_MAX_MEMBERS)
		return;
	if (n) {
		units = (uint32_t)(table_region_bytes(n) / SY_REGION_ALIGN);
		if (!regions_claim(&p->regions, off, units))
			return;
		s->off = off;
		s->n_units = units;
	}
	/* never published: the first selection has to, even when it is empty */
	s->dirty = !p->maps->services[s->id].generation ||
		   !table_is_true(p, s, (const void *)&p->maps->tables->w[(size_t)off * SY_REGION_ALIGN / 4], n);
}

static int adopt_listener(struct publish *p, const struct sy_listener_key *key)
{
	struct sy_listener_key *grown;
	struct sy_listener value;
	struct service_local *s;

	if (bpf_map_lookup_elem(p->maps->fd_listeners4, key, &value))
		return 0;
	s = value.service < SY_MAX_SERVICES ? p->services[value.service] : NULL;
	if (!s || s->removed) {
		(void)bpf_map_delete_elem(p->maps->fd_listeners4, key);
		return 0;
	}
	grown = realloc(s->listeners, (s->n_listeners + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	s->listeners = grown;
	s->listeners[s->n_listeners++] = *key;
	return 0;
}

struct keys {
	void *bytes; /* owned */
	size_t n;
};

static void keys_done(struct keys *k)
{
	free(k->bytes);
}

/* All keys of a hash first, since walking it while deleting begins again. */
static int keys_list(int fd, size_t key_bytes, struct keys *ret)
{
	char key[16], *at = NULL;
	size_t room = 0;

	while (ret->n < SY_MAX_LISTENERS && bpf_map_get_next_key(fd, at, key) == 0) {
		if (ret->n == room) {
			void *more = realloc(ret->bytes, (room ? 2 * room : 64) * key_bytes);

			if (!more)
				return -ENOMEM;
			ret->bytes = more;
			room = room ? 2 * room : 64;
		}
		at = (char *)ret->bytes + ret->n++ * key_bytes;
		memcpy(at, key, key_bytes);
	}
	return 0;
}

static int compare_addresses(const void *a, const void *b)
{
	__be32 x = *(const __be32 *)a, y = *(const __be32 *)b;

	return (x > y) - (x < y);
}

static int gate_set(struct publish *p, __be32 addr, uint32_t n)
{
	uint32_t there = 0;

	if (bpf_map_lookup_elem(p->maps->fd_vips4, &addr, &there) == 0 && there == n)
		return 0;
	return bpf_map_update_elem(p->maps->fd_vips4, &addr, &n, BPF_ANY) ? -errno : 0;
}

/* The gate counts listeners by address; an agent that died between the two maps may have left it off by one. */
static int adopt_gate(struct publish *p, __be32 *wanted, size_t n)
{
	_cleanup_(keys_done) struct keys there = {0};
	int err = keys_list(p->maps->fd_vips4, sizeof(__be32), &there);

	qsort(wanted, n, sizeof(*wanted), compare_addresses);
	for (size_t i = 0, j; !err && i < n; i = j) {
		for (j = i + 1; j < n && wanted[j] == wanted[i];)
			j++;
		err = gate_set(p, wanted[i], (uint32_t)(j - i));
	}
	for (size_t i = 0; !err && i < there.n; i++) {
		const __be32 *addr = (__be32 *)there.bytes + i;

		if (!n || !bsearch(addr, wanted, n, sizeof(*wanted), compare_addresses))
			(void)bpf_map_delete_elem(p->maps->fd_vips4, addr);
	}
	return err;
}

static int adopt_listeners(struct publish *p)
{
	_cleanup_(keys_done) struct keys listeners = {0};
	_cleanup_free_ __be32 *wanted = NULL;
	size_t n = 0;
	int err = keys_list(p->maps->fd_listeners4, sizeof(struct sy_listener_key), &listeners);

	for (size_t i = 0; !err && i < listeners.n; i++)
		err = adopt_listener(p, &((struct sy_listener_key *)listeners.bytes)[i]);
	wanted = calloc(listeners.n + 1, sizeof(*wanted));
	if (err || !wanted)
		return err ? err : -ENOMEM;
	for (uint32_t id = 0; id < SY_MAX_SERVICES; id++)
		for (size_t i = 0; p->services[id] && i < p->services[id]->n_listeners; i++)
			wanted[n++] = p->services[id]->listeners[i].addr;
	return adopt_gate(p, wanted, n);
}

int publish_adopt(struct publish *p)
{
	int err = 0;

	for (uint32_t id = 0; !err && id < SY_MAX_SERVICES; id++)
		if (p->maps->services[id].used)
			err = adopt_service(p, id, false);
	for (uint32_t id = 1; !err && id < SY_MAX_BACKENDS; id++)
		if (backend_in_use(&p->maps->backends[id]))
			err = adopt_backend(p, id);
	for (uint32_t id = 0; !err && id < SY_MAX_SERVICES; id++)
		if (p->services[id] && !p->services[id]->removed)
			adopt_table(p, p->services[id]);
	return err ? err : adopt_listeners(p);
}
