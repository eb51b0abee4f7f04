// SPDX-License-Identifier: MIT
/* Packets in, verdict, packets out: every verdict that one packet can reach, on XDP and TC from the same bodies. What XDP
 * cannot finish has to be handed over untouched and without a trace, and TC then counts it once (lib/scene.h checks both).
 * COLLISION and LOST in earnest need two CPUs: test_flow_table reaches them. */
#include "scene.h"
#include <netinet/in.h>

static struct rig rig;

#define TO_BACKEND .out = SCENE_SENT, .from = SCENE_SOURCE, .to = SCENE_BACKEND_AT
#define TO_CLIENT .out = SCENE_SENT, .from = SCENE_LISTEN, .to = SCENE_CLIENT
#define RESET_TO_CLIENT .out = SCENE_RESET, .from = SCENE_LISTEN, .to = SCENE_CLIENT
#define NOT_OURS .verdict = SY_V_NOT_OURS, .out = SCENE_PASSED

/* ---- not ours ---- */

static void ethernet_of_others_passes(struct scene *s)
{
	struct frame f;
	static const uint16_t types[] = { 0x0806 /* ARP */, 0x86dd /* IPv6 */, 0x88cc /* LLDP */, 0x0001 };

	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
		for (size_t n = i == 0 ? 28 : 0; n <= 60; n += 20) {
			f = frame_other(types[i], n);
			memcpy(f.data, rig.mac_client_if, 6);
			SCENE_RUN(s, &f, SCENE_FROM_CLIENT, NOT_OURS);
		}
}

static void ip_of_others_passes(struct scene *s)
{
	static const struct frame_spec specs[] = {
		{ .from = SCENE_CLIENT, .to = SCENE_LISTEN, .proto = IPPROTO_UDP },
		{ .from = SCENE_CLIENT, .to = SCENE_LISTEN, .proto = IPPROTO_ICMP },
		{ .from = SCENE_CLIENT, .to = "10.0.0.100:81", .flags = SYN },
		{ .from = SCENE_CLIENT, .to = "10.0.0.101:80", .flags = SYN },
		{ .from = SCENE_CLIENT, .to = "10.1.0.1:22", .flags = ACK, .n_payload = 333 },
		{ .from = SCENE_CLIENT, .to = "10.0.0.101:80", .frag = 0x2000, .n_payload = 100 },
		{ .from = SCENE_BACKEND_AT, .to = "10.2.0.1:5000", .flags = SYN | ACK }, /* no such flow */
		{ .from = SCENE_LISTEN, .to = SCENE_CLIENT, .flags = ACK },
	};

	for (size_t i = 0; i < sizeof(specs) / sizeof(*specs); i++) {
		struct frame f = scene_frame(s, SCENE_FROM_CLIENT, specs[i]);

		SCENE_RUN(s, &f, SCENE_FROM_CLIENT, NOT_OURS);
	}
}

static void tagged_frames_pass(struct scene *s)
{
	struct frame one = SCENE_CLIENT_SENDS(s, .flags = SYN, .n_tags = 1, .tag = { 5 });
	struct frame two = SCENE_CLIENT_SENDS(s, .flags = SYN, .n_tags = 2, .tag = { 5, 6 });

	/* TC test runs take a tag out of the frame as a device does, and have no place to put it back: XDP alone shows the bytes */
	if (s->hook == RIG_TC)
		return;
	for (int i = 0; i < 2; i++) {
		struct frame out, *f = i ? &two : &one;
		struct rig_copy *copy = rig_copy(&rig);

		assert_int_equal(rig_run(&rig, RIG_XDP, f, rig.if_client, &out), 2 /* XDP_PASS */);
		assert_true(frame_equal(f, &out));
		assert_null(rig_changed(&rig, copy));
		rig_copy_free(copy);
	}
}

static void cut_short_headers_pass(struct scene *s)
{
	struct frame whole = SCENE_CLIENT_SENDS(s, .flags = SYN, .short_frame = true), f;

	for (size_t n = 14; n < 34; n++) {
		f = whole;
		f.len = n;
		SCENE_RUN(s, &f, SCENE_FROM_CLIENT, NOT_OURS);
	}
}

static void garbage_ip_headers_pass(struct scene *s)
{
	static const uint8_t first[] = { 0x00, 0x05, 0x44, 0x40, 0x55, 0x65, 0xf5 };

	for (size_t i = 0; i < sizeof(first); i++) {
		struct frame f = SCENE_CLIENT_SENDS(s, .flags = SYN);

		frame_put8(&f, 14, first[i]);
		SCENE_RUN(s, &f, SCENE_FROM_CLIENT, NOT_OURS);
	}
}

/* ---- malformed, fragments ---- */

#define MALFORMED .verdict = SY_V_MALFORMED, .out = SCENE_DROPPED

static void cut_short_tcp_is_malformed(struct scene *s)
{
	struct frame whole = SCENE_CLIENT_SENDS(s, .flags = SYN, .short_frame = true), f;

	for (size_t n = 34; n < 54; n++) {
		f = whole;
		f.len = n;
		SCENE_RUN(s, &f, SCENE_FROM_CLIENT, MALFORMED);
	}
}

static void wrong_tcp_lengths_are_malformed(struct scene *s)
{
	struct frame f;

	for (uint8_t words = 0; words < 16; words++) {
		f = SCENE_CLIENT_SENDS(s, .flags = SYN);
		if (words == 5)
			continue;
		frame_put8(&f, 14 + 20 + 12, (uint8_t)(words << 4));
		SCENE_RUN(s, &f, SCENE_FROM_CLIENT, MALFORMED);
	}
	for (uint16_t total = 0; total < 40; total++) {
		f = SCENE_CLIENT_SENDS(s, .flags = SYN);
		frame_put16(&f, 14 + 2, total);
		SCENE_RUN(s, &f, SCENE_FROM_CLIENT, MALFORMED);
	}
}

/* A total length beyond the frame: the frame was cut on its way, a rewrite would send rubbish on. */
static void longer_than_the_frame_is_malformed(struct scene *s)
{
	struct frame f;

	scene_handshake(s);
	f = SCENE_CLIENT_SENDS(s, .flags = ACK, .seq = SCENE_CLIENT_ISN + 1, .ack = SCENE_BACKEND_ISN + 1, .n_payload = 100);
	frame_put16(&f, 14 + 2, 600);
	SCENE_RUN(s, &f, SCENE_FROM_CLIENT, MALFORMED);
	frame_put16(&f, 14 + 2, 65535);
	SCENE_RUN(s, &f, SCENE_FROM_CLIENT, MALFORMED);
}

static void fragments_are_left_to_the_host(struct scene *s)
{
	struct frame f = SCENE_CLIENT_SENDS(s, .flags = SYN, .frag = 0x2000);

	SCENE_RUN(s, &f, SCENE_FROM_CLIENT, .verdict = SY_V_FRAGMENT, .out = SCENE_PASSED);
	f = SCENE_CLIENT_SENDS(s, .flags = SYN, .frag = 0x2010, .n_payload = 64);
	SCENE_RUN(s, &f, SCENE_FROM_CLIENT, .verdict = SY_V_FRAGMENT, .out = SCENE_PASSED);
	f = SCENE_CLIENT_SENDS(s, .flags = SYN, .frag = 0x0010);
	SCENE_RUN(s, &f, SCENE_FROM_CLIENT, .verdict = SY_V_FRAGMENT, .out = SCENE_PASSED);
}

/* ---- sent on ---- */

static void first_packet_is_sent_on(struct scene *s)
{
	struct frame f = SCENE_CLIENT_SENDS(s, .flags = SYN, .seq = 77, .n_tcp_options = 20, .tos = 0x10, .id = 4711,
					    .frag = 0x4000);

	SCENE_RUN(s, &f, SCENE_FROM_CLIENT, .verdict = SY_V_NEW, TO_BACKEND);
	/* sent again: the same flow, the same backend, the same port */
	SCENE_RUN(s, &f, SCENE_FROM_CLIENT, .verdict = SY_V_FORWARD, TO_BACKEND);
}

static void both_directions_are_rewritten(struct scene *s)
{
	static const size_t sizes[] = { 0, 1, 2, 3, 5, 6, 7, 100, 999, 1460 };

	scene_handshake(s);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		struct frame f = SCENE_CLIENT_SENDS(s, .flags = ACK | PSH, .seq = SCENE_CLIENT_ISN + 1,
						    .ack = SCENE_BACKEND_ISN + 1, .n_payload = sizes[i], .tos = 3, .id = 9,
						    .window = (uint16_t)(i * 977 + 1));

		SCENE_RUN(s, &f, SCENE_FROM_CLIENT, .verdict = SY_V_FORWARD, TO_BACKEND);
		f = SCENE_BACKEND_SENDS(s, .flags = ACK, .seq = SCENE_BACKEND_ISN + 1, .ack = SCENE_CLIENT_ISN + 1,
					.n_payload = sizes[i], .n_tcp_options = 12);
		SCENE_RUN(s, &f, SCENE_FROM_BACKEND, .verdict = SY_V_RETURN, TO_CLIENT);
	}
}

static void options_and_padding_are_kept(struct scene *s)
{
	static const struct frame_spec odd[] = {
		{ .n_ip_options = 4 }, { .n_ip_options = 40 },	    { .n_tcp_options = 40 }, { .n_ip_options = 40, .n_tcp_options = 40 },
		{ .n_pad = 4 },	       { .n_payload = 9, .n_pad = 77 }, { .urgent = 5, .n_payload = 8 }, { .ttl = 2 }, { .ttl = 255 },
	};

	scene_handshake(s);
	for (size_t i = 0; i < sizeof(odd) / sizeof(*odd); i++) {
		struct frame_spec spec = odd[i];
		struct frame f;

		spec.from = SCENE_CLIENT;
		spec.to = SCENE_LISTEN;
		spec.flags = ACK;
		spec.seq = SCENE_CLIENT_ISN + 1;
		spec.ack = SCENE_BACKEND_ISN + 1;
		f = scene_frame(s, SCENE_FROM_CLIENT, spec);
		SCENE_RUN(s, &f, SCENE_FROM_CLIENT, .verdict = SY_V_FORWARD, TO_BACKEND);
		spec.from = SCENE_BACKEND_AT;
		spec.to = SCENE_SOURCE;
		spec.seq = SCENE_BACKEND_ISN + 1;
		spec.ack = SCENE_CLIENT_ISN + 1;
		f = scene_frame(s, SCENE_FROM_BACKEND, spec);
		SCENE_RUN(s, &f, SCENE_FROM_BACKEND, .verdict = SY_V_RETURN, TO_CLIENT);
	}
}

/* Sums that come out 0 or all ones, and carries that fold twice, hide in a few addresses and numbers: try many. */
static void checksums_hold_for_many_numbers(struct scene *s)
{
	uint64_t random = 42;

	scene_handshake(s);
	for (int i = 0; i < 400; i++) {
		uint32_t n = (uint32_t)unit_random(&random);
		struct frame f = SCENE_CLIENT_SENDS(s, .flags = ACK, .seq = n, .ack = SCENE_BACKEND_ISN + 1,
						    .window = (uint16_t)(n >> 7), .id = (uint16_t)(i % 2 ? n : 0xffff),
						    .ttl = (uint8_t)(2 + n % 250), .tos = (uint8_t)(n >> 20));

		SCENE_RUN(s, &f, SCENE_FROM_CLIENT, .verdict = SY_V_FORWARD, TO_BACKEND);
		f = SCENE_BACKEND_SENDS(s, .flags = ACK, .seq = n, .ack = n >> 3, .n_payload = n % 50,
					.ttl = (uint8_t)(2 + n % 250));
		SCENE_RUN(s, &f, SCENE_FROM_BACKEND, .verdict = SY_V_RETURN, TO_CLIENT);
	}
}

static void a_held_next_hop_is_used(struct scene *s)
{
	const uint8_t mac[6] = { 0x02, 0, 0, 0x02, 0, 0x0a };
	uint64_t before[SY_N_COUNTERS], after[SY_N_COUNTERS];
	struct frame f = SCENE_CLIENT_SENDS(s, .flags = ACK, .seq = SCENE_CLIENT_ISN + 1, .ack = SCENE_BACKEND_ISN + 1);

	rig.maps.backends[SCENE_BACKEND].nh = rig_next_hop(&rig, rig.if_backend, mac);
	scene_handshake(s);
	rig_counts(&rig, before);
	SCENE_RUN(s, &f, SCENE_FROM_CLIENT, .verdict = SY_V_FORWARD, TO_BACKEND);
	rig_counts(&rig, after);
	assert_int_equal(after[SY_C_FIB_LOOKUPS], before[SY_C_FIB_LOOKUPS]);
	/* a change of routes makes it void: the word's MAC is not believed any more */
	rig.maps.backends[SCENE_BACKEND].nh ^= 0xff0000;
	rig.maps.config->epoch++;
	SCENE_RUN(s, &f, SCENE_FROM_CLIENT, .verdict = SY_V_FORWARD, TO_BACKEND);
}

/* ---- dropped ---- */

static void used_up_time_to_live_is_dropped(struct scene *s)
{
	for (uint8_t ttl = 1; ttl < 2; ttl++) {
		struct frame f = SCENE_CLIENT_SENDS(s, .flags = SYN, .ttl = ttl);

		scene_set(s);
		SCENE_RUN(s, &f, SCENE_FROM_CLIENT, .verdict = SY_V_TTL, .out = SCENE_DROPPED);
		assert_null(rig_find(&rig, SCENE_CLIENT, SCENE_LISTEN));
		scene_handshake(s);
		f = SCENE_CLIENT_SENDS(s, .flags = ACK, .ttl = ttl);
		SCENE_RUN(s, &f, SCENE_FROM_CLIENT, .verdict = SY_V_TTL, .out = SCENE_DROPPED);
		f = SCENE_BACKEND_SENDS(s, .flags = ACK, .ttl = ttl);
		SCENE_RUN(s, &f, SCENE_FROM_BACKEND, .verdict = SY_V_TTL, .out = SCENE_DROPPED);
	}
}

static void without_a_route_is_dropped(struct scene *s)
{
	struct frame f = SCENE_CLIENT_SENDS(s, .flags = SYN);

	rig_backend(&rig, SCENE_BACKEND, SCENE_SERVICE, "192.0.2.7:8001", 1);
	SCENE_RUN(s, &f, SCENE_FROM_CLIENT, .verdict = SY_V_NO_ROUTE, .out = SCENE_DROPPED);
	assert_null(rig_find(&rig, SCENE_CLIENT, SCENE_LISTEN));
}

static void a_listener_without_its_service_is_an_error(struct scene *s)
{
	struct frame f = SCENE_CLIENT_SENDS(s, .flags = SYN);

	rig.maps.services[SCENE_SERVICE].used = 0;
	SCENE_RUN(s, &f, SCENE_FROM_CLIENT, .verdict = SY_V_ERROR, .out = SCENE_DROPPED);
}

/* A claimer on another CPU has published the key and not made it live yet. */
static void a_key_that_another_claims_is_a_collision(struct scene *s)
{
	struct frame f = SCENE_CLIENT_SENDS(s, .flags = SYN, .seq = 5);
	struct sy_line *l;

	scene_syn(s);
	l = rig_find(&rig, SCENE_CLIENT, SCENE_LISTEN);
	assert_non_null(l);
	l->word = (l->word & ~0xffULL) | SY_NEW;
	SCENE_RUN(s, &f, SCENE_FROM_CLIENT, .verdict = SY_V_COLLISION, .out = SCENE_DROPPED);
	assert_int_equal(rig_state(l->word), SY_NEW);
	rig_clear(&rig);
}

/* ---- answered with a RST ---- */

static void unknown_packets_are_reset(struct scene *s)
{
	struct frame f = SCENE_CLIENT_SENDS(s, .flags = ACK, .seq = 100, .ack = 200, .n_payload = 50);

	SCENE_RUN(s, &f, SCENE_FROM_CLIENT, .verdict = SY_V_UNKNOWN_RESET, RESET_TO_CLIENT, .seq = 200);
	f = SCENE_CLIENT_SENDS(s, .flags = FIN | ACK, .seq = 100, .ack = 300, .n_ip_options = 8, .n_tcp_options = 12);
	SCENE_RUN(s, &f, SCENE_FROM_CLIENT, .verdict = SY_V_UNKNOWN_RESET, RESET_TO_CLIENT, .seq = 300);
	f = SCENE_CLIENT_SENDS(s, .flags = SYN | ACK, .seq = 100, .ack = 400);
	SCENE_RUN(s, &f, SCENE_FROM_CLIENT, .verdict = SY_V_UNKNOWN_RESET, RESET_TO_CLIENT, .seq = 400);
	f = SCENE_CLIENT_SENDS(s, .flags = FIN, .seq = 100, .n_payload = 7);
	SCENE_RUN(s, &f, SCENE_FROM_CLIENT, .verdict = SY_V_UNKNOWN_RESET, RESET_TO_CLIENT, .with_ack = true, .ack = 108);
	f = SCENE_CLIENT_SENDS(s, .flags = 0, .seq = 100, .n_payload = 1400);
	SCENE_RUN(s, &f, SCENE_FROM_CLIENT, .verdict = SY_V_UNKNOWN_RESET, RESET_TO_CLIENT, .with_ack = true, .ack = 1500);
}

static void a_reset_is_never_answered(struct scene *s)
{
	struct frame f = SCENE_CLIENT_SENDS(s, .flags = RST, .seq = 100);

	SCENE_RUN(s, &f, SCENE_FROM_CLIENT, .verdict = SY_V_UNKNOWN_DROP, .out = SCENE_DROPPED);
	f = SCENE_CLIENT_SENDS(s, .flags = RST | ACK, .seq = 100, .ack = 5);
	SCENE_RUN(s, &f, SCENE_FROM_CLIENT, .verdict = SY_V_UNKNOWN_DROP, .out = SCENE_DROPPED);
}

static void no_backend_is_answered_by_policy(struct scene *s)
{
	struct frame f = SCENE_CLIENT_SENDS(s, .flags = SYN, .seq = 1000, .n_tcp_options = 20);
	struct sy_service *service = &rig.maps.services[SCENE_SERVICE];

	for (int evicted = 0; evicted < 2; evicted++) {
		scene_set(s);
		if (evicted)
			rig_backend_state(&rig, SCENE_BACKEND, SY_EVICTED, SY_R_CHECK_FAILED);
		else
			rig_table(&rig, SCENE_SERVICE, NULL, NULL, 0);
		service->on_empty = SY_EMPTY_RESET;
		SCENE_RUN(s, &f, SCENE_FROM_CLIENT, .verdict = SY_V_NO_BACKEND_RESET, RESET_TO_CLIENT, .with_ack = true,
			  .ack = 1001);
		service->on_empty = SY_EMPTY_DROP;
		SCENE_RUN(s, &f, SCENE_FROM_CLIENT, .verdict = SY_V_NO_BACKEND_DROP, .out = SCENE_DROPPED);
		service->on_empty = SY_EMPTY_PASS;
		SCENE_RUN(s, &f, SCENE_FROM_CLIENT, .verdict = SY_V_NO_BACKEND_PASS, .out = SCENE_PASSED);
	}
}

static void without_a_port_is_reset(struct scene *s)
{
	struct frame f = SCENE_CLIENT_SENDS(s, .flags = SYN, .seq = 1000);

	rig_pool(&rig, 0, (const char *const[]){ "10.2.0.1" }, 1, 5000, 5000);
	scene_syn(s);
	f = scene_frame(s, SCENE_FROM_CLIENT,
			(struct frame_spec){ .from = "10.1.0.2:6000", .to = SCENE_LISTEN, .flags = SYN, .seq = 7 });
	SCENE_RUN(s, &f, SCENE_FROM_CLIENT, .verdict = SY_V_PORTS_EXHAUSTED, .out = SCENE_RESET, .from = SCENE_LISTEN,
		  .to = "10.1.0.2:6000", .with_ack = true, .ack = 8);
	/* the flow that has the port is not touched */
	assert_int_equal(rig_state(rig_find(&rig, SCENE_CLIENT, SCENE_LISTEN)->word), SY_SYN);
}

static void a_full_table_is_reset(struct scene *s)
{
	struct frame f = SCENE_CLIENT_SENDS(s, .flags = SYN, .seq = 1000);

	/* established flows of somebody else in every line: never displaced */
	for (uint32_t i = 0; i < SCENE_GROUPS * SY_LINES_PER_GROUP; i++) {
		struct sy_line *l = rig_line(&rig, i);

		l->saddr = htonl(0x0b000000 + i);
		l->mate = i ^ 1;
		l->seen = rig_jiffies();
		l->word = (uint64_t)(i + 1) << SY_ID_SHIFT | SY_ESTABLISHED;
	}
	SCENE_RUN(s, &f, SCENE_FROM_CLIENT, .verdict = SY_V_TABLE_FULL, RESET_TO_CLIENT, .with_ack = true, .ack = 1001);
	rig_clear(&rig);
}

static void evicted_flows_are_reset_from_either_side(struct scene *s)
{
	struct frame client = SCENE_CLIENT_SENDS(s, .flags = ACK | PSH, .seq = 2000, .ack = 9500, .n_payload = 99);
	struct frame backend = SCENE_BACKEND_SENDS(s, .flags = ACK, .seq = 9800, .ack = 2000, .n_payload = 1400);
	struct frame client_rst = SCENE_CLIENT_SENDS(s, .flags = RST, .seq = 2000);
	struct frame backend_rst = SCENE_BACKEND_SENDS(s, .flags = RST | ACK, .seq = 9800, .ack = 2000);

	scene_handshake(s);
	rig_backend_state(&rig, SCENE_BACKEND, SY_EVICTED, SY_R_CHECK_FAILED);
	for (int again = 0; again < 3; again++) {
		SCENE_RUN(s, &client, SCENE_FROM_CLIENT, .verdict = SY_V_EVICTED_CLIENT, RESET_TO_CLIENT, .seq = 9500);
		SCENE_RUN(s, &backend, SCENE_FROM_BACKEND, .verdict = SY_V_EVICTED_BACKEND, RESET_TO_CLIENT, .seq = 9800,
			  .to_other = true, .handed_over = true);
		SCENE_RUN(s, &client_rst, SCENE_FROM_CLIENT, .verdict = SY_V_EVICTED_DROP, .out = SCENE_DROPPED);
		SCENE_RUN(s, &backend_rst, SCENE_FROM_BACKEND, .verdict = SY_V_EVICTED_DROP, .out = SCENE_DROPPED,
			  .handed_over = true);
	}
	assert_int_equal(rig.maps.loads[SCENE_BACKEND].active, 0);
}

static void a_silent_draining_backend_is_given_up(struct scene *s)
{
	struct frame f = SCENE_CLIENT_SENDS(s, .flags = ACK, .seq = 2000, .ack = 9500, .n_payload = 10);
	struct sy_line *there, *back;
	unsigned n = 0;

	scene_handshake(s);
	there = rig_find(&rig, SCENE_CLIENT, SCENE_LISTEN);
	back = rig_find(&rig, SCENE_BACKEND_AT, SCENE_SOURCE);
	assert_true(there && back);
	rig_backend_state(&rig, SCENE_BACKEND, SY_DRAINING, SY_R_GONE);
	/* the first only begins to wait; three unanswered ones after it, the last more than 10 s after the backend spoke */
	for (; n < 3; n++) {
		scene_age(s, there, 4);
		scene_age(s, back, 4 * (n + 1));
		SCENE_RUN(s, &f, SCENE_FROM_CLIENT, .verdict = SY_V_FORWARD, TO_BACKEND);
	}
	scene_age(s, there, 4);
	scene_age(s, back, 16);
	SCENE_RUN(s, &f, SCENE_FROM_CLIENT, .verdict = SY_V_SILENT_RESET, RESET_TO_CLIENT, .seq = 9500);
}

static void a_draining_backend_that_answers_is_kept(struct scene *s)
{
	struct frame f = SCENE_CLIENT_SENDS(s, .flags = ACK, .seq = 2000, .ack = 9500, .n_payload = 10);
	struct sy_line *there;

	scene_handshake(s);
	there = rig_find(&rig, SCENE_CLIENT, SCENE_LISTEN);
	assert_non_null(there);
	rig_backend_state(&rig, SCENE_BACKEND, SY_DRAINING, SY_R_GONE);
	/* a question and its answer every so often, as keep-alives are: silence between them is not the backend's fault */
	for (int i = 0; i < 20; i++) {
		struct frame answer = SCENE_BACKEND_SENDS(s, .flags = ACK, .seq = 9500, .ack = 2000);
		uint32_t pause_s = i < 10 ? 4 : 60;

		scene_age(s, there, pause_s);
		scene_age(s, rig_find(&rig, SCENE_BACKEND_AT, SCENE_SOURCE), pause_s);
		SCENE_RUN(s, &f, SCENE_FROM_CLIENT, .verdict = SY_V_FORWARD, TO_BACKEND);
		SCENE_RUN(s, &answer, SCENE_FROM_BACKEND, .verdict = SY_V_RETURN, TO_CLIENT);
	}
}

/* ---- what XDP hands over ---- */

static void an_unresolved_neighbour_is_left_to_tc(struct scene *s)
{
	struct frame f = SCENE_CLIENT_SENDS(s, .flags = SYN);

	rig_backend(&rig, SCENE_BACKEND, SCENE_SERVICE, "10.2.0.200:8001", 1);
	SCENE_RUN(s, &f, SCENE_FROM_CLIENT, .verdict = SY_V_NEW, .out = SCENE_SENT, .from = SCENE_SOURCE,
		  .to = "10.2.0.200:8001", .handed_over = true, .unresolved = true);
}

static void an_interface_without_xdp_is_left_to_tc(struct scene *s)
{
	struct sy_iface *client = &rig.maps.ifaces[rig.if_client & (SY_MAX_IFACES - 1)];
	struct sy_iface *backend = &rig.maps.ifaces[rig.if_backend & (SY_MAX_IFACES - 1)];
	struct frame f = SCENE_CLIENT_SENDS(s, .flags = ACK, .seq = 100, .ack = 200);

	client->flags = 0;
	SCENE_RUN(s, &f, SCENE_FROM_CLIENT, .verdict = SY_V_UNKNOWN_RESET, RESET_TO_CLIENT, .seq = 200, .handed_over = true);
	client->flags = SY_IF_XDP_XMIT;
	backend->flags = 0;
	rig.maps.config->epoch++; /* as the agent does when it changes an interface */
	f = SCENE_CLIENT_SENDS(s, .flags = SYN);
	SCENE_RUN(s, &f, SCENE_FROM_CLIENT, .verdict = SY_V_NEW, TO_BACKEND, .handed_over = true);
	f = SCENE_CLIENT_SENDS(s, .flags = SYN);
	SCENE_RUN(s, &f, SCENE_FROM_CLIENT, .verdict = SY_V_FORWARD, TO_BACKEND, .handed_over = true);
	/* the way back is free */
	f = SCENE_BACKEND_SENDS(s, .flags = SYN | ACK, .seq = SCENE_BACKEND_ISN, .ack = 1);
	SCENE_RUN(s, &f, SCENE_FROM_BACKEND, .verdict = SY_V_RETURN, TO_CLIENT);
}

static void an_interface_of_nobody_is_left_to_tc(struct scene *s)
{
	struct frame f = SCENE_CLIENT_SENDS(s, .flags = SYN);

	rig.maps.ifaces[rig.if_backend & (SY_MAX_IFACES - 1)] = (struct sy_iface){ 0 };
	SCENE_RUN(s, &f, SCENE_FROM_CLIENT, .verdict = SY_V_NEW, TO_BACKEND, .handed_over = true);
}

/* ---- each on both hooks ---- */

static const struct scene_body bodies[] = {
	{ "Ethernet frames of other protocols pass byte for byte", ethernet_of_others_passes },
	{ "IP packets that are for no listener pass byte for byte", ip_of_others_passes },
	{ "VLAN frames pass byte for byte", tagged_frames_pass },
	{ "frames that end before the IP header does pass byte for byte", cut_short_headers_pass },
	{ "frames with an IP header that is none pass byte for byte", garbage_ip_headers_pass },
	{ "a TCP header that is cut short is malformed", cut_short_tcp_is_malformed },
	{ "TCP lengths that contradict each other are malformed", wrong_tcp_lengths_are_malformed },
	{ "a packet that says it is longer than its frame is malformed", longer_than_the_frame_is_malformed },
	{ "fragments for a listener are left to the host", fragments_are_left_to_the_host },
	{ "a first packet is sent on, and so it is when sent again", first_packet_is_sent_on },
	{ "packets of all sizes are rewritten both ways", both_directions_are_rewritten },
	{ "options, padding and odd fields come out as they went in", options_and_padding_are_kept },
	{ "checksums are right for hundreds of numbers", checksums_hold_for_many_numbers },
	{ "a next hop held in the record is used until routes change", a_held_next_hop_is_used },
	{ "a packet whose time to live is used up is dropped", used_up_time_to_live_is_dropped },
	{ "a packet without a route is dropped and leaves no flow", without_a_route_is_dropped },
	{ "a listener whose service is not there is an error", a_listener_without_its_service_is_an_error },
	{ "a key that another CPU is claiming is a collision", a_key_that_another_claims_is_a_collision },
	{ "a packet in the middle of no flow is reset", unknown_packets_are_reset },
	{ "a RST is never answered", a_reset_is_never_answered },
	{ "without a backend the answer is the service's policy", no_backend_is_answered_by_policy },
	{ "without a free source port the answer is a RST", without_a_port_is_reset },
	{ "with a full table the answer is a RST", a_full_table_is_reset },
	{ "a flow of an evicted backend is reset by a packet from either side", evicted_flows_are_reset_from_either_side },
	{ "a draining backend that is silent while its client sends is given up", a_silent_draining_backend_is_given_up },
	{ "a draining backend that answers keeps its flow", a_draining_backend_that_answers_is_kept },
	{ "a next hop whose neighbour is not known is left to TC", an_unresolved_neighbour_is_left_to_tc },
	{ "an interface that takes no XDP frames is left to TC", an_interface_without_xdp_is_left_to_tc },
	{ "an interface that has no record is left to TC", an_interface_of_nobody_is_left_to_tc },
};

int main(void)
{
	return scene_main("packets", &rig, bodies, sizeof(bodies) / sizeof(*bodies));
}
