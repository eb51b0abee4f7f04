/* SPDX-License-Identifier: GPL-2.0 */
/* A packet as the steps see it, and how it is read: Ethernet, IPv4, TCP. Parsing changes nothing. */
#pragma once
#include "base.bpf.h"
#include "flow.bpf.h"

#define ETH_LEN 14
#define IP_LEN 20
#define TCP_LEN 20
#define IP_FRAGMENT 0x3fff /* more fragments, or an offset */

struct pkt {
	struct flow_key key;
	__u32 seq;
	__u32 ack;
	__u32 l4; /* offset of the TCP header in the frame */
	__u32 ip_bytes;
	__u32 payload; /* TCP payload bytes */
	__u8 flags; /* TCP */
	__u8 ttl;
	__u8 zero[2];
	__u64 hash; /* of the key */
	__u64 over_word; /* a closed or evicted flow with the key, which a SYN replaces; 0: none */
	__u32 over_index;
	__u32 zero2;
	__u32 now; /* jiffies */
	int action; /* what the hook is to return, unless the verdict says pass */
};

enum parsed {
	PARSED_OK = 0,
	PARSED_OTHER, /* not IPv4 and TCP, or too broken to say whom it is for: not ours */
	PARSED_FRAGMENT, /* key.addrs is set */
	PARSED_MALFORMED, /* key.addrs is set: IP header fine, TCP cut short or wrong */
};

INLINE __be32 pkt_daddr(const struct pkt *p)
{
	return (__u32)(p->key.addrs >> 32);
}

INLINE __be32 pkt_saddr(const struct pkt *p)
{
	return (__u32)p->key.addrs;
}

/* Lengths come from the IP header, never from the frame: Ethernet pads. But a header that says more than frame_bytes is wrong:
 * the frame was cut short on its way. frame_bytes: all of the frame, where data..data_end may be its beginning. */
INLINE enum parsed pkt_parse(struct pkt *p, void *data, void *data_end, __u32 frame_bytes)
{
	struct ethhdr *eth = data;
	struct iphdr *ip = data + ETH_LEN;
	struct tcphdr *tcp;
	__u32 header, total, l4_bytes, offset;

	if ((void *)(ip + 1) > data_end || eth->h_proto != bpf_htons(ETH_P_IP) || ip->version != 4 || ip->ihl < 5 ||
	    ip->protocol != IPPROTO_TCP)
		return PARSED_OTHER;
	header = ip->ihl * 4;
	total = bpf_ntohs(ip->tot_len);
	p->key.addrs = *(const volatile __u64 *)&ip->saddr;
	p->ip_bytes = total;
	p->ttl = ip->ttl;
	if (ip->frag_off & bpf_htons(IP_FRAGMENT))
		return PARSED_FRAGMENT;
	p->l4 = ETH_LEN + header;
	tcp = data + p->l4;
	if ((void *)(tcp + 1) > data_end || total < header + TCP_LEN)
		return PARSED_MALFORMED;
	offset = tcp->doff * 4;
	l4_bytes = total - header;
	if (offset < TCP_LEN || offset > l4_bytes || ETH_LEN + total > frame_bytes)
		return PARSED_MALFORMED;
	p->key.ports = *(const volatile __u32 *)&tcp->source | ((__u64)IPPROTO_TCP << 32);
	p->seq = bpf_ntohl(tcp->seq);
	p->ack = bpf_ntohl(tcp->ack_seq);
	p->flags = ((const volatile __u8 *)tcp)[13];
	p->payload = l4_bytes - offset;
	return PARSED_OK;
}
