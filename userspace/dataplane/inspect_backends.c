/* SPDX-License-Identifier: MIT */
/* Backends and tables for people. */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "../base/addr.h"
#include "../base/cleanup.h"
#include "../base/json.h"
#include "inspect_private.h"
#include "publish_private.h"

const char *inspect_reason_name(unsigned reason)
{
	static const char *const names[] = {
#define X(NAME, name, text) name,
		SY_REASONS(X)
#undef X
	};

	return reason < SY_N_REASONS ? names[reason] : "unknown";
}

const char *inspect_state_name(unsigned state)
{
	static const char *const names[] = {
#define X(NAME, name, text) [SY_##NAME] = (name),
		SY_STATES(X)
#undef X
	};

	return state < SY_N_STATES ? names[state] : "unknown";
}

bool inspect_backend_in_use(const struct inspect *i, uint32_t id)
{
	return backend_in_use(&i->maps->backends[id]);
}

void inspect_backend_info(const struct inspect *i, uint32_t id, struct sy_backend_info *ret)
{
	const struct sy_backend *b = &i->maps->backends[id];
	char text[INET6_ADDRSTRLEN] = "";

	memset(ret, 0, sizeof(*ret));
	if (bpf_map_lookup_elem(i->maps->fd_backend_info, &id, ret) == 0) {
		ret->address[sizeof(ret->address) - 1] = 0;
		ret->cluster[sizeof(ret->cluster) - 1] = 0;
		return;
	}
	(void)inet_ntop(b->family, b->family == AF_INET6 ? (const void *)b->addr : &b->addr[3], text, sizeof(text));
	(void)snprintf(ret->address, sizeof(ret->address), b->family == AF_INET6 ? "[%s]:%u" : "%s:%u", text,
		       ntohs(b->port));
}

static double weight_of(const struct sy_backend *b)
{
	double weight;

	memcpy(&weight, &b->weight, sizeof(weight));
	return weight;
}

void inspect_table_done(struct inspect_table *t)
{
	free(t->bounds);
	free(t->ids);
	free(t->weights);
	memset(t, 0, sizeof(*t));
}

static int copy_table(const struct inspect *i, uint64_t word, struct inspect_table *t)
{
	const struct sy_member *region =
		(const void *)&i->maps->tables->w[(size_t)SY_TABLE_OFF(word) * SY_REGION_ALIGN / 4];

	t->n = SY_TABLE_LEN(word);
	if (t->n > SY_MAX_MEMBERS || (size_t)SY_TABLE_OFF(word) * SY_REGION_ALIGN + t->n * sizeof(*region) > SY_TABLE_BYTES)
		return -EPROTO;
	t->bounds = calloc(t->n + 1, sizeof(*t->bounds));
	t->ids = calloc(t->n + 1, sizeof(*t->ids));
	t->weights = calloc(t->n + 1, sizeof(*t->weights));
	if (!t->bounds || !t->ids || !t->weights)
		return -ENOMEM;
	for (size_t m = 0; m < t->n; m++) {
		t->bounds[m] = region[m].bound;
		t->ids[m] = region[m].backend;
	}
	return 0;
}

int inspect_read_table(const struct inspect *i, uint32_t service, struct inspect_table *ret)
{
	const __u64 *word = &i->maps->services[service].table;

	for (unsigned tries = 0; tries < 64; tries++) {
		_cleanup_(inspect_table_done) struct inspect_table t = {0};
		uint64_t before = __atomic_load_n(word, __ATOMIC_ACQUIRE);
		int err = copy_table(i, before, &t);

		if (err == -ENOMEM)
			return err;
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (__atomic_load_n(word, __ATOMIC_ACQUIRE) != before)
			continue;
		if (err)
			return err;
		for (size_t k = 0; k < t.n; k++) {
			t.weights[k] = t.ids[k] < SY_MAX_BACKENDS ? weight_of(&i->maps->backends[t.ids[k]]) : 0;
			t.total += t.weights[k];
		}
		*ret = t;
		memset(&t, 0, sizeof(t));
		return 0;
	}
	return -EAGAIN;
}

/* ---- backends ---- */

struct row {
	uint32_t id;
	double share;
};

/* By service, then as tables are: IPv4, IPv6, bytes, port; bad addresses last. */
static int compare_rows(const void *a, const void *b, void *ctx)
{
	const struct sy_backend *all = ctx, *x = &all[((const struct row *)a)->id],
				*y = &all[((const struct row *)b)->id];
	int c;

	if (x->service != y->service)
		return x->service < y->service ? -1 : 1;
	if (x->family != y->family)
		return !x->family || (y->family && x->family > y->family) ? 1 : -1;
	c = memcmp(x->addr, y->addr, sizeof(x->addr));
	if (!c)
		c = memcmp(&x->port, &y->port, sizeof(x->port));
	return c ? c : ((const struct row *)a)->id < ((const struct row *)b)->id ? -1 : 1;
}

static bool shown(struct inspect *i, uint32_t id, int64_t service)
{
	const struct sy_backend *b = &i->maps->backends[id];

	return backend_in_use(b) && (service < 0 || b->service == service) && b->service < SY_MAX_SERVICES &&
	       i->names[b->service];
}

static struct row *rows_list(struct inspect *i, int64_t service, size_t *ret_n)
{
	struct row *rows = NULL;
	size_t n = 0;

	for (uint32_t id = 1; id < SY_MAX_BACKENDS; id++)
		n += shown(i, id, service);
	rows = calloc(n + 1, sizeof(*rows));
	*ret_n = 0;
	for (uint32_t id = 1; rows && id < SY_MAX_BACKENDS && *ret_n < n; id++)
		if (shown(i, id, service))
			rows[(*ret_n)++].id = id;
	if (rows)
		qsort_r(rows, *ret_n, sizeof(*rows), compare_rows, i->maps->backends);
	return rows;
}

/* Shares of one service's rows, from the table in force. */
static void fill_shares(struct inspect *i, uint32_t service, double *by_id)
{
	_cleanup_(inspect_table_done) struct inspect_table t = {0};

	if (inspect_read_table(i, service, &t))
		return;
	for (size_t k = 0; k < t.n; k++)
		if (t.ids[k] < SY_MAX_BACKENDS && t.total > 0)
			by_id[t.ids[k]] = (double)(t.weights[k] / t.total);
}

static void add_backend(struct inspect *i, cJSON *out, uint32_t id, double share)
{
	const struct sy_backend *b = &i->maps->backends[id];
	uint64_t word = __atomic_load_n(&b->word, __ATOMIC_ACQUIRE);
	struct inspect_sums sums = {0};
	struct sy_backend_info info;
	cJSON *o = cJSON_CreateObject();

	inspect_backend_info(i, id, &info);
	inspect_sum_backend(i, id, &sums);
	(void)cJSON_AddStringToObject(o, "service", i->names[b->service]);
	(void)cJSON_AddStringToObject(o, "address", info.address);
	(void)json_add_double(o, "weight", weight_of(b));
	(void)json_add_double(o, "share", share);
	(void)cJSON_AddStringToObject(o, "state", inspect_state_name(SY_WORD_STATE(word)));
	(void)cJSON_AddStringToObject(o, "reason", inspect_reason_name(SY_WORD_REASON(word)));
	(void)cJSON_AddStringToObject(o, "cluster", info.cluster);
	(void)json_add_u64(o, "connections", sums.connections);
	(void)json_add_u64(o, "active", sums.active);
	(void)json_add_u64(o, "packets", sums.packets);
	(void)json_add_u64(o, "bytes", sums.bytes);
	(void)json_add_u64(o, "refused", i->maps->loads[id].refused);
	(void)cJSON_AddItemToArray(out, o);
}

cJSON *inspect_backends(struct inspect *i, int64_t service)
{
	_cleanup_free_ struct row *rows = NULL;
	_cleanup_free_ double *shares = calloc(SY_MAX_BACKENDS, sizeof(*shares));
	cJSON *out = NULL;
	size_t n = 0;

	if (!shares || inspect_names(i))
		return NULL;
	rows = rows_list(i, service, &n);
	out = rows ? cJSON_CreateArray() : NULL;
	for (size_t k = 0; out && k < n; k++) {
		uint32_t of = i->maps->backends[rows[k].id].service;

		if (!k || of != i->maps->backends[rows[k - 1].id].service)
			fill_shares(i, of, shares);
		add_backend(i, out, rows[k].id, shares[rows[k].id]);
	}
	return out;
}

/* ---- table ---- */

cJSON *inspect_table(struct inspect *i, uint32_t service)
{
	_cleanup_(inspect_table_done) struct inspect_table t = {0};
	long double prefix = 0;
	cJSON *out, *slots;

	if (inspect_names(i) || service >= SY_MAX_SERVICES || !i->names[service]) {
		errno = ENOENT;
		return NULL;
	}
	if (inspect_read_table(i, service, &t))
		return NULL;
	out = cJSON_CreateObject();
	(void)cJSON_AddStringToObject(out, "service", i->names[service]);
	(void)json_add_u64(out, "generation", i->maps->services[service].generation);
	slots = cJSON_AddArrayToObject(out, "slots");
	for (size_t k = 0; k < t.n; k++) {
		struct sy_backend_info info = {0};
		cJSON *o = cJSON_CreateObject();

		prefix += t.weights[k];
		inspect_backend_info(i, t.ids[k], &info);
		(void)cJSON_AddStringToObject(o, "address", info.address);
		(void)json_add_double(o, "weight", t.weights[k]);
		(void)json_add_double(o, "cumulative", k + 1 == t.n || t.total <= 0 ? 1.0 : (double)(prefix / t.total));
		(void)json_add_u64(o, "bound", t.bounds[k]);
		(void)json_add_double(o, "share", t.total > 0 ? (double)(t.weights[k] / t.total) : 0);
		(void)cJSON_AddItemToArray(slots, o);
	}
	return out;
}
