/* SPDX-License-Identifier: MIT */
/* One packet and what must come of it, the same for every hook: the frame in, the verdict, the frame out, and that nothing else
 * was counted. The stage: service 1 at 10.0.0.100:80 with backend 1, 10.2.0.10:8001, in its table; the client 10.1.0.2. */
#pragma once
#include "rig.h"
#include "unit.h"

#define SCENE_GROUPS 256
#define SCENE_SERVICE 1
#define SCENE_BACKEND 1
#define SCENE_LISTEN "10.0.0.100:80"
#define SCENE_CLIENT "10.1.0.2:5000"
#define SCENE_BACKEND_AT "10.2.0.10:8001"
#define SCENE_SOURCE "10.2.0.1:5000" /* the client's own port, if it is free */

enum scene_side { SCENE_FROM_CLIENT, SCENE_FROM_BACKEND };
enum scene_out {
	SCENE_PASSED, /* byte for byte */
	SCENE_DROPPED,
	SCENE_SENT, /* rewritten, everything else as it was */
	SCENE_RESET, /* a RST instead */
};

struct scene_expect {
	enum sy_verdict verdict;
	enum scene_out out;
	const char *from, *to; /* of the frame out, when there is one */
	uint32_t seq, ack; /* of a RST */
	bool with_ack; /* the RST has ACK set */
	bool handed_over; /* XDP leaves it to TC: untouched, uncounted, nothing written */
	bool unresolved; /* the kernel is left to find the MACs (TC) */
	bool to_other; /* a RST that leaves on the other side than the packet came from */
};

struct scene {
	struct rig *rig;
	enum rig_hook hook;
	const char *step; /* for failure messages */
};

/* Everything as after loading, then the stage. */
void scene_set(struct scene *s);
/* A frame to the interface of that side, from its neighbour. */
struct frame scene_frame(const struct scene *s, enum scene_side side, struct frame_spec spec);
#define SCENE_CLIENT_SENDS(s, ...)                                                                                     \
	scene_frame(s, SCENE_FROM_CLIENT, (struct frame_spec){ .from = SCENE_CLIENT, .to = SCENE_LISTEN, __VA_ARGS__ })
#define SCENE_BACKEND_SENDS(s, ...)                                                                                    \
	scene_frame(s, SCENE_FROM_BACKEND, (struct frame_spec){ .from = SCENE_BACKEND_AT, .to = SCENE_SOURCE, __VA_ARGS__ })

/* Run it and hold everything against what is expected; fails the test with a sentence. On XDP, what must be handed over is
 * handed over without a trace and then run through TC. *ret may be NULL. */
void scene_run(const struct scene *s, const struct frame *in, enum scene_side side, const struct scene_expect *e,
	       struct frame *ret);
#define SCENE_RUN(s, in, side, ...) scene_run(s, in, side, &(const struct scene_expect){ __VA_ARGS__ }, NULL)

/* SYN, SYN-ACK, ACK between the stage's client and backend: sequence numbers 1000 and 9000 are the ISNs. */
void scene_handshake(const struct scene *s);
/* Only the SYN, or the SYN and the SYN-ACK. */
void scene_syn(const struct scene *s);
void scene_syn_ack(const struct scene *s);
#define SCENE_CLIENT_ISN 1000U
#define SCENE_BACKEND_ISN 9000U
/* Make a line look as if its last packet was that long ago. */
void scene_age(const struct scene *s, struct sy_line *l, uint32_t seconds);

/* A test program: each body on each hook, on a stage set anew; afterwards the flow table must be sound (lines.h). Opens, loads
 * and closes the product's object; returns what main returns. */
struct scene_body {
	const char *sentence;
	void (*run)(struct scene *s);
};
#define SCENE_MAX_BODIES 64
int scene_main(const char *group, struct rig *r, const struct scene_body *bodies, size_t n);
