// SPDX-License-Identifier: MIT
/* See scene.h. */
#include "scene.h"
#include "lines.h"
#include "steelyard.skel.h"
#include <inttypes.h>
#include <linux/bpf.h>
#include <linux/pkt_cls.h>

static const uint8_t client_mac[6] = { 0x02, 0, 0, 0x01, 0, 0x02 }, backend_mac[6] = { 0x02, 0, 0, 0x02, 0, 0x0a };

static const char *const verdict_names[] = {
#define X(NAME, name, kind, text) name,
	SY_VERDICTS(X)
#undef X
};

#define REQUIRE(s, condition, ...)                                                                                     \
	do {                                                                                                           \
		if (!(condition))                                                                                      \
			scene_fail(s, in, __VA_ARGS__);                                                                \
	} while (0)

__attribute__((format(printf, 3, 4))) static void scene_fail(const struct scene *s, const struct frame *in,
							     const char *format, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	fail_msg("%s, %s: %s\n  in: %s", s->hook == RIG_XDP ? "xdp" : "tc", s->step ? s->step : "", text, frame_text(in));
}

void scene_set(struct scene *s)
{
	rig_clear(s->rig);
	rig_service(s->rig, SCENE_SERVICE, SCENE_LISTEN);
	rig_backend(s->rig, SCENE_BACKEND, SCENE_SERVICE, SCENE_BACKEND_AT, 1);
	rig_table(s->rig, SCENE_SERVICE, (const uint32_t[]){ SCENE_BACKEND }, (const double[]){ 1 }, 1);
}

struct frame scene_frame(const struct scene *s, enum scene_side side, struct frame_spec spec)
{
	spec.to_mac = side == SCENE_FROM_CLIENT ? s->rig->mac_client_if : s->rig->mac_backend_if;
	spec.from_mac = side == SCENE_FROM_CLIENT ? client_mac : backend_mac;
	return frame_build(&spec);
}

static int ifindex_of(const struct scene *s, enum scene_side side)
{
	return side == SCENE_FROM_CLIENT ? s->rig->if_client : s->rig->if_backend;
}

/* ---- the frame out ---- */

static void check_macs(const struct scene *s, const struct frame *in, const struct frame_view *v, enum scene_side out_side)
{
	const uint8_t *from = out_side == SCENE_FROM_CLIENT ? s->rig->mac_client_if : s->rig->mac_backend_if;
	/* rig.h: the neighbour's address ends in the byte that its MAC ends in */
	const uint8_t to[6] = { 0x02, 0, 0, out_side == SCENE_FROM_CLIENT ? 1 : 2, 0, (uint8_t)(ntohl(v->daddr) & 0xff) };

	REQUIRE(s, !memcmp(v->from_mac, from, 6), "source MAC is not that of the interface it leaves by");
	REQUIRE(s, !memcmp(v->to_mac, to, 6), "destination MAC is not the neighbour's");
}

static void check_addresses(const struct scene *s, const struct frame *in, const struct frame_view *v,
			    const struct scene_expect *e)
{
	REQUIRE(s, !strcmp(v->from, e->from) && !strcmp(v->to, e->to), "out is %s > %s, not %s > %s", v->from, v->to, e->from,
		e->to);
}

static void check_sent(const struct scene *s, const struct frame *in, const struct frame *out, enum scene_side side,
		       const struct scene_expect *e)
{
	struct frame_view a, b;
	const char *wrong;

	(void)frame_read(in, &a);
	wrong = frame_read(out, &b);
	REQUIRE(s, !wrong, "out: %s (%s)", wrong, frame_text(out));
	check_addresses(s, in, &b, e);
	REQUIRE(s, out->len == in->len, "length changed from %zu to %zu", in->len, out->len);
	REQUIRE(s, b.ttl == a.ttl - 1, "time to live %u became %u", a.ttl, b.ttl);
	REQUIRE(s, a.tos == b.tos && a.id == b.id && a.frag == b.frag && a.seq == b.seq && a.ack == b.ack &&
			   a.flags == b.flags && a.window == b.window && a.n_payload == b.n_payload &&
			   a.n_tcp_options == b.n_tcp_options && a.n_ip_options == b.n_ip_options,
		"a header field changed that is the packet's own: %s", frame_text(out));
	REQUIRE(s, !memcmp(a.payload, b.payload, a.n_payload) && !memcmp(a.tcp_options, b.tcp_options, a.n_tcp_options),
		"payload or options changed");
	if (e->unresolved)
		REQUIRE(s, !memcmp(in->data, out->data, 12), "MACs changed though the kernel is to find them");
	else
		check_macs(s, in, &b, side == SCENE_FROM_CLIENT ? SCENE_FROM_BACKEND : SCENE_FROM_CLIENT);
}

static void check_reset(const struct scene *s, const struct frame *in, const struct frame *out, enum scene_side side,
			const struct scene_expect *e)
{
	struct frame_view v;
	const char *wrong = frame_read(out, &v);
	uint8_t flags = e->with_ack ? RST | ACK : RST;

	REQUIRE(s, !wrong, "RST: %s (%s)", wrong, frame_text(out));
	check_addresses(s, in, &v, e);
	REQUIRE(s, v.flags == flags, "RST has flags %#x, not %#x", v.flags, flags);
	REQUIRE(s, v.seq == e->seq, "RST has sequence %u, not %u", v.seq, e->seq);
	REQUIRE(s, !e->with_ack || v.ack == e->ack, "RST acknowledges %u, not %u", v.ack, e->ack);
	REQUIRE(s, v.n_payload == 0 && v.n_ip_options == 0 && v.ttl > 1, "RST is %s", frame_text(out));
	check_macs(s, in, &v,
		   e->to_other ? (side == SCENE_FROM_CLIENT ? SCENE_FROM_BACKEND : SCENE_FROM_CLIENT) : side);
}

static bool action_fits(enum rig_hook hook, enum scene_out out, int action)
{
	switch (out) {
	case SCENE_PASSED:
		return action == (hook == RIG_XDP ? XDP_PASS : TC_ACT_UNSPEC);
	case SCENE_DROPPED:
		return action == (hook == RIG_XDP ? (int)XDP_DROP : TC_ACT_SHOT);
	default:
		return hook == RIG_XDP ? action == XDP_TX || action == XDP_REDIRECT : action == TC_ACT_REDIRECT;
	}
}

/* ---- one packet ---- */

static void check_verdicts(const struct scene *s, const struct frame *in, const uint64_t *before, enum sy_verdict verdict)
{
	uint64_t after[SY_N_VERDICTS];

	rig_verdicts(s->rig, after);
	for (int i = 0; i < SY_N_VERDICTS; i++) {
		uint64_t n = after[i] - before[i], expected = i == (int)verdict;

		REQUIRE(s, n == expected, "verdict %s counted %" PRIu64 " times, not %" PRIu64 " (expected %s)", verdict_names[i],
			n, expected, verdict_names[verdict]);
	}
}

static void run_on(const struct scene *s, enum rig_hook hook, const struct frame *in, enum scene_side side,
		   const struct scene_expect *e, struct frame *out)
{
	uint64_t before[SY_N_VERDICTS];
	int action;

	rig_verdicts(s->rig, before);
	action = rig_run(s->rig, hook, in, ifindex_of(s, side), out);
	check_verdicts(s, in, before, e->verdict);
	REQUIRE(s, action_fits(hook, e->out, action), "action is %d", action);
	if (e->out == SCENE_PASSED)
		REQUIRE(s, frame_equal(in, out), "passed, but changed: %s", frame_text(out));
	else if (e->out == SCENE_SENT)
		check_sent(s, in, out, side, e);
	else if (e->out == SCENE_RESET)
		check_reset(s, in, out, side, e);
}

/* XDP must leave no trace: not a byte, not a count, not a record. */
static void hand_over(const struct scene *s, const struct frame *in, enum scene_side side)
{
	struct rig_copy *copy = rig_copy(s->rig);
	struct frame out;
	int action = rig_run(s->rig, RIG_XDP, in, ifindex_of(s, side), &out);
	const char *changed = rig_changed(s->rig, copy);

	rig_copy_free(copy);
	REQUIRE(s, action == XDP_PASS, "not handed over: action %d, %s", action, frame_text(&out));
	REQUIRE(s, frame_equal(in, &out), "handed over, but changed: %s", frame_text(&out));
	REQUIRE(s, !changed, "handed over, but %s written", changed);
}

void scene_run(const struct scene *s, const struct frame *in, enum scene_side side, const struct scene_expect *e,
	       struct frame *ret)
{
	struct frame out;
	enum rig_hook hook = s->hook;

	rig_beat(s->rig);
	if (hook == RIG_XDP && (e->handed_over || e->out == SCENE_PASSED)) {
		hand_over(s, in, side);
		hook = RIG_TC;
	}
	if (!rig_takes(hook, in))
		return;
	run_on(s, hook, in, side, e, ret ? ret : &out);
}

/* ---- a connection ---- */

void scene_syn(const struct scene *s)
{
	struct frame in = SCENE_CLIENT_SENDS(s, .flags = SYN, .seq = SCENE_CLIENT_ISN);

	SCENE_RUN(s, &in, SCENE_FROM_CLIENT, .verdict = SY_V_NEW, .out = SCENE_SENT, .from = SCENE_SOURCE,
		  .to = SCENE_BACKEND_AT);
}

void scene_syn_ack(const struct scene *s)
{
	struct frame in;

	scene_syn(s);
	in = SCENE_BACKEND_SENDS(s, .flags = SYN | ACK, .seq = SCENE_BACKEND_ISN, .ack = SCENE_CLIENT_ISN + 1);
	SCENE_RUN(s, &in, SCENE_FROM_BACKEND, .verdict = SY_V_RETURN, .out = SCENE_SENT, .from = SCENE_LISTEN,
		  .to = SCENE_CLIENT);
}

void scene_handshake(const struct scene *s)
{
	struct frame in;

	scene_syn_ack(s);
	in = SCENE_CLIENT_SENDS(s, .flags = ACK, .seq = SCENE_CLIENT_ISN + 1, .ack = SCENE_BACKEND_ISN + 1);
	SCENE_RUN(s, &in, SCENE_FROM_CLIENT, .verdict = SY_V_FORWARD, .out = SCENE_SENT, .from = SCENE_SOURCE,
		  .to = SCENE_BACKEND_AT);
}

void scene_age(const struct scene *s, struct sy_line *l, uint32_t seconds)
{
	l->seen = rig_jiffies() - seconds * s->rig->hz;
}

/* ---- a test program ---- */

struct scene_case {
	const struct scene_body *body;
	struct scene scene;
	char name[160];
};

static void run_case(void **state)
{
	struct scene_case *c = *state;
	struct lines_report report;

	scene_set(&c->scene);
	c->body->run(&c->scene);
	if (lines_check(c->scene.rig, &report))
		fail_msg("%s: %s", c->name, lines_text(&report));
}

int scene_main(const char *group, struct rig *r, const struct scene_body *bodies, size_t n)
{
	static struct scene_case all[SCENE_MAX_BODIES * RIG_N_HOOKS];
	struct CMUnitTest cases[SCENE_MAX_BODIES * RIG_N_HOOKS];
	struct steelyard_bpf *skel;
	int failed;

	assert_true(n <= SCENE_MAX_BODIES);
	rig_enter_namespace();
	skel = steelyard_bpf__open();
	rig_load(r, skel ? skel->obj : NULL, SCENE_GROUPS, 0);
	for (size_t i = 0; i < n * RIG_N_HOOKS; i++) {
		struct scene_case *c = &all[i];

		c->body = &bodies[i / RIG_N_HOOKS];
		c->scene = (struct scene){ .rig = r, .hook = (enum rig_hook)(i % RIG_N_HOOKS), .step = c->body->sentence };
		snprintf(c->name, sizeof(c->name), "%s: %s", c->scene.hook == RIG_XDP ? "xdp" : "tc", c->body->sentence);
		cases[i] = (struct CMUnitTest){ c->name, run_case, NULL, NULL, c };
	}
	failed = _cmocka_run_group_tests(group, cases, n * RIG_N_HOOKS, NULL, NULL);
	rig_unload(r);
	steelyard_bpf__destroy(skel);
	return failed;
}
