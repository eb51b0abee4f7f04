/* SPDX-License-Identifier: GPL-2.0 */
/* RST segments: 20 bytes of IP, 20 of TCP, the whole checksum computed. Sequence and acknowledgement by RFC 9293, 3.10.7: what
 * acknowledges is answered at that number, what does not is acknowledged whole. */
#pragma once
#include "csum.bpf.h"
#include "pkt.bpf.h"

#define RESET_LEN (ETH_LEN + IP_LEN + TCP_LEN)
#define RESET_TTL 64

struct reset {
	__be32 saddr;
	__be32 daddr;
	__u32 ports; /* sport, dport as on the wire */
	__u32 seq;
	__u32 ack;
	__u8 flags;
	__u8 zero[3];
};

/* To the packet's sender, from whom it was sent to. */
INLINE void reset_to_sender(const struct pkt *p, struct reset *r)
{
	__u32 ports = (__u32)p->key.ports;

	r->saddr = pkt_daddr(p);
	r->daddr = pkt_saddr(p);
	r->ports = (ports << 16) | (ports >> 16);
	if (p->flags & TCP_ACK) {
		r->seq = p->ack;
		r->ack = 0;
		r->flags = TCP_RST;
	} else {
		r->seq = 0;
		r->ack = p->seq + p->payload + !!(p->flags & TCP_SYN) + !!(p->flags & TCP_FIN);
		r->flags = TCP_RST | TCP_ACK;
	}
}

/* Sum of the pseudo header, unfolded. */
INLINE __u32 reset_pseudo(const struct reset *r)
{
	return csum_words(r->saddr) + csum_words(r->daddr) + bpf_htons(IPPROTO_TCP) + bpf_htons(TCP_LEN);
}

/* Both headers, 40 bytes, complete with checksums. */
INLINE void reset_build(const struct reset *r, struct iphdr *ip, struct tcphdr *tcp)
{
	const __u16 *w = (const __u16 *)ip;
	__u32 sum = 0;

	__builtin_memset(ip, 0, sizeof(*ip));
	__builtin_memset(tcp, 0, sizeof(*tcp));
	ip->version = 4;
	ip->ihl = IP_LEN / 4;
	ip->tot_len = bpf_htons(IP_LEN + TCP_LEN);
	ip->frag_off = bpf_htons(0x4000);
	ip->ttl = RESET_TTL;
	ip->protocol = IPPROTO_TCP;
	ip->saddr = r->saddr;
	ip->daddr = r->daddr;
#pragma unroll
	for (int i = 0; i < IP_LEN / 2; i++)
		sum += w[i];
	ip->check = ~csum_fold(sum);

	tcp->source = (__u16)r->ports;
	tcp->dest = (__u16)(r->ports >> 16);
	tcp->seq = bpf_htonl(r->seq);
	tcp->ack_seq = bpf_htonl(r->ack);
	tcp->doff = TCP_LEN / 4;
	((__u8 *)tcp)[13] = r->flags;
	sum = reset_pseudo(r);
	w = (const __u16 *)tcp;
#pragma unroll
	for (int i = 0; i < TCP_LEN / 2; i++)
		sum += w[i];
	tcp->check = ~csum_fold(sum);
}
