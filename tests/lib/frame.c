// SPDX-License-Identifier: MIT
/* See frame.h. Checksums are summed afresh over all bytes, never incrementally: that is the point of them. */
#include "frame.h"
#include <arpa/inet.h>
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ETH_LEN 14
#define TAG_LEN 4
#define TYPE_IP 0x0800
#define TYPE_TAG 0x8100
#define TYPE_OUTER_TAG 0x88a8

static const uint8_t default_to[6] = { 0x02, 0, 0, 0, 0, 0x01 }, default_from[6] = { 0x02, 0, 0, 0, 0, 0x02 };

static uint16_t get16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static uint32_t get32(const uint8_t *p)
{
	return (uint32_t)get16(p) << 16 | get16(p + 2);
}

static void put16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static void put32(uint8_t *p, uint32_t v)
{
	put16(p, (uint16_t)(v >> 16));
	put16(p + 2, (uint16_t)v);
}

/* Sum of big-endian 16-bit words, an odd last byte on the left. */
static uint32_t sum_words(const uint8_t *p, size_t n, uint32_t sum)
{
	for (size_t i = 0; i < n; i++)
		sum += i & 1 ? p[i] : (uint32_t)p[i] << 8;
	return sum;
}

static uint16_t sum_fold(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

/* Sum over the pseudo header and the whole segment: 0xffff when the checksum in it is right. */
static uint16_t sum_tcp(const uint8_t *ip, const uint8_t *tcp, size_t n)
{
	uint32_t sum = sum_words(ip + 12, 8, 0) + ip[9] + (uint32_t)n;

	return sum_fold(sum_words(tcp, n, sum));
}

void frame_address(const char *text, __be32 *ret_addr, uint16_t *ret_port)
{
	char addr[32];
	unsigned port;

	if (sscanf(text, "%31[0-9.]:%u", addr, &port) != 2 || inet_pton(AF_INET, addr, ret_addr) != 1) {
		fprintf(stderr, "not an address and port: %s\n", text);
		abort();
	}
	*ret_port = (uint16_t)port;
}

size_t frame_ip(const struct frame *f)
{
	size_t at = 12;

	while (get16(f->data + at) == TYPE_TAG || get16(f->data + at) == TYPE_OUTER_TAG)
		at += TAG_LEN;
	return at + 2;
}

size_t frame_tcp(const struct frame *f)
{
	size_t ip = frame_ip(f);

	return ip + (f->data[ip] & 15) * 4U;
}

void frame_seal(struct frame *f)
{
	uint8_t *ip = f->data + frame_ip(f), *tcp = f->data + frame_tcp(f);
	size_t n_ip = (size_t)(tcp - ip), total = get16(ip + 2);

	put16(ip + 10, 0);
	put16(ip + 10, (uint16_t)~sum_fold(sum_words(ip, n_ip, 0)));
	if (ip[9] != IPPROTO_TCP || total < n_ip + 20)
		return;
	put16(tcp + 16, 0);
	put16(tcp + 16, (uint16_t)~sum_tcp(ip, tcp, total - n_ip));
}

static uint8_t *build_ethernet(const struct frame_spec *s, uint8_t *p)
{
	memcpy(p, s->to_mac ? s->to_mac : default_to, 6);
	memcpy(p + 6, s->from_mac ? s->from_mac : default_from, 6);
	p += 12;
	for (unsigned i = 0; i < s->n_tags; i++, p += TAG_LEN) {
		put16(p, i == 0 && s->n_tags == 2 ? TYPE_OUTER_TAG : TYPE_TAG);
		put16(p + 2, s->tag[i]);
	}
	put16(p, TYPE_IP);
	return p + 2;
}

static void build_tcp(const struct frame_spec *s, uint16_t sport, uint16_t dport, uint8_t *tcp)
{
	put16(tcp, sport);
	put16(tcp + 2, dport);
	put32(tcp + 4, s->seq);
	put32(tcp + 8, s->ack);
	tcp[12] = (uint8_t)((5 + s->n_tcp_options / 4) << 4);
	tcp[13] = s->flags;
	put16(tcp + 14, s->window ? s->window : 64240);
	put16(tcp + 18, s->urgent);
	memset(tcp + 20, 1, s->n_tcp_options);
	for (size_t i = 0; i < s->n_payload; i++)
		tcp[20 + s->n_tcp_options + i] = (uint8_t)(i * 7 + i / 251 + 3);
}

struct frame frame_build(const struct frame_spec *s)
{
	struct frame f = { 0 };
	uint8_t *ip = build_ethernet(s, f.data), *tcp = ip + 20 + s->n_ip_options;
	size_t total = 20 + s->n_ip_options + 20 + s->n_tcp_options + s->n_payload;
	uint16_t sport, dport;
	__be32 from, to;

	frame_address(s->from, &from, &sport);
	frame_address(s->to, &to, &dport);
	ip[0] = (uint8_t)(0x40 | (5 + s->n_ip_options / 4));
	ip[1] = s->tos;
	put16(ip + 2, (uint16_t)total);
	put16(ip + 4, s->id);
	put16(ip + 6, s->frag);
	ip[8] = s->ttl ? s->ttl : 64;
	ip[9] = s->proto ? s->proto : IPPROTO_TCP;
	memcpy(ip + 12, &from, 4);
	memcpy(ip + 16, &to, 4);
	memset(ip + 20, 1, s->n_ip_options);
	build_tcp(s, sport, dport, tcp);
	f.len = (size_t)(ip - f.data) + total;
	assert(f.len + s->n_pad <= FRAME_MAX);
	if (f.len < FRAME_MIN && !s->short_frame)
		f.len = FRAME_MIN;
	memset(f.data + f.len, 0xa5, s->n_pad);
	f.len += s->n_pad;
	frame_seal(&f);
	return f;
}

struct frame frame_other(uint16_t ethertype, size_t n)
{
	struct frame f = { .len = ETH_LEN + n };

	assert(f.len <= FRAME_MAX);
	memcpy(f.data, default_to, 6);
	memcpy(f.data + 6, default_from, 6);
	put16(f.data + 12, ethertype);
	for (size_t i = 0; i < n; i++)
		f.data[ETH_LEN + i] = (uint8_t)(i * 13 + 5);
	return f;
}

void frame_put8(struct frame *f, size_t at, uint8_t v)
{
	f->data[at] = v;
}

void frame_put16(struct frame *f, size_t at, uint16_t v)
{
	put16(f->data + at, v);
}

bool frame_equal(const struct frame *a, const struct frame *b)
{
	return a->len == b->len && !memcmp(a->data, b->data, a->len);
}

static void read_tcp(const uint8_t *ip, const uint8_t *tcp, struct frame_view *v)
{
	char text[INET_ADDRSTRLEN];

	memcpy(&v->saddr, ip + 12, 4);
	memcpy(&v->daddr, ip + 16, 4);
	v->sport = get16(tcp);
	v->dport = get16(tcp + 2);
	v->seq = get32(tcp + 4);
	v->ack = get32(tcp + 8);
	v->flags = tcp[13];
	v->window = get16(tcp + 14);
	snprintf(v->from, sizeof(v->from), "%s:%u", inet_ntop(AF_INET, ip + 12, text, sizeof(text)), v->sport);
	snprintf(v->to, sizeof(v->to), "%s:%u", inet_ntop(AF_INET, ip + 16, text, sizeof(text)), v->dport);
}

const char *frame_read(const struct frame *f, struct frame_view *v)
{
	size_t at = 12, n_ip, n_tcp, total;
	const uint8_t *ip, *tcp;

	memset(v, 0, sizeof(*v));
	if (f->len < ETH_LEN)
		return "no Ethernet header";
	memcpy(v->to_mac, f->data, 6);
	memcpy(v->from_mac, f->data + 6, 6);
	for (; at + TAG_LEN + 2 <= f->len && v->n_tags < 2; at += TAG_LEN) {
		if (get16(f->data + at) != TYPE_TAG && get16(f->data + at) != TYPE_OUTER_TAG)
			break;
		v->tag[v->n_tags++] = get16(f->data + at + 2);
	}
	if (get16(f->data + at) != TYPE_IP)
		return "not IPv4";
	ip = f->data + at + 2;
	if (f->len < at + 2 + 20)
		return "IP header cut short";
	n_ip = (ip[0] & 15) * 4U;
	total = get16(ip + 2);
	if (ip[0] >> 4 != 4 || n_ip < 20 || f->len < at + 2 + total || total < n_ip + 20)
		return "IP lengths are wrong";
	v->tos = ip[1];
	v->id = get16(ip + 4);
	v->frag = get16(ip + 6);
	v->ttl = ip[8];
	v->n_ip_options = n_ip - 20;
	tcp = ip + n_ip;
	n_tcp = (tcp[12] >> 4) * 4U;
	read_tcp(ip, tcp, v);
	if (sum_fold(sum_words(ip, n_ip, 0)) != 0xffff)
		return "IP checksum is wrong";
	if (ip[9] != IPPROTO_TCP || n_tcp < 20 || n_ip + n_tcp > total)
		return "TCP lengths are wrong";
	v->n_tcp_options = n_tcp - 20;
	v->tcp_options = tcp + 20;
	v->payload = tcp + n_tcp;
	v->n_payload = total - n_ip - n_tcp;
	if (sum_tcp(ip, tcp, total - n_ip) != 0xffff)
		return "TCP checksum is wrong";
	return NULL;
}

const char *frame_text(const struct frame *f)
{
	static char buffers[4][160];
	static unsigned next;
	char *buf = buffers[next++ % 4];
	struct frame_view v;
	const char *wrong = frame_read(f, &v);

	snprintf(buf, sizeof(buffers[0]), "%zu bytes, %s > %s, flags %#x, seq %u, ack %u, ttl %u, payload %zu%s%s", f->len,
		 v.from, v.to, v.flags, v.seq, v.ack, v.ttl, v.n_payload, wrong ? ", " : "", wrong ? wrong : "");
	return buf;
}
