// SPDX-License-Identifier: GPL-2.0
/* The sweeper: ends flows that have gone quiet, in the kernel, so with the agent dead too. A timer visits some lines each
 * millisecond.
 *
 *   first visit past the timeout : clear the return line's hint, set REAPING
 *   a later one, >= 1 s after    : both halves still quiet? BUSY, free return, free forward. Else clear REAPING.
 *
 * A packet that finds REAPING clears it. The second between the visits is longer than any packet is under way: a round over
 * the table, however small, takes a second at least. */
#include "flow.bpf.h"

#define SUSPECT_S 120 /* a suspect that has not been met again for so long is forgotten; longer than a round over any table */
#define ORPHAN_S 5 /* BUSY, NEW or a return line without a mate unchanged for that long: its claimer died */

struct sweep_pass {
	__u32 cursor;
	__u32 now;
	__u32 min_timeout;
	__u32 zero;
};

INLINE __u32 line_timeout(const struct sy_line *f, __u64 word)
{
	__u32 zero = 0, id = READ_ONCE(f->backend), kind, service;
	struct sy_config *cfg = bpf_map_lookup_elem(&config, &zero);
	struct sy_backend *b = bpf_map_lookup_elem(&backends, &id);
	struct sy_service *s;

	switch (FLOW_STATE(word)) {
	case SY_SYN:
		kind = SY_T_SYN;
		break;
	case SY_ESTABLISHED:
		kind = SY_T_ESTABLISHED;
		break;
	case SY_CLOSING:
		kind = SY_T_CLOSING;
		break;
	default:
		kind = SY_T_HALF_CLOSED;
	}
	if (word & SY_F_RESET)
		kind = SY_T_RESET;
	/* a flow of a backend whose id was given back has nothing to wait for */
	if (b && SY_WORD_GEN(READ_ONCE(b->word)) != READ_ONCE(f->backend_gen))
		kind = SY_T_RESET;
	service = b ? READ_ONCE(b->service) : 0;
	s = bpf_map_lookup_elem(&services, &service);
	if (s && s->used)
		return READ_ONCE(s->timeout[kind]);
	return cfg ? READ_ONCE(cfg->default_timeout[kind]) : ~0U;
}

INLINE int is_quiet(const struct sy_line *l, __u32 now, __u32 timeout)
{
	return (__s32)(now - READ_ONCE(l->seen)) > (__s32)timeout;
}

/* A forward line in a live state. */
INLINE void visit_flow(struct sy_line *f, __u32 index, __u64 word, const struct sweep_pass *p)
{
	struct sy_line *r = line_at(READ_ONCE(f->mate));
	__u32 timeout;
	__u64 rw;

	if (!r)
		return;
	if (!(word & SY_F_REAPING) && !is_quiet(f, p->now, p->min_timeout))
		return;
	timeout = line_timeout(f, word);
	if (!is_quiet(f, p->now, timeout) || !is_quiet(r, p->now, timeout)) {
		if ((word & SY_F_REAPING) && CAS(&f->word, word, word & ~SY_F_REAPING) == word)
			count(SY_C_UNREAPED);
		return;
	}
	if (word & SY_F_REAPING) {
		if (flow_take(index, word))
			count(SY_C_EXPIRED);
		return;
	}
	rw = READ_ONCE(r->word);
	if (!FLOW_ID(rw ^ word) && FLOW_STATE(rw) == SY_USED_ESTABLISHED)
		CAS(&r->word, rw, FLOW_ID(rw) | SY_USED);
	CAS(&f->word, word, word | SY_F_REAPING);
}

/* A return line whose flow is not there: its claimer is between two steps, or died there. */
INLINE void visit_return(struct sy_line *r, __u64 word, __u32 now)
{
	struct sy_line *f;
	__u64 fw;

	if (!is_quiet(r, now, ORPHAN_S * sy_const.hz))
		return;
	f = line_at(READ_ONCE(r->mate));
	if (f) {
		fw = READ_ONCE(f->word);
		if (!FLOW_ID(fw ^ word) && FLOW_STATE(fw) >= SY_BUSY)
			return;
	}
	if (CAS(&r->word, word, 0) == word)
		count(SY_C_ORPHANS_FREED);
}

/* BUSY or NEW: passing in microseconds, unless a claimer died. One suspect at a time is remembered; ids are never used twice, so
 * the same word in the same line seconds later is stuck. */
INLINE void visit_unfinished(struct sy_line *l, __u32 index, __u64 word, struct sweep_value *s, __u32 now)
{
	if (s->suspect_word == word && s->suspect_index == index) {
		if (now - s->suspect_since < ORPHAN_S * sy_const.hz)
			return;
		if (CAS(&l->word, word, 0) == word)
			count(SY_C_ORPHANS_FREED);
		s->suspect_word = 0;
	} else if (!s->suspect_word || now - s->suspect_since > SUSPECT_S * sy_const.hz) {
		s->suspect_word = word;
		s->suspect_index = index;
		s->suspect_since = now;
	}
}

static long visit(__u32 i, struct sweep_pass *p)
{
	__u32 index = p->cursor + i, zero = 0, state;
	struct sy_line *l = line_at(index);
	struct sweep_value *s;
	__u64 word;

	if (!l)
		return 0;
	word = READ_ONCE(l->word);
	if (!word)
		return 0;
	state = FLOW_STATE(word);
	if (FLOW_LIVE(state)) {
		visit_flow(l, index, word, p);
	} else if (state == SY_TIMEWAIT) {
		if (is_quiet(l, p->now, SY_TIMEWAIT_S * sy_const.hz) && CAS(&l->word, word, 0) == word)
			count(SY_C_TIMEWAIT_EXPIRED);
	} else if (state == SY_USED || state == SY_USED_ESTABLISHED) {
		visit_return(l, word, p->now);
	} else {
		s = bpf_map_lookup_elem(&sweep, &zero);
		if (s)
			visit_unfinished(l, index, word, s, p->now);
	}
	return 0;
}

/* The agent's heartbeat, in jiffies: programs trust the next hops it resolved only while it is fresh. */
INLINE void watch_agent(struct sweep_value *s, struct sy_config *cfg, __u32 now)
{
	__u32 beat = READ_ONCE(cfg->beat);

	if (beat != s->last_beat) {
		s->last_beat = beat;
		WRITE_ONCE(cfg->beat_jiffies, now);
	} else if (now - READ_ONCE(cfg->beat_jiffies) > 1U << 30) {
		/* keep "long ago" from wrapping round to "just now" */
		WRITE_ONCE(cfg->beat_jiffies, now - (1U << 29));
	}
}

/* As many lines as one tick visits; fewer by a plain loop where the kernel has no bpf_loop (before 5.17). */
INLINE __u32 sweep_some(struct sweep_pass *pass)
{
	if (sy_const.have_loop) {
		bpf_loop(SY_SWEEP_LINES, visit, pass, 0);
		return SY_SWEEP_LINES;
	}
	for (__u32 i = 0; i < SY_SWEEP_LINES_PLAIN; i++)
		visit(i, pass);
	return SY_SWEEP_LINES_PLAIN;
}

static int sweep_tick(void *map, __u32 *key, struct sweep_value *s)
{
	__u32 zero = 0, n_lines = (sy_const.group_mask + 1) * SY_LINES_PER_GROUP;
	struct sy_config *cfg = bpf_map_lookup_elem(&config, &zero);
	struct sweep_pass pass = { .cursor = s->cursor, .now = bpf_jiffies64() };

	s->visits++;
	s->jiffies = bpf_jiffies64();
	s->boottime_ns = bpf_ktime_get_boot_ns();
	if (cfg) {
		pass.min_timeout = READ_ONCE(cfg->min_timeout);
		watch_agent(s, cfg, pass.now);
	}
	if (pass.cursor >= n_lines) {
		/* counted from the last visit, so that late ticks cannot bring two visits of a line closer than a second */
		if (pass.now - s->last_visit >= sy_const.hz) {
			s->cursor = 0;
			s->rounds++;
		}
	} else {
		s->cursor = pass.cursor + sweep_some(&pass);
		s->last_visit = pass.now;
	}
	bpf_timer_start(&s->timer, SY_SWEEP_PERIOD_NS, 0);
	return 0;
}

/* Run by the agent at every start: a link update does not replace a timer's callback. */
SEC("syscall")
int steelyard_arm(void *ctx)
{
	__u32 zero = 0;
	struct sweep_value *s = bpf_map_lookup_elem(&sweep, &zero);

	if (!s)
		return 1;
	bpf_timer_init(&s->timer, &sweep, 7 /* CLOCK_BOOTTIME */); /* -EBUSY when an earlier agent did: fine */
	if (bpf_timer_set_callback(&s->timer, sweep_tick))
		return 2;
	s->armed++;
	return bpf_timer_start(&s->timer, SY_SWEEP_PERIOD_NS, 0) ? 3 : 0;
}
