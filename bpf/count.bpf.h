/* SPDX-License-Identifier: GPL-2.0 */
/* Counting: verdicts, counters of other things, per-backend counts, events. */
#pragma once
#include "maps.bpf.h"

INLINE void count_verdict(__u32 verdict)
{
	__u64 *n = bpf_map_lookup_elem(&verdicts, &verdict);

	if (n)
		(*n)++;
}

INLINE void count(__u32 counter)
{
	__u64 *n = bpf_map_lookup_elem(&counts, &counter);

	if (n)
		(*n)++;
}

INLINE struct sy_backend_count *count_of_backend(__u32 backend)
{
	__u32 i = bpf_get_smp_processor_id() * SY_MAX_BACKENDS + backend;

	return bpf_map_lookup_elem(&counters, &i);
}

INLINE void count_packet(__u32 backend, __u32 ip_bytes)
{
	struct sy_backend_count *c = count_of_backend(backend);

	if (c) {
		c->packets++;
		c->bytes += ip_bytes;
	}
}

/* At most ten events a second and CPU reach the agent: what it needs to know is that it happens. */
NOINLINE void count_event(__u32 kind, __u32 service, __u32 backend, __be32 client)
{
	__u32 zero = 0, now = bpf_jiffies64();
	struct sy_cpu *cpu = bpf_map_lookup_elem(&cpu_state, &zero);
	struct sy_event *e;

	if (!cpu || now - cpu->event_stamp < sy_const.hz / 10)
		return;
	cpu->event_stamp = now;
	e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);
	if (!e) {
		count(SY_C_EVENTS_LOST);
		return;
	}
	e->boottime_ns = bpf_ktime_get_boot_ns();
	e->kind = kind;
	e->service = service;
	e->backend = backend;
	e->client = client;
	bpf_ringbuf_submit(e, 0);
}
