// SPDX-License-Identifier: MIT
/* See lines.h. Written from the protocol's description, not from the programs. */
#include "lines.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOOKS 8
#define LOOK_GAP_US 1000

static bool is_forward(enum sy_line_state s)
{
	return s >= SY_SYN && s <= SY_CLOSING;
}

static bool is_return(enum sy_line_state s)
{
	return s == SY_USED || s == SY_USED_ESTABLISHED;
}

static uint64_t id_of(const struct sy_line *l)
{
	return l->word >> SY_ID_SHIFT;
}

static bool same_key(const struct sy_line *a, const struct sy_line *b)
{
	return a->saddr == b->saddr && a->daddr == b->daddr && a->sport == b->sport && a->dport == b->dport &&
	       a->proto == b->proto;
}

/* The key of one half is the other's rewrite turned round. */
static bool halves_agree(const struct sy_line *f, const struct sy_line *r)
{
	return r->saddr == f->new_daddr && r->daddr == f->new_saddr && r->sport == f->new_dport && r->dport == f->new_sport &&
	       f->saddr == r->new_daddr && f->daddr == r->new_saddr && f->sport == r->new_dport && f->dport == r->new_sport &&
	       f->backend == r->backend && f->backend_gen == r->backend_gen && f->proto == r->proto;
}

static bool is_active(const struct sy_line *l)
{
	enum sy_line_state s = rig_state(l->word);

	return s >= SY_ESTABLISHED && s <= SY_BACKEND_CLOSED && !(l->word & SY_F_RESET);
}

static void check_line(const struct sy_line *all, uint32_t n, uint32_t i, struct lines_report *ret)
{
	const struct sy_line *l = &all[i], *mate = l->mate < n ? &all[l->mate] : NULL;
	enum sy_line_state s = rig_state(l->word);

	if (s >= SY_N_LINE_STATES || (s == SY_FREE && l->word) || (is_return(s) && l->word & (SY_F_RESET | SY_F_REAPING))) {
		ret->other_bits++;
		return;
	}
	ret->n[s]++;
	if (s == SY_BUSY || s == SY_NEW)
		ret->stuck++;
	if (is_forward(s)) {
		ret->n_reset += !!(l->word & SY_F_RESET);
		if (!mate || id_of(mate) != id_of(l) || !is_return(rig_state(mate->word)) || mate->mate != i)
			ret->half++;
		else if (!halves_agree(l, mate))
			ret->mismatched++;
	}
	if (is_return(s) && (!mate || id_of(mate) != id_of(l) || !is_forward(rig_state(mate->word))))
		ret->half++;
}

static int by_key(const void *a, const void *b)
{
	const struct sy_line *x = *(const struct sy_line *const *)a, *y = *(const struct sy_line *const *)b;

	return memcmp(&x->saddr, &y->saddr, offsetof(struct sy_line, new_saddr) - offsetof(struct sy_line, saddr));
}

static uint32_t count_twice(const struct sy_line *all, uint32_t n)
{
	const struct sy_line **used = calloc(n + 1, sizeof(*used));
	uint32_t n_used = 0, twice = 0;

	for (uint32_t i = 0; used && i < n; i++)
		if (rig_state(all[i].word) > SY_BUSY)
			used[n_used++] = &all[i];
	if (used)
		qsort(used, n_used, sizeof(*used), by_key);
	for (uint32_t i = 1; used && i < n_used; i++)
		twice += same_key(used[i - 1], used[i]);
	free(used);
	return twice;
}

static uint32_t count_miscounted(const struct rig *r, const struct sy_line *all, uint32_t n)
{
	uint64_t *active = calloc(SY_MAX_BACKENDS, sizeof(*active));
	uint32_t wrong = 0;

	for (uint32_t i = 0; active && i < n; i++)
		if (is_active(&all[i]))
			active[all[i].backend % SY_MAX_BACKENDS]++;
	for (uint32_t b = 0; active && b < SY_MAX_BACKENDS; b++)
		wrong += r->maps.loads[b].active != active[b];
	free(active);
	return wrong;
}

uint32_t lines_check(const struct rig *r, struct lines_report *ret)
{
	uint32_t n = r->maps.config->n_groups * SY_LINES_PER_GROUP;
	struct sy_line *all = malloc(n * sizeof(*all));

	if (!all)
		abort();
	memcpy(all, r->maps.groups, n * sizeof(*all));
	*ret = (struct lines_report){ 0 };
	ret->miscounted = count_miscounted(r, all, n);
	for (uint32_t i = 0; i < n; i++)
		check_line(all, n, i, ret);
	ret->twice = count_twice(all, n);
	free(all);
	return ret->stuck + ret->half + ret->mismatched + ret->twice + ret->miscounted + ret->other_bits;
}

uint32_t lines_check_settled(const struct rig *r, struct lines_report *ret)
{
	uint32_t faults = lines_check(r, ret);

	for (int i = 0; i < LOOKS && faults; i++) {
		usleep(LOOK_GAP_US);
		faults = lines_check(r, ret);
	}
	return faults;
}

const char *lines_text(const struct lines_report *p)
{
	static char buf[512];

	snprintf(buf, sizeof(buf),
		 "syn %u established %u client-closed %u backend-closed %u closing %u reset %u | used %u used-established %u "
		 "timewait %u | faults: stuck %u half %u mismatched %u twice %u miscounted %u other bits %u",
		 p->n[SY_SYN], p->n[SY_ESTABLISHED], p->n[SY_CLIENT_CLOSED], p->n[SY_BACKEND_CLOSED], p->n[SY_CLOSING],
		 p->n_reset, p->n[SY_USED], p->n[SY_USED_ESTABLISHED], p->n[SY_TIMEWAIT], p->stuck, p->half, p->mismatched,
		 p->twice, p->miscounted, p->other_bits);
	return buf;
}
