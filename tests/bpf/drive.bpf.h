/* SPDX-License-Identifier: GPL-2.0 */
/* Driving the programs under test packet by packet from inside the kernel: BPF_PROG_TEST_RUN does not put a packet back
 * between repeats, so a wrapper writes the headers of the next packet of the next flow, calls the steps, and reads what
 * they made of it. Flow f of generation g is a client address, a port and sequence numbers computed from both; what the
 * wrapper learns (source port, backend) it keeps in drive_flows, as a client and a backend would. */
#pragma once
#include "base.bpf.h"

#define DRIVE_FLOWS (1 << 19)
#define DRIVE_OPS (1 << 20)

#define DRIVE_CLIENTS 0x0a400000U /* 10.64.0.0 + flow */
#define DRIVE_BACKENDS 0x0a030000U /* 10.3.0.0 + backend */
#define DRIVE_BACKEND_PORT(b) (8000 + ((b) & 1023))
#define DRIVE_LISTENER 0x0a000064U /* 10.0.0.100 */
#define DRIVE_LISTENER_PORT 80
#define DRIVE_SOURCE 0x0a020001U /* 10.2.0.1 */
#define DRIVE_LEN 54

enum drive_op {
	DRIVE_SYN,
	DRIVE_SYNACK,
	DRIVE_ACK, /* client data, and what establishes */
	DRIVE_DATA, /* backend data */
	DRIVE_FIN_CLIENT,
	DRIVE_FIN_BACKEND,
	DRIVE_RST_CLIENT,
	DRIVE_RST_BACKEND,
	DRIVE_N_OPS
};

struct drive_step {
	__u32 flow; /* below DRIVE_FLOWS */
	__u16 op;
	__u16 gen; /* makes the client port, so that a flow can begin again elsewhere in the table */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, DRIVE_OPS);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct drive_step);
} drive_ops SEC(".maps");

/* what the wrapper saw go to the backend: bit 63 set, bits 47..16 backend, bits 15..0 source port */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, DRIVE_FLOWS);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, __u64);
} drive_flows SEC(".maps");

__u64 drive_next = 0; /* step to take next, when one CPU walks drive_ops */
__u64 drive_torn = 0; /* packets that came out with anything but one flow's own rewrite */
__u64 drive_sent = 0; /* packets that came out sent */
__u64 drive_to = 0; /* MAC that packets are addressed to, wire order in the low 48 bits: the interface's own */
__u32 drive_mask = 0; /* number of steps - 1 */
__u32 drive_shared_ports = 0; /* clients share a few ports, so that they want each other's source ports */

INLINE __u32 drive_mix(__u32 h)
{
	h ^= h >> 16;
	h *= 0x85ebca6b;
	h ^= h >> 13;
	h *= 0xc2b2ae35;
	return h ^ (h >> 16);
}

INLINE __u16 drive_client_port(__u32 flow, __u32 gen)
{
	if (drive_shared_ports)
		return 2000 + flow % (flow < 8 ? 2 : flow < 64 ? 8 : 50);
	return (drive_mix(flow + (gen << 20)) & 0xffff) | 0x400;
}

INLINE __u32 drive_backend_isn(__u64 seen)
{
	return drive_mix((__u32)seen) | 1;
}

INLINE __u32 drive_client_isn(__u32 flow, __u32 gen)
{
	return drive_mix(flow ^ (gen << 19) ^ 0x5bd1e995);
}

INLINE int drive_from_backend(__u32 op)
{
	return op == DRIVE_SYNACK || op == DRIVE_DATA || op == DRIVE_FIN_BACKEND || op == DRIVE_RST_BACKEND;
}

/* Cheap for the bench: a few plain stores, whatever the packet. */
INLINE void drive_write(void *d, __u32 saddr, __u32 daddr, __u32 ports, __u32 seq, __u32 ack, __u8 flags)
{
	*(volatile __u32 *)d = drive_to;
	*(volatile __u16 *)(d + 4) = drive_to >> 32;
	*(volatile __u16 *)(d + 22) = bpf_htons(64 << 8 | IPPROTO_TCP);
	*(volatile __u32 *)(d + 26) = bpf_htonl(saddr);
	*(volatile __u32 *)(d + 30) = bpf_htonl(daddr);
	*(volatile __u32 *)(d + 34) = ports;
	*(volatile __u32 *)(d + 38) = bpf_htonl(seq);
	*(volatile __u32 *)(d + 42) = bpf_htonl(ack);
	*(volatile __u8 *)(d + 47) = flags;
}

/* Write the packet. -1: nothing can be written, the flow has no backend yet. */
INLINE int drive_packet(void *d, void *end, __u32 flow, __u32 gen, __u32 op)
{
	__u64 *seen = bpf_map_lookup_elem(&drive_flows, &flow);
	__u32 client_seq, backend_seq, flags;
	__u64 v;

	if (!seen || d + DRIVE_LEN > end)
		return -1;
	v = READ_ONCE(*seen);
	client_seq = drive_client_isn(flow, gen);
	backend_seq = drive_backend_isn(v);
	flags = 0x1414111110101202ULL >> ((op & (DRIVE_N_OPS - 1)) * 8); /* TCP flags of each operation, a byte each */
	if (drive_from_backend(op)) {
		__u32 backend = v >> 16;

		if (!v)
			return -1;
		drive_write(d, DRIVE_BACKENDS + backend, DRIVE_SOURCE,
			    bpf_htons(DRIVE_BACKEND_PORT(backend)) | ((__u32)bpf_htons((__u16)v) << 16),
			    backend_seq + (op != DRIVE_SYNACK), client_seq + 1, flags);
	} else {
		drive_write(d, DRIVE_CLIENTS + flow, DRIVE_LISTENER,
			    bpf_htons(drive_client_port(flow, gen)) | ((__u32)bpf_htons(DRIVE_LISTENER_PORT) << 16),
			    client_seq + (op != DRIVE_SYN), op == DRIVE_SYN ? 0 : backend_seq + 1, flags);
	}
	return 0;
}

/* After the steps sent the packet on: is it whole, one flow's own? Remember where a client's went. */
INLINE void drive_look(void *d, void *end, __u32 flow, __u32 gen, __u32 op)
{
	__u32 saddr, daddr, sport, dport, other;
	__u64 *seen;

	if (d + DRIVE_LEN > end)
		return;
	__sync_fetch_and_add(&drive_sent, 1);
	saddr = bpf_ntohl(*(volatile __u32 *)(d + 26));
	daddr = bpf_ntohl(*(volatile __u32 *)(d + 30));
	sport = bpf_ntohs(*(volatile __u16 *)(d + 34));
	dport = bpf_ntohs(*(volatile __u16 *)(d + 36));
	if (drive_from_backend(op)) {
		other = daddr - DRIVE_CLIENTS;
		if (saddr != DRIVE_LISTENER || sport != DRIVE_LISTENER_PORT || other >= DRIVE_FLOWS ||
		    (drive_shared_ports && dport != drive_client_port(other, gen)))
			__sync_fetch_and_add(&drive_torn, 1);
		return;
	}
	other = daddr - DRIVE_BACKENDS;
	if (saddr != DRIVE_SOURCE || other >= 65536 || dport != DRIVE_BACKEND_PORT(other)) {
		__sync_fetch_and_add(&drive_torn, 1);
		return;
	}
	seen = bpf_map_lookup_elem(&drive_flows, &flow);
	if (seen)
		WRITE_ONCE(*seen, 1ULL << 63 | (__u64)other << 16 | sport);
}
