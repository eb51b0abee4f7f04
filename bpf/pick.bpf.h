/* SPDX-License-Identifier: GPL-2.0 */
/* Picking a backend for a new flow. The implementation is in pick.bpf.c. */
#pragma once
#include "maps.bpf.h"

/* A live backend of the service; 0: none. r: 32 random bits. */
__u32 pick_backend(__u32 service, __u32 r);

/* The worse of the agent's word and the endpoint's two. EVICTED as well when the generation is another. */
INLINE __u32 backend_state(const struct sy_backend *b, __u64 word, __u32 generation)
{
	__u32 endpoint = READ_ONCE(b->endpoint), state = SY_WORD_STATE(word), s;
	struct sy_endpoint *e = bpf_map_lookup_elem(&endpoints, &endpoint);

	if (e) {
		s = READ_ONCE(e->agent) & 0xff;
		state = s > state ? s : state;
		s = READ_ONCE(e->program) & 0xff;
		state = s > state ? s : state;
	}
	return SY_WORD_GEN(word) == generation ? state : SY_EVICTED;
}
