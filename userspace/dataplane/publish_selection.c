/* SPDX-License-Identifier: MIT */
/* From a selection to the maps, in an order that a packet can meet at any point:
 *
 *   1. what gets worse: one store a backend, before anything that takes time     (nobody new goes there from here on)
 *   2. new backends: records complete, then their word                           (nobody goes there yet)
 *   3. what gets better or changes weight
 *   4. the table: a fresh region written whole, then one store of the table word (the switch)
 *   5. figures and texts for people
 *
 * Every step compares first, so that an unchanged selection stores nothing. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "../base/clock.h"
#include "../base/cleanup.h"
#include "../policy/table.h"
#include "publish_private.h"
#include "publish_text.h"

#define STORE(x, v) __atomic_store_n(&(x), (v), __ATOMIC_RELEASE)

/* One selection under way: what belongs to each candidate, and what has been found out so far. */
struct round {
	struct publish *p;
	struct service_local *s;
	const struct selection *sel;
	struct id_key *keys; /* borrowed, by candidate */
	uint32_t *ids;	     /* borrowed, by candidate; 0: no id left for it */
	enum sy_state gone_state;
	uint64_t now_ns;
	struct publish_stats stats;
	unsigned n_texts;
	bool table_changes;
	bool written;
	bool out_of_order; /* the service's ids do not come in the order of the selection */
	int err;
};

/* Candidates come sorted, so entries of one address, the winner first, or of one bad text, are neighbours: counted up
 * they have keys of their own. */
static void candidate_key(struct round *r, size_t i)
{
	const struct candidate *c = &r->sel->candidates[i];
	struct id_key *key = &r->keys[i];
	bool same;

	if (c->reason == SY_R_BAD_ADDRESS) {
		memset(key, 0, sizeof(*key));
		key->service = r->s->id;
		key->text = publish_text_bad_hash(c->instance->address_text);
		same = i && r->keys[i - 1].text == key->text;
	} else {
		id_key_set(key, r->s->id, &c->instance->endpoint);
		same = i && c->reason == SY_R_DUPLICATE;
	}
	key->ordinal = same ? r->keys[i - 1].ordinal + 1 : 0;
}

/* The service's ids are kept in the order of its last selection, so that mostly the next one is the one looked for. */
static uint32_t candidate_find(struct round *r, size_t i, uint32_t before)
{
	size_t next = before ? r->p->local[before].place + 1 : 0;

	if (next < r->s->n_ids && keyed_ids_has(&r->p->backends, &r->keys[i], r->s->ids[next]))
		return r->s->ids[next];
	r->out_of_order = true;
	return keyed_ids_find(&r->p->backends, &r->keys[i]);
}

static void find_ids(struct round *r)
{
	uint32_t before = 0;

	r->p->round++;
	for (size_t i = 0; i < r->sel->n_candidates; i++) {
		candidate_key(r, i);
		r->ids[i] = candidate_find(r, i, before);
		if (!r->ids[i])
			continue;
		r->p->local[r->ids[i]].round = r->p->round;
		before = r->ids[i];
	}
}

/* What a candidate's word should say, given what it says now. */
static enum sy_state wanted_state(const struct round *r, const struct candidate *c, uint64_t word)
{
	/* a drain whose deadline has passed stays evicted; with another reason it begins anew */
	if (c->state == SY_DRAINING && SY_WORD_STATE(word) == SY_EVICTED && SY_WORD_REASON(word) == c->reason &&
	    r->s->drain_deadline_ns)
		return SY_EVICTED;
	return c->state;
}

static void set_word(struct round *r, uint32_t id, enum sy_state state, enum sy_reason reason)
{
	uint64_t old = r->p->maps->backends[id].word;

	if (SY_WORD_STATE(old) == state && SY_WORD_REASON(old) == reason)
		return;
	backend_set_word(r->p, id, state, reason, r->now_ns);
	r->written = true;
	if (SY_WORD_STATE(old) == SY_UP && state != SY_UP)
		r->stats.n_evicted++;
	else
		r->stats.n_changed++;
}

static void apply_worse(struct round *r)
{
	struct publish *p = r->p;

	for (size_t i = 0; i < r->sel->n_candidates; i++) {
		const struct candidate *c = &r->sel->candidates[i];

		if (r->ids[i] && c->state != SY_UP)
			set_word(r, r->ids[i], wanted_state(r, c, p->maps->backends[r->ids[i]].word), c->reason);
	}
	for (size_t i = 0; i < r->s->n_ids; i++) {
		uint32_t id = r->s->ids[i];
		const struct sy_backend *b = &p->maps->backends[id];
		enum sy_state state = r->gone_state;

		if (p->local[id].round == p->round)
			continue;
		if (SY_WORD_STATE(b->word) == SY_EVICTED)
			state = SY_EVICTED;
		set_word(r, id, state, SY_R_GONE);
		if (!(b->flags & SY_B_LISTED))
			continue;
		backend_set_gone(p, id, state, r->now_ns);
		r->written = true;
		r->stats.n_gone++;
	}
}

/* Next hop and source addresses, before it can be picked. */
static bool has_path(struct round *r, uint32_t id)
{
	return !r->p->hooks.prepare || r->p->hooks.prepare(r->p->hooks.ctx, &r->p->maps->backends[id]) == 0;
}

static int make_backend(struct round *r, size_t i)
{
	const struct candidate *c = &r->sel->candidates[i];
	uint32_t id;
	int err = backend_make(r->p, r->s, &r->keys[i], c->weight, &id);

	if (err == -ENOSPC) {
		backend_reclaim(r->p, r->now_ns, true);
		err = backend_make(r->p, r->s, &r->keys[i], c->weight, &id);
	}
	if (err)
		return err;
	r->ids[i] = id;
	r->p->local[id].round = r->p->round;
	r->stats.n_new++;
	r->written = true;
	if (c->state == SY_UP && !has_path(r, id))
		backend_set_word(r->p, id, SY_DRAINING, SY_R_NO_PATH, r->now_ns);
	else
		backend_set_word(r->p, id, c->state, c->reason, r->now_ns);
	return 0;
}

static void apply_new(struct round *r)
{
	for (size_t i = 0; i < r->sel->n_candidates; i++) {
		int err = r->ids[i] ? 0 : make_backend(r, i);

		if (err)
			r->err = err;
	}
}

static bool is_member(const struct round *r, size_t i)
{
	const struct candidate *c = &r->sel->candidates[i];

	return r->ids[i] && c->eligible && SY_WORD_REASON(r->p->maps->backends[r->ids[i]].word) != SY_R_NO_PATH;
}

static void apply_better(struct round *r)
{
	for (size_t i = 0; i < r->sel->n_candidates; i++) {
		const struct candidate *c = &r->sel->candidates[i];
		struct sy_backend *b;
		uint64_t weight;
		bool member;

		if (!r->ids[i])
			continue;
		b = &r->p->maps->backends[r->ids[i]];
		memcpy(&weight, &c->weight, sizeof(weight));
		if (c->state == SY_UP && (SY_WORD_STATE(b->word) == SY_UP || has_path(r, r->ids[i])))
			set_word(r, r->ids[i], SY_UP, c->reason);
		else if (c->state == SY_UP)
			set_word(r, r->ids[i], SY_DRAINING, SY_R_NO_PATH);
		member = is_member(r, i);
		r->stats.n_no_path += c->eligible && !member;
		if (!(b->flags & SY_B_LISTED)) {
			STORE(b->flags, (__u8)(b->flags | SY_B_LISTED));
			backend_note_leaving(r->p, r->ids[i]);
			r->written = true;
		}
		if (member != !!(b->flags & SY_B_MEMBER) || (member && b->weight != weight))
			r->table_changes = true;
		if (b->weight != weight) {
			STORE(b->weight, weight);
			r->stats.n_changed++;
			r->written = true;
		}
	}
	for (size_t i = 0; i < r->s->n_ids && !r->table_changes; i++) {
		uint32_t id = r->s->ids[i];

		r->table_changes =
			r->p->local[id].round != r->p->round && (r->p->maps->backends[id].flags & SY_B_MEMBER);
	}
}

static int take_region(struct publish *p, size_t n, uint32_t *ret_off, uint32_t *ret_units)
{
	const struct timespec rest = {.tv_nsec = REGION_REST_NS};
	uint32_t units = (uint32_t)(table_region_bytes(n) / SY_REGION_ALIGN);
	int err = regions_take(&p->regions, units, clock_monotonic_ns(), ret_off);

	if (err == -EAGAIN) {
		(void)nanosleep(&rest, NULL);
		err = regions_take(&p->regions, units, clock_monotonic_ns(), ret_off);
	}
	*ret_units = units;
	return err == -EAGAIN ? -ENOSPC : err;
}

struct members {
	double *weights;	/* owned */
	uint32_t *bounds, *ids; /* owned */
	size_t n;
	double total;
};

static void members_done(struct members *m)
{
	free(m->weights);
	free(m->bounds);
	free(m->ids);
}

static int members_list(const struct round *r, struct members *m)
{
	size_t room = r->sel->n_candidates ? r->sel->n_candidates : 1;

	m->weights = calloc(room, sizeof(*m->weights));
	m->bounds = calloc(room, sizeof(*m->bounds));
	m->ids = calloc(room, sizeof(*m->ids));
	if (!m->weights || !m->bounds || !m->ids)
		return -ENOMEM;
	for (size_t i = 0; i < r->sel->n_candidates; i++) {
		if (!is_member(r, i))
			continue;
		m->ids[m->n] = r->ids[i];
		m->weights[m->n] = r->sel->candidates[i].weight;
		m->total += m->weights[m->n++];
	}
	if (m->n > SY_MAX_MEMBERS)
		return -ENOSPC;
	return 0;
}

/* The switch. On failure the old table stays, whose evicted members nobody picks. */
static int apply_table(struct round *r)
{
	_cleanup_(members_done) struct members m = {0};
	struct sy_service *record = &r->p->maps->services[r->s->id];
	uint32_t off = 0, units = 0, version = SY_TABLE_VER(record->table) + 1;
	int err = members_list(r, &m);

	if (err)
		return err;
	if (m.n) {
		err = table_bounds(m.weights, m.n, m.bounds);
		if (!err)
			err = take_region(r->p, m.n, &off, &units);
		if (err)
			return err;
		table_region_write(&r->p->maps->tables->w[(size_t)off * SY_REGION_ALIGN / 4], m.bounds, m.ids, m.n);
	}
	STORE(record->table, SY_TABLE_WORD(off, m.n, version));
	service_rest_region(r->p, r->s);
	r->s->off = off;
	r->s->n_units = units;
	STORE(record->generation, record->generation + 1);
	memcpy(&record->total_weight, &m.total, sizeof(m.total));
	r->stats.table_written = true;
	r->written = true;
	return 0;
}

/* Flags tell dumps who is in the table that is in force now. */
static void mark_members(struct round *r)
{
	for (size_t i = 0; i < r->s->n_ids; i++) {
		struct sy_backend *b = &r->p->maps->backends[r->s->ids[i]];

		if (r->p->local[r->s->ids[i]].round != r->p->round && (b->flags & SY_B_MEMBER))
			STORE(b->flags, (__u8)(b->flags & ~SY_B_MEMBER));
	}
	for (size_t i = 0; i < r->sel->n_candidates; i++) {
		struct sy_backend *b = &r->p->maps->backends[r->ids[i]];

		if (r->ids[i] && is_member(r, i) != !!(b->flags & SY_B_MEMBER))
			STORE(b->flags, (__u8)(b->flags ^ SY_B_MEMBER));
	}
}

/* Entries that never had a flow are not kept as gone. */
static void release_rejected(struct round *r)
{
	for (size_t i = r->s->n_ids; i-- > 0;) {
		uint32_t id = r->s->ids[i];
		const struct id_key *key = &r->p->backends.keys[id];

		if (r->p->local[id].round != r->p->round && (!key->family || key->ordinal) &&
		    !r->p->maps->loads[id].active)
			backend_release(r->p, id);
	}
}

/* The selection's in its order, then those that are gone. Only ever swaps two, so none is lost. */
static void order_ids(struct round *r)
{
	struct backend_local *local = r->p->local;
	uint32_t *ids = r->s->ids, n = 0;

	for (size_t i = 0; i < r->sel->n_candidates; i++) {
		uint32_t id = r->ids[i], from = local[id].place;

		if (!id || from < n)
			continue;
		ids[from] = ids[n];
		local[ids[from]].place = from;
		ids[n] = id;
		local[id].place = n++;
	}
}

static void note_figures(struct round *r, enum sy_source source, uint64_t received_ns)
{
	struct sy_service *record = &r->p->maps->services[r->s->id];
	uint32_t n_listed = (uint32_t)r->sel->n_candidates;

	if (r->written) {
		r->stats.apply_ns = clock_monotonic_ns() - received_ns;
		STORE(record->apply_ns, r->stats.apply_ns);
	}
	if (record->n_backends != n_listed)
		STORE(record->n_backends, n_listed);
	if (record->source != source)
		STORE(record->source, source);
	else if (!r->written)
		return;
	STORE(record->since_ns, r->now_ns);
}

static int apply(struct round *r, enum sy_source source, uint64_t received_ns)
{
	find_ids(r);
	apply_worse(r);
	apply_new(r);
	apply_better(r);
	if (r->table_changes || r->s->dirty) {
		int err = apply_table(r);

		/* the next selection tries again, even when it is the same */
		r->s->dirty = err;
		if (err)
			r->err = err;
		else
			mark_members(r);
	}
	note_figures(r, source, received_ns);
	release_rejected(r);
	if (r->out_of_order)
		order_ids(r);
	return publish_text_write(r->p, r->sel, r->ids);
}

int publish_selection(struct publish *p, uint32_t service, const struct selection *sel, enum sy_state gone_state,
		      enum sy_source source, uint64_t received_ns, uint64_t now_ns, struct publish_stats *ret)
{
	_cleanup_free_ uint32_t *ids = calloc(sel->n_candidates + 1, sizeof(*ids));
	_cleanup_free_ struct id_key *keys = calloc(sel->n_candidates + 1, sizeof(*keys));
	struct round r = {.p = p, .sel = sel, .keys = keys, .ids = ids, .gone_state = gone_state, .now_ns = now_ns};
	int err;

	if (!ids || !keys)
		return -ENOMEM;
	if (service >= SY_MAX_SERVICES || !p->services[service] || p->services[service]->removed)
		return -ENOENT;
	r.s = p->services[service];
	err = apply(&r, source, received_ns ? received_ns : clock_monotonic_ns());
	*ret = r.stats;
	return r.err ? r.err : err;
}
