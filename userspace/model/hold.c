// SPDX-License-Identifier: MIT
/*  instances            hold_ns
 *  applied  ██████████████████████████░░░░░░░░  until_ns: what the registry says then is applied
 *  pushed   ██████████  ░  ░░░  ░            ▲
 *                       └ held: the clock starts here, and only here
 *
 * Below the line: none where there was one, or fewer than half of four or more; compared with what is applied, never
 * with what is held, so that a list that melts away in small steps while it is held does not slip through. */
#include "hold.h"

void hold_init(struct hold *h, uint64_t hold_ns)
{
	*h = (struct hold){.hold_ns = hold_ns};
}

void hold_done(struct hold *h)
{
	snapshot_free(h->applied);
	snapshot_free(h->held);
	hold_tidy(h);
	h->applied = NULL;
	h->held = NULL;
	h->until_ns = 0;
}

void hold_tidy(struct hold *h)
{
	snapshot_free(h->replaced);
	h->replaced = NULL;
}

/* Entries without a usable address never were backends, so they neither count as there nor as disappeared. */
static size_t n_listed(const struct snapshot *s)
{
	size_t n = 0;

	for (size_t i = 0; s && i < s->n_instances; i++)
		n += s->instances[i].reject != SY_R_BAD_ADDRESS;
	return n;
}

static bool below_the_line(const struct snapshot *applied, const struct snapshot *s)
{
	size_t before = n_listed(applied), after = n_listed(s);

	return (before >= 1 && after == 0) || (before >= 4 && after * 2 < before);
}

static const struct snapshot *apply(struct hold *h, struct snapshot *s)
{
	if (h->held != s)
		snapshot_free(h->held);
	hold_tidy(h);
	h->replaced = h->applied;
	h->held = NULL;
	h->until_ns = 0;
	h->applied = s;
	return s;
}

static uint64_t end_of_hold(const struct hold *h, uint64_t now_ns)
{
	uint64_t until;

	return __builtin_add_overflow(now_ns, h->hold_ns, &until) ? UINT64_MAX : until;
}

const struct snapshot *hold_push(struct hold *h, struct snapshot *s, uint64_t now_ns)
{
	if (h->hold_ns == 0 || !below_the_line(h->applied, s))
		return apply(h, s);
	if (!h->held) {
		h->until_ns = end_of_hold(h, now_ns);
		h->n_holds++;
	} else if (now_ns >= h->until_ns) {
		return apply(h, s); /* due, though nobody has called hold_expire yet */
	}
	snapshot_free(h->held);
	h->held = s;
	return NULL;
}

const struct snapshot *hold_expire(struct hold *h, uint64_t now_ns)
{
	if (!h->held || now_ns < h->until_ns)
		return NULL;
	return apply(h, h->held);
}
