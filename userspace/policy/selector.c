// SPDX-License-Identifier: MIT
/* What an entry of the registry's list becomes: the first row that holds. "-": whatever.
 *
 *   address  loser of    operator  enabled  healthy  weight   family  cluster        state              reason
 *            duplicates                                       served
 *   bad      -           -         -        -        -        -       -              evicted            bad-address
 *   good     yes         -         -        -        -        -       -              evicted            duplicate
 *   good     no          evict     -        -        -        -       -              evicted            operator
 *   good     no          drain     -        -        -        -       -              draining           operator
 *   good     no          none      no       -        -        -       -              on_evict.registry  disabled
 *   good     no          none      yes      no       -        -       -              on_evict.registry  unhealthy
 *   good     no          none      yes      yes      bad      -       -              draining           bad-weight
 *   good     no          none      yes      yes      0        -       -              draining           weight-0
 *   good     no          none      yes      yes      above 0  no      -              draining           other-family
 *   good     no          none      yes      yes      above 0  yes     not preferred  draining           other-cluster
 *   good     no          none      yes      yes      above 0  yes     preferred      up                 -
 *
 * on_evict.registry: drain is draining, reset is evicted. "Preferred" is everybody when no cluster is preferred, or
 * when nobody of the preferred one reaches the last two rows and cluster_fallback_all is set.
 *
 * Why this order. Evicted at an address that nothing can be sent to, and for a duplicate's loser, says that no packet
 * is ever sent for that entry; the backend at that address and port is the winner's. The operator's word stands before
 * the registry's, so that it is seen, and found again by the next agent, for as long as it holds. Marks that may evict
 * stand before those that only drain, so that the worse state wins.
 *
 * Duplicates: entries with one address and port stand together, best first, and the first one wins:
 *   would be up > would be up but for its cluster > not; then the greater weight; then the greater instanceId; then the
 * greater cluster name, so that the winner never depends on the registry's order.
 *
 * Sorting. The registry's order may be any. An IPv4 address and port fit one number, and numbers are sorted by those of
 * their bytes in which they differ; only entries of the same number (duplicates, bad addresses, IPv6 addresses with a
 * long common prefix) are compared as a whole. */
#include "selector.h"
#include "../base/cleanup.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define KEY_V6	(1ULL << 62)
#define KEY_BAD UINT64_MAX

enum rank { RANK_OUT, RANK_OTHER_CLUSTER, RANK_PREFERRED };

/* A candidate while the list is being sorted. */
struct entry {
	uint64_t key; /* never descending in the order wanted */
	const struct instance *instance;
};

static bool is_bad_address(const struct selector_rules *rules, const struct instance *i)
{
	return i->reject == SY_R_BAD_ADDRESS ||
	       (rules->is_listener && rules->is_listener(rules->is_listener_ctx, &i->endpoint));
}

static double weight_of(const struct instance *i)
{
	return i->reject ? 0 : i->weight;
}

static bool is_family_served(const struct selector_rules *rules, const struct instance *i)
{
	return i->endpoint.addr.family == AF_INET ? rules->family_v4 : rules->family_v6;
}

static bool is_preferred(const struct selector_rules *rules, const struct instance *i)
{
	return !rules->cluster || strcmp(rules->cluster, i->cluster) == 0;
}

static enum rank rank_of(const struct selector_rules *rules, const struct instance *i)
{
	if (i->reject || !i->enabled || !i->healthy || !(i->weight > 0) || !is_family_served(rules, i))
		return RANK_OUT;
	return is_preferred(rules, i) ? RANK_PREFERRED : RANK_OTHER_CLUSTER;
}

/* Entries of one address and port, the better one first. */
static int compare_merit(const struct selector_rules *rules, const struct instance *a, const struct instance *b)
{
	int r = (int)rank_of(rules, b) - (int)rank_of(rules, a);

	if (r)
		return r;
	if (weight_of(a) != weight_of(b))
		return weight_of(a) > weight_of(b) ? -1 : 1;
	r = strcmp(b->instance_id, a->instance_id);
	return r ? r : strcmp(b->cluster, a->cluster);
}

/* Entries of one key. */
static int compare_entries(const void *pa, const void *pb, void *rules)
{
	const struct entry *a = pa, *b = pb;
	int r;

	if (a->key == KEY_BAD)
		return strcmp(a->instance->address_text, b->instance->address_text);
	r = endpoint_compare(&a->instance->endpoint, &b->instance->endpoint);
	return r ? r : compare_merit(rules, a->instance, b->instance);
}

/* IPv4: address and port; IPv6: a bit above those and as much of the address as there is room for. */
static uint64_t key_of(const struct selector_rules *rules, const struct instance *i)
{
	const struct endpoint *e = &i->endpoint;
	uint64_t high = 0;

	if (is_bad_address(rules, i))
		return KEY_BAD;
	if (e->addr.family == AF_INET)
		return (uint64_t)ntohl(e->addr.v4.s_addr) << 16 | e->port;
	for (size_t b = 0; b < sizeof(high); b++)
		high = high << 8 | e->addr.v6.s6_addr[b];
	return KEY_V6 | high >> 2;
}

/* One pass over the byte at shift, which keeps the order of equals. */
static void sort_by_byte(const struct entry *from, struct entry *to, size_t n, unsigned shift)
{
	size_t at[256] = {0}, sum = 0;

	for (size_t i = 0; i < n; i++)
		at[from[i].key >> shift & 0xff]++;
	for (size_t b = 0; b < 256; b++) {
		size_t count = at[b];

		at[b] = sum;
		sum += count;
	}
	for (size_t i = 0; i < n; i++)
		to[at[from[i].key >> shift & 0xff]++] = from[i];
}

/* By key, in entries or in spare: where is the return value. */
static struct entry *sort_by_key(struct entry *entries, struct entry *spare, size_t n)
{
	uint64_t differ = 0;
	bool sorted = true;

	for (size_t i = 1; i < n; i++) {
		differ |= entries[i].key ^ entries[0].key;
		sorted &= entries[i].key >= entries[i - 1].key;
	}
	for (unsigned shift = 0; shift < 64 && !sorted; shift += 8) {
		struct entry *other = spare;

		if (!(differ >> shift & 0xff))
			continue;
		sort_by_byte(entries, spare, n, shift);
		spare = entries;
		entries = other;
	}
	return entries;
}

static void sort_equals(const struct selector_rules *rules, struct entry *entries, size_t n)
{
	for (size_t i = 0, j; i < n; i = j) {
		for (j = i + 1; j < n && entries[j].key == entries[i].key;)
			j++;
		if (j - i > 1)
			qsort_r(&entries[i], j - i, sizeof(*entries), compare_entries, (void *)(uintptr_t)rules);
	}
}

static void mark(struct candidate *c, enum sy_state state, enum sy_reason reason)
{
	c->state = state;
	c->reason = reason;
}

/* The rows of the table down to the cluster's, for an entry that is no duplicate's loser. */
static void judge(const struct selector_rules *rules, struct candidate *c)
{
	const struct instance *i = c->instance;
	enum sy_state registry_state = rules->registry_reset ? SY_EVICTED : SY_DRAINING;
	enum override word = OVERRIDE_NONE;

	if (rules->override)
		word = rules->override(rules->override_ctx, &i->endpoint);
	if (word != OVERRIDE_NONE)
		mark(c, word == OVERRIDE_EVICT ? SY_EVICTED : SY_DRAINING, SY_R_OPERATOR);
	else if (!i->enabled)
		mark(c, registry_state, SY_R_DISABLED);
	else if (!i->healthy)
		mark(c, registry_state, SY_R_UNHEALTHY);
	else if (i->reject)
		mark(c, SY_DRAINING, i->reject);
	else if (!(i->weight > 0))
		mark(c, SY_DRAINING, SY_R_WEIGHT_0);
	else if (!is_family_served(rules, i))
		mark(c, SY_DRAINING, SY_R_OTHER_FAMILY);
	else
		mark(c, SY_UP, SY_R_NONE);
	c->eligible = c->state == SY_UP;
}

static bool is_duplicate(const struct entry *first, const struct entry *e)
{
	return e > first && e[-1].key == e->key &&
	       endpoint_compare(&e[-1].instance->endpoint, &e->instance->endpoint) == 0;
}

static void judge_all(const struct selector_rules *rules, const struct entry *entries, struct selection *s)
{
	for (size_t i = 0; i < s->n_candidates; i++) {
		struct candidate *c = &s->candidates[i];

		c->instance = entries[i].instance;
		c->weight = weight_of(c->instance);
		s->n_bad += c->instance->reject != SY_R_NONE;
		if (entries[i].key == KEY_BAD) {
			mark(c, SY_EVICTED, SY_R_BAD_ADDRESS);
		} else if (is_duplicate(entries, &entries[i])) {
			mark(c, SY_EVICTED, SY_R_DUPLICATE);
			s->n_duplicates++;
		} else {
			judge(rules, c);
			s->n_eligible += c->eligible;
		}
	}
}

/* The last two rows: leave the preferred cluster alone in the table, if any of it is left. */
static void prefer_cluster(const struct selector_rules *rules, struct selection *s)
{
	size_t n_preferred = 0;

	for (size_t i = 0; i < s->n_candidates; i++)
		n_preferred += s->candidates[i].eligible && is_preferred(rules, s->candidates[i].instance);
	if (n_preferred == 0 && rules->cluster_fallback_all) {
		s->cluster_fell_back = s->n_eligible > 0;
		return;
	}
	for (size_t i = 0; i < s->n_candidates; i++) {
		struct candidate *c = &s->candidates[i];

		if (!c->eligible || is_preferred(rules, c->instance))
			continue;
		mark(c, SY_DRAINING, SY_R_OTHER_CLUSTER);
		c->eligible = false;
	}
	s->n_eligible = n_preferred;
}

int selector_run(const struct snapshot *s, const struct selector_rules *rules, struct selection *ret)
{
	struct selection sel = {.n_candidates = s->n_instances};
	size_t n = s->n_instances;
	_cleanup_free_ struct entry *room = calloc(n + 1, 2 * sizeof(*room));
	struct entry *entries;

	sel.candidates = calloc(n + 1, sizeof(*sel.candidates));
	if (!room || !sel.candidates) {
		free(sel.candidates);
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++)
		room[i] = (struct entry){.key = key_of(rules, &s->instances[i]), .instance = &s->instances[i]};
	entries = sort_by_key(room, room + n, n);
	sort_equals(rules, entries, n);
	judge_all(rules, entries, &sel);
	prefer_cluster(rules, &sel);
	*ret = sel;
	return 0;
}

void selection_done(struct selection *s)
{
	free(s->candidates);
	*s = (struct selection){0};
}
