// SPDX-License-Identifier: GPL-2.0
/* What a packet does to its flow's forward word: SYN → ESTABLISHED → CLIENT_CLOSED or BACKEND_CLOSED → CLOSING, the flag RESET, and
 * REAPING cleared. By compare-and-swap; who loses one looks at the newer word. */
#include "flow_write.bpf.h"

#define CHANGE_TRIES 4
#define SILENT_STRIKES 3
#define SILENT_S 10

#define DATA_IN_SYN 0xffff /* TCP Fast Open: what a SYN may carry, and a SYN-ACK acknowledge */
#define ISN_AHEAD (1U << 20) /* what a backend may have sent before the client's first acknowledgement */

/* Does it acknowledge the client's SYN? */
INLINE int answers_syn(const struct sy_line *f, __u32 ack)
{
	return ack - READ_ONCE(f->seq) - 1 <= DATA_IN_SYN;
}

/* The backend's SYN-ACK: remember its ISN, under the flow's own tag, so that a late one cannot set another flow's. */
INLINE void set_isn(struct sy_line *f, __u64 id, __u32 seq, __u32 ack)
{
	__u64 tag = SY_ISN_TAG(id >> SY_ID_SHIFT), old = READ_ONCE(f->aux), next = tag | SY_ISN_SET | seq;

	if ((old ^ tag) >> 33 || old == next || !answers_syn(f, ack))
		return;
	CAS(&f->aux, old, next);
}

/* A client's packet acknowledges the backend's ISN + 1 or somewhat more: data first or a lost ACK do as well, a guess does not. */
INLINE int acknowledges(const struct sy_line *f, __u64 id, __u32 ack)
{
	__u64 aux = READ_ONCE(f->aux);

	return !((aux ^ (SY_ISN_TAG(id >> SY_ID_SHIFT) | SY_ISN_SET)) >> 32) && ack - (__u32)aux - 1 < ISN_AHEAD;
}

INLINE __u64 changed_by_reset(const struct sy_line *f, __u64 word, __u32 what, __u32 ack)
{
	if (FLOW_STATE(word) != SY_SYN)
		return what & CHANGE_PLAUSIBLE ? word | SY_F_RESET : word;
	/* a client's RST during the handshake passes through and the record stays: that resolves a backend's TIME_WAIT.
	 * Only the backend's own refusal, acknowledging the client's ISN, ends a half-open flow. */
	if ((what & CHANGE_BACKEND) && answers_syn(f, ack))
		return word | SY_F_RESET;
	return word;
}

INLINE __u64 changed_by_client(const struct sy_line *f, __u64 word, __u32 what, __u32 ack)
{
	__u32 state = FLOW_STATE(word);

	if (state == SY_SYN && (what & (TCP_ACK | TCP_SYN)) == TCP_ACK && acknowledges(f, FLOW_ID(word), ack))
		state = SY_ESTABLISHED;
	if ((what & TCP_FIN) && (what & CHANGE_PLAUSIBLE)) {
		if (state == SY_ESTABLISHED) {
			state = SY_CLIENT_CLOSED;
		} else if (state == SY_BACKEND_CLOSED) {
			state = SY_CLOSING;
			word = (word & ~SY_STRIKE_MASK) | SY_F_BACKEND_FIRST;
		}
	}
	if (!(what & TCP_SYN))
		word &= ~SY_F_RESET; /* it lives after all */
	return (word & ~SY_STATE_MASK) | state;
}

INLINE __u64 changed_by_backend(__u64 word, __u32 what)
{
	__u32 state = FLOW_STATE(word);

	if ((what & TCP_FIN) && (what & CHANGE_PLAUSIBLE)) {
		if (state == SY_ESTABLISHED) {
			state = SY_BACKEND_CLOSED;
		} else if (state == SY_CLIENT_CLOSED) {
			state = SY_CLOSING;
			word &= ~SY_STRIKE_MASK;
		}
	}
	return (word & ~SY_STATE_MASK) | state;
}

/* One try. 0: the flow is gone; 1: done; else the newer word, to try again with. */
__attribute__((noinline)) __u64 flow_change_once(__u64 lines_at, __u64 word, __u32 what, __u64 seqs)
{
	struct sy_line *f = line_at((__u32)lines_at);
	__u32 ack = seqs >> 32, backend;
	__u64 next = word & ~SY_F_REAPING, old;
	struct sy_backend_count *counter;
	struct sy_load *load;

	if (!f)
		return 0;
	backend = READ_ONCE(f->backend);
	load = bpf_map_lookup_elem(&loads, &backend);
	if (!load)
		return 0;
	if (what & CHANGE_EVICTED) {
		next |= SY_F_RESET;
	} else if (what & TCP_RST) {
		next = changed_by_reset(f, next, what, ack);
	} else if (!(what & CHANGE_BACKEND)) {
		next = changed_by_client(f, next, what, ack);
	} else {
		if ((what & (TCP_SYN | TCP_ACK)) == (TCP_SYN | TCP_ACK) && FLOW_STATE(word) == SY_SYN)
			set_isn(f, FLOW_ID(word), (__u32)seqs, ack);
		next = changed_by_backend(next, what);
	}
	if (next == word)
		return 1;
	/* counted up before the swap and undone when it is lost: never too low for a flow that is there */
	if (is_counted(next) && !is_counted(word))
		__sync_fetch_and_add(&load->active, 1);
	race();
	old = CAS(&f->word, word, next);
	if (old != word) {
		if (is_counted(next) && !is_counted(word))
			__sync_fetch_and_sub(&load->active, 1);
		count(SY_C_CAS_LOST);
		return !FLOW_ID(old ^ word) && FLOW_LIVE(FLOW_STATE(old)) ? old : 0;
	}
	if (is_counted(word) && !is_counted(next))
		__sync_fetch_and_sub(&load->active, 1);
	if (word & SY_F_REAPING)
		count(SY_C_UNREAPED);
	if (FLOW_STATE(word) == SY_SYN) {
		if (FLOW_STATE(next) != SY_SYN) {
			counter = count_of_backend(backend);
			if (counter)
				__sync_fetch_and_add(&counter->connections, 1);
		} else if ((next & ~word & SY_F_RESET) && (what & TCP_RST)) {
			__sync_fetch_and_add(&load->refused, 1);
		}
	}
	return 1;
}

__attribute__((noinline)) __u64 flow_change(__u64 lines_at, __u64 word, __u32 what, __u64 seqs)
{
	for (int i = 0; i < CHANGE_TRIES; i++) {
		__u64 r = flow_change_once(lines_at, word, what, seqs);

		if (r < 2)
			return r;
		word = r;
	}
	return 0; /* it changes faster than one packet can follow: absent for this one */
}

__attribute__((noinline)) int flow_strike(__u32 forward, __u64 word, __u32 unanswered, __u32 silent)
{
	struct sy_line *f = line_at(forward);
	__u32 strikes = (word & SY_STRIKE_MASK) >> SY_STRIKE_SHIFT;
	__u64 next;

	if (!f || FLOW_STATE(word) == SY_CLOSING)
		return 0;
	if (!unanswered)
		strikes = 0;
	else if (strikes < SILENT_STRIKES)
		strikes++;
	next = (word & ~(SY_STRIKE_MASK | SY_F_REAPING)) | ((__u64)strikes << SY_STRIKE_SHIFT);
	if (next != word)
		CAS(&f->word, word, next);
	return strikes == SILENT_STRIKES && silent >= SILENT_S * sy_const.hz;
}
