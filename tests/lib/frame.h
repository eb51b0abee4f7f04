/* SPDX-License-Identifier: MIT */
/* Ethernet frames for tests: building IPv4 and TCP with every oddity that a test wants, and reading one back with a full,
 * independent check of its lengths and checksums. Nothing here is shared with the programs under test. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/types.h>
#include <netinet/in.h>

#define FRAME_MAX 4608 /* more than a page: kernels keep the rest of such a frame in another place */
#define FRAME_MIN 60 /* Ethernet pads to this */

#define FIN 0x01
#define SYN 0x02
#define RST 0x04
#define PSH 0x08
#define ACK 0x10
#define URG 0x20

struct frame {
	uint8_t data[FRAME_MAX];
	size_t len;
};

/* What to build. Zero means the usual: TTL 64, protocol TCP, window 64240, MACs of nobody, no options, no tags. */
struct frame_spec {
	const char *from, *to; /* "A.B.C.D:PORT" */
	uint8_t flags;
	uint32_t seq, ack;
	uint16_t window, urgent;
	size_t n_payload; /* bytes of a pattern that differs at each offset */
	uint8_t ttl, tos, proto;
	uint16_t id, frag; /* frag: flags and offset, as in the header */
	size_t n_ip_options, n_tcp_options; /* bytes, multiples of 4 (no-operation) */
	unsigned n_tags; /* VLAN tags, 0 to 2 */
	uint16_t tag[2];
	size_t n_pad; /* bytes behind the IP packet, beside those that make 60 */
	bool short_frame; /* do not pad to 60 bytes */
	const uint8_t *to_mac, *from_mac;
};

struct frame frame_build(const struct frame_spec *s);
#define FRAME(...) frame_build(&(struct frame_spec){ __VA_ARGS__ })
/* An Ethernet frame of another protocol with n bytes of pattern. */
struct frame frame_other(uint16_t ethertype, size_t n);
/* Compute both checksums again, after a test has changed bytes. */
void frame_seal(struct frame *f);
/* Offsets of the headers in a frame built here. */
size_t frame_ip(const struct frame *f);
size_t frame_tcp(const struct frame *f);
void frame_put8(struct frame *f, size_t at, uint8_t v);
void frame_put16(struct frame *f, size_t at, uint16_t v);
bool frame_equal(const struct frame *a, const struct frame *b);

/* What a frame says, in host order but for addresses. */
struct frame_view {
	uint8_t to_mac[6], from_mac[6];
	unsigned n_tags;
	uint16_t tag[2];
	__be32 saddr, daddr;
	uint16_t sport, dport;
	uint8_t ttl, tos, flags;
	uint16_t id, frag, window;
	uint32_t seq, ack;
	size_t n_ip_options, n_tcp_options, n_payload;
	const uint8_t *payload, *tcp_options;
	char from[32], to[32]; /* "A.B.C.D:PORT" */
};

/* Read an IPv4 TCP frame and verify lengths and both checksums over every byte. NULL when it is sound, else what is wrong
 * (*ret then holds what could be read). */
const char *frame_read(const struct frame *f, struct frame_view *ret);
/* Address and port of "A.B.C.D:PORT"; aborts on anything else. */
void frame_address(const char *text, __be32 *ret_addr, uint16_t *ret_port);
/* One line for a failure message; static storage, overwritten by the fourth call after. */
const char *frame_text(const struct frame *f);
