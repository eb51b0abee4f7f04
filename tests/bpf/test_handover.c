// SPDX-License-Identifier: MIT
/* What XDP and TC must agree on, since a packet that one leaves is the other's: the backend of a SYN, whose frames are ours, and
 * where packets leave after routes changed. */
#include <bpf/bpf.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <math.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "scene.h"

static struct rig rig;

#define FORWARD .verdict = SY_V_FORWARD, .out = SCENE_SENT, .from = SCENE_SOURCE, .to = SCENE_BACKEND_AT
#define NOT_OURS .verdict = SY_V_NOT_OURS, .out = SCENE_PASSED
#define N_SYNS 4000
#define N_CONNECTIONS 64
#define XDP_LEAVES_IT 2 /* XDP_PASS */

static void forget_flows(void)
{
	memset(rig.maps.groups, 0, rig.maps.config->n_groups * sizeof(*rig.maps.groups));
}

static void two_equal_backends(const char *second)
{
	rig_backend(&rig, 2, SCENE_SERVICE, second, 1);
	rig_table(&rig, SCENE_SERVICE, (const uint32_t[]){ SCENE_BACKEND, 2 }, (const double[]){ 1, 1 }, 2);
}

static struct frame a_syn(const struct scene *s, uint64_t *random)
{
	char from[32];
	uint64_t r = unit_random(random);

	snprintf(from, sizeof(from), "10.%u.%u.%u:%u", 64 + (unsigned)(r & 63), (unsigned)(r >> 8 & 255),
		 (unsigned)(r >> 16 & 255), 1024 + (unsigned)(r >> 24 & 0x7fff));
	return scene_frame(s, SCENE_FROM_CLIENT,
			   (struct frame_spec){ .from = from, .to = SCENE_LISTEN, .flags = SYN, .seq = (uint32_t)(r >> 32) });
}

/* ---- one SYN, one backend ---- */

/* Which backend a hook gives a SYN to that nobody has seen yet. */
static bool goes_to_first(enum rig_hook hook, const struct frame *f)
{
	struct frame out;
	struct frame_view v;
	const char *wrong;

	forget_flows();
	(void)rig_run(&rig, hook, f, rig.if_client, &out);
	wrong = frame_read(&out, &v);
	if (wrong)
		fail_msg("out: %s", wrong);
	if (strcmp(v.to, SCENE_BACKEND_AT) && strcmp(v.to, "10.2.0.11:8002"))
		fail_msg("sent to %s", v.to);
	return !strcmp(v.to, SCENE_BACKEND_AT);
}

static void both_hooks_pick_alike(struct scene *s)
{
	uint64_t random = 1;
	unsigned n_first = 0;

	two_equal_backends("10.2.0.11:8002");
	for (int i = 0; i < N_CONNECTIONS; i++) {
		/* one client address and port: the ISN alone makes it another SYN */
		struct frame f = SCENE_CLIENT_SENDS(s, .flags = SYN, .seq = (uint32_t)unit_random(&random));
		bool first = goes_to_first(s->hook, &f);

		assert_int_equal(goes_to_first(RIG_XDP, &f), first);
		assert_int_equal(goes_to_first(RIG_TC, &f), first);
		n_first += first;
	}
	/* so far off once in a billion runs, were the numbers not the same in each */
	assert_in_range(n_first, N_CONNECTIONS / 2 - 24, N_CONNECTIONS / 2 + 24);
	forget_flows();
}

/* Of two backends XDP can send to one alone and leaves the SYNs of the other to TC. Drawing afresh there would give the first one three
 * quarters. */
static void shares_hold_across_a_handover(struct scene *s)
{
	const double sigma = sqrt(N_SYNS) / 2;
	uint64_t random = 2;
	unsigned n_first = 0;

	two_equal_backends("10.2.0.200:8002"); /* its neighbour is not known */
	for (int i = 0; i < N_SYNS; i++) {
		struct frame f = a_syn(s, &random), out;
		uint64_t before = rig_backend_count(&rig, 2).picks;
		bool left = s->hook == RIG_XDP && rig_run(&rig, RIG_XDP, &f, rig.if_client, &out) == XDP_LEAVES_IT;

		if (left || s->hook == RIG_TC)
			(void)rig_run(&rig, RIG_TC, &f, rig.if_client, &out);
		if (s->hook == RIG_XDP)
			assert_int_equal(rig_backend_count(&rig, 2).picks - before, left);
	}
	n_first = (unsigned)rig_backend_count(&rig, SCENE_BACKEND).picks;
	assert_int_equal(n_first + rig_backend_count(&rig, 2).picks, N_SYNS);
	if (fabs(n_first - N_SYNS / 2.0) > 4 * sigma)
		fail_msg("one of two equal backends got %u of %u", n_first, N_SYNS);
}

/* ---- frames of others ---- */

static void frames_to_other_macs_are_left_alone(struct scene *s)
{
	static const uint8_t macs[][6] = {
		{ 0x02, 0, 0, 0x01, 0, 0x77 }, { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff }, { 0x01, 0, 0x5e, 0, 0, 1 }
	};
	static const uint8_t flags[] = { SYN, ACK, FIN | ACK, RST, SYN | ACK };

	for (size_t i = 0; i < sizeof(macs) / sizeof(*macs); i++) {
		struct frame f;

		for (size_t j = 0; j < sizeof(flags); j++) {
			f = SCENE_CLIENT_SENDS(s, .flags = flags[j], .seq = 1000, .ack = 5);
			memcpy(f.data, macs[i], 6);
			SCENE_RUN(s, &f, SCENE_FROM_CLIENT, NOT_OURS);
		}
		f = SCENE_CLIENT_SENDS(s, .flags = SYN);
		frame_put8(&f, frame_tcp(&f) + 12, 0x40); /* malformed, were it ours */
		memcpy(f.data, macs[i], 6);
		SCENE_RUN(s, &f, SCENE_FROM_CLIENT, NOT_OURS);
		f = SCENE_CLIENT_SENDS(s, .flags = SYN);
		rig_table(&rig, SCENE_SERVICE, NULL, NULL, 0);
		memcpy(f.data, macs[i], 6);
		SCENE_RUN(s, &f, SCENE_FROM_CLIENT, NOT_OURS);
	}
}

/* ---- after routes changed ---- */

static void establish(struct scene *s, const char *client, const char *source)
{
	const struct frame_spec sent[] = {
		{ .from = client, .to = SCENE_LISTEN, .flags = SYN, .seq = SCENE_CLIENT_ISN },
		{ .from = SCENE_BACKEND_AT, .to = source, .flags = SYN | ACK, .seq = SCENE_BACKEND_ISN, .ack = SCENE_CLIENT_ISN + 1 },
		{ .from = client, .to = SCENE_LISTEN, .flags = ACK, .seq = SCENE_CLIENT_ISN + 1, .ack = SCENE_BACKEND_ISN + 1 },
	};

	for (int i = 0; i < 3; i++) {
		enum scene_side side = i == 1 ? SCENE_FROM_BACKEND : SCENE_FROM_CLIENT;
		struct frame f = scene_frame(s, side, sent[i]);

		SCENE_RUN(s, &f, side, .verdict = i == 0 ? SY_V_NEW : i == 1 ? SY_V_RETURN : SY_V_FORWARD, .out = SCENE_SENT,
			  .from = i == 1 ? SCENE_LISTEN : source, .to = i == 1 ? client : SCENE_BACKEND_AT);
	}
}

static void backend_says(struct scene *s, const char *client, const char *source)
{
	struct frame f = scene_frame(s, SCENE_FROM_BACKEND,
				     (struct frame_spec){ .from = SCENE_BACKEND_AT, .to = source, .flags = ACK,
							  .seq = SCENE_BACKEND_ISN + 1, .ack = SCENE_CLIENT_ISN + 1 });

	SCENE_RUN(s, &f, SCENE_FROM_BACKEND, .verdict = SY_V_RETURN, .out = SCENE_SENT, .from = SCENE_LISTEN, .to = client);
}

static void a_return_line_learns_its_new_next_hop(struct scene *s)
{
	static const uint8_t mac2[6] = { 0x02, 0, 0, 0x01, 0, 0x02 }, mac3[6] = { 0x02, 0, 0, 0x01, 0, 0x03 },
			     old[6] = { 0x02, 0, 0, 0x01, 0, 0x66 };
	struct sy_line *one, *two;
	uint64_t before[SY_N_COUNTERS], after[SY_N_COUNTERS], old_hop;

	establish(s, SCENE_CLIENT, SCENE_SOURCE);
	establish(s, "10.1.0.3:6000", "10.2.0.1:6000");
	one = rig_find(&rig, SCENE_BACKEND_AT, SCENE_SOURCE);
	two = rig_find(&rig, SCENE_BACKEND_AT, "10.2.0.1:6000");
	assert_true(one && two);
	assert_int_equal(one->aux, rig_next_hop(&rig, rig.if_client, mac2));
	assert_int_equal(two->aux, rig_next_hop(&rig, rig.if_client, mac3));
	/* where both clients were until now */
	one->aux = two->aux = old_hop = rig_next_hop(&rig, rig.if_client, old);
	rig.maps.config->epoch++;
	backend_says(s, SCENE_CLIENT, SCENE_SOURCE);
	assert_int_equal(one->aux, rig_next_hop(&rig, rig.if_client, mac2));
	assert_int_equal(two->aux, old_hop);
	backend_says(s, "10.1.0.3:6000", "10.2.0.1:6000");
	assert_int_equal(one->aux, rig_next_hop(&rig, rig.if_client, mac2));
	assert_int_equal(two->aux, rig_next_hop(&rig, rig.if_client, mac3));
	/* and uses it: the kernel is not asked any more */
	rig_counts(&rig, before);
	for (int i = 0; i < 5; i++) {
		backend_says(s, SCENE_CLIENT, SCENE_SOURCE);
		backend_says(s, "10.1.0.3:6000", "10.2.0.1:6000");
	}
	rig_counts(&rig, after);
	assert_int_equal(after[SY_C_FIB_LOOKUPS], before[SY_C_FIB_LOOKUPS]);
}

/* ---- IP options ---- */

static void every_length_of_ip_options_is_rewritten(struct scene *s)
{
	for (size_t n = 0; n <= 40; n += 4) {
		struct frame f = SCENE_CLIENT_SENDS(s, .flags = SYN, .seq = 1000, .n_ip_options = n, .n_tcp_options = 20);

		scene_set(s);
		SCENE_RUN(s, &f, SCENE_FROM_CLIENT, .verdict = SY_V_NEW, .out = SCENE_SENT, .from = SCENE_SOURCE,
			  .to = SCENE_BACKEND_AT);
		for (size_t payload = 0; payload <= 1400; payload += 175) {
			f = SCENE_CLIENT_SENDS(s, .flags = ACK, .seq = 1001, .ack = 9001, .n_ip_options = n,
					       .n_payload = payload, .short_frame = true);
			SCENE_RUN(s, &f, SCENE_FROM_CLIENT, FORWARD);
		}
	}
}

/* ---- frames that do not lie in one piece ---- */

#define TCX_INGRESS 46 /* enum bpf_attach_type, which older headers do not have */
#define PATIENCE_MS 10000
#define OTHERS 100 /* frames of somebody else that may come first */

static int packet_socket(const char *interface)
{
	struct sockaddr_ll at = { .sll_family = AF_PACKET, .sll_protocol = htons(0x0800) };
	int on = 1, fd = socket(AF_PACKET, SOCK_RAW, 0);

	at.sll_ifindex = (int)if_nametoindex(interface);
	assert_true(fd >= 0 && at.sll_ifindex > 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof(on)), 0);
	return fd;
}

/* Only the first bytes are in the piece that a program sees without asking. */
static void send_in_pieces(int fd, const struct frame *f, uint16_t first)
{
	uint8_t bytes[sizeof(struct virtio_net_hdr) + FRAME_MAX];
	struct virtio_net_hdr header = { .gso_type = VIRTIO_NET_HDR_GSO_NONE, .hdr_len = first };

	memcpy(bytes, &header, sizeof(header));
	memcpy(bytes + sizeof(header), f->data, f->len);
	assert_int_equal(send(fd, bytes, sizeof(header) + f->len, 0), sizeof(header) + f->len);
}

static bool receive_to(int fd, const char *to, struct frame *ret)
{
	uint8_t bytes[sizeof(struct virtio_net_hdr) + FRAME_MAX];

	struct pollfd p = { .fd = fd, .events = POLLIN };

	for (int i = 0; i < OTHERS && poll(&p, 1, PATIENCE_MS) == 1; i++) {
		ssize_t n = recv(fd, bytes, sizeof(bytes), 0);
		struct frame_view v;

		if (n <= (ssize_t)sizeof(struct virtio_net_hdr))
			continue;
		ret->len = (size_t)n - sizeof(struct virtio_net_hdr);
		memcpy(ret->data, bytes + sizeof(struct virtio_net_hdr), ret->len);
		if (!frame_read(ret, &v) && !strcmp(v.to, to))
			return true;
	}
	return false;
}

/* Test runs make frames of one piece, so this one is sent: the TCP header begins, or lies altogether, behind the first piece. */
static void frames_in_pieces_are_rewritten(struct scene *s)
{
	static const uint16_t first[] = { 14, 34, 54, 60, 74, 80, 94 };
	uint64_t before[SY_N_VERDICTS], after[SY_N_VERDICTS];
	int in, out, link;

	if (s->hook == RIG_XDP)
		return;
	rig_shell("for i in cl cl-far be be-far; do ip link set $i mtu 9000 || exit 1; done");
	scene_handshake(s);
	link = bpf_link_create(rig.fd_hook[RIG_TC], rig.if_client, TCX_INGRESS, NULL);
	if (link < 0) {
		print_message("skipped: this kernel attaches no TC program by a link (before 6.6)\n");
		skip();
	}
	in = packet_socket(RIG_CLIENT_IF "-far");
	out = packet_socket(RIG_BACKEND_IF "-far");
	for (size_t i = 0; i < sizeof(first) / sizeof(*first); i++) {
		struct frame f = SCENE_CLIENT_SENDS(s, .flags = ACK, .seq = 1001, .ack = 9001, .n_ip_options = 40,
						    .n_payload = 4200), got;
		struct frame_view v;

		rig_beat(&rig);
		rig_verdicts(&rig, before);
		send_in_pieces(in, &f, first[i]);
		if (!receive_to(out, SCENE_BACKEND_AT, &got))
			fail_msg("a frame whose first piece is %u bytes did not come out", first[i]);
		assert_null(frame_read(&got, &v));
		assert_string_equal(v.from, SCENE_SOURCE);
		assert_int_equal(got.len, f.len);
		assert_memory_equal(got.data + frame_ip(&f) + 20, f.data + frame_ip(&f) + 20, 40);
		rig_verdicts(&rig, after);
		assert_int_equal(after[SY_V_FORWARD], before[SY_V_FORWARD] + 1);
	}
	close(in);
	close(out);
	close(link);
}

/* ---- what is decided by a mark in the flow ---- */

/* XDP that cannot answer leaves a draining flow's packet before it counts a strike: the whole of it is TC's. */
static void a_silent_backend_is_left_without_a_strike(struct scene *s)
{
	struct sy_iface *client = &rig.maps.ifaces[rig.if_client & (SY_MAX_IFACES - 1)];
	struct frame f = SCENE_CLIENT_SENDS(s, .flags = ACK, .seq = 2000, .ack = 9500, .n_payload = 10);
	struct sy_line *there, *back;

	scene_handshake(s);
	there = rig_find(&rig, SCENE_CLIENT, SCENE_LISTEN);
	back = rig_find(&rig, SCENE_BACKEND_AT, SCENE_SOURCE);
	assert_true(there && back);
	rig_backend_state(&rig, SCENE_BACKEND, SY_DRAINING, SY_R_GONE);
	for (unsigned n = 0; n < 3; n++) {
		scene_age(s, there, 4);
		scene_age(s, back, 4 * (n + 1));
		SCENE_RUN(s, &f, SCENE_FROM_CLIENT, FORWARD);
	}
	client->flags = 0;
	scene_age(s, there, 4);
	scene_age(s, back, 16);
	SCENE_RUN(s, &f, SCENE_FROM_CLIENT, .verdict = SY_V_SILENT_RESET, .out = SCENE_RESET, .from = SCENE_LISTEN,
		  .to = SCENE_CLIENT, .seq = 9500, .handed_over = true);
}

static const struct scene_body bodies[] = {
	{ "XDP and TC give the same SYN to the same backend", both_hooks_pick_alike },
	{ "shares hold when XDP can send to one of two backends only", shares_hold_across_a_handover },
	{ "frames to other MACs are left alone", frames_to_other_macs_are_left_alone },
	{ "a return line learns its new next hop when routes change, and no other line does", a_return_line_learns_its_new_next_hop },
	{ "a silent draining backend is left to TC without a strike", a_silent_backend_is_left_without_a_strike },
	{ "every length of IP options is rewritten", every_length_of_ip_options_is_rewritten },
	{ "a frame in pieces is rewritten, wherever its TCP header lies", frames_in_pieces_are_rewritten },
};

int main(void)
{
	return scene_main("handover", &rig, bodies, sizeof(bodies) / sizeof(*bodies));
}
