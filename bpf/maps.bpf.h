/* SPDX-License-Identifier: GPL-2.0 */
/* Every map and the load-time constants, once. maps.bpf.c defines them; the other objects see them as extern and the linker
 * joins them. Key, value, byte order and limits of each are told in sy_abi.h, where the records are. */
#pragma once
#include "base.bpf.h"

#ifndef SY_STORAGE
#define SY_STORAGE extern
#endif

#define SY_MAP(NAME, TYPE, KEY, VALUE, ENTRIES, FLAGS)                                                                 \
	SY_STORAGE struct {                                                                                            \
		__uint(type, BPF_MAP_TYPE_##TYPE);                                                                     \
		__uint(max_entries, ENTRIES);                                                                          \
		__uint(map_flags, FLAGS);                                                                              \
		__type(key, KEY);                                                                                      \
		__type(value, VALUE);                                                                                  \
	} NAME SEC(".maps")

/* The real sizes of lines (from the number of flows) and counters (from the number of CPUs) are set at load. */
SY_MAP(lines, ARRAY, __u32, struct sy_group, 64, BPF_F_MMAPABLE);
SY_MAP(backends, ARRAY, __u32, struct sy_backend, SY_MAX_BACKENDS, BPF_F_MMAPABLE);
SY_MAP(loads, ARRAY, __u32, struct sy_load, SY_MAX_BACKENDS, BPF_F_MMAPABLE);
SY_MAP(endpoints, ARRAY, __u32, struct sy_endpoint, SY_MAX_ENDPOINTS, BPF_F_MMAPABLE);
SY_MAP(counters, ARRAY, __u32, struct sy_backend_count, SY_MAX_BACKENDS, BPF_F_MMAPABLE);
SY_MAP(services, ARRAY, __u32, struct sy_service, SY_MAX_SERVICES, BPF_F_MMAPABLE);
SY_MAP(tables, ARRAY, __u32, struct sy_table_area, 1, BPF_F_MMAPABLE);
SY_MAP(pools, ARRAY, __u32, struct sy_pool, SY_MAX_POOLS, BPF_F_MMAPABLE);
SY_MAP(ifaces, ARRAY, __u32, struct sy_iface, SY_MAX_IFACES, BPF_F_MMAPABLE);
SY_MAP(config, ARRAY, __u32, struct sy_config, 1, BPF_F_MMAPABLE);
SY_MAP(listeners4, HASH, struct sy_listener_key, struct sy_listener, SY_MAX_LISTENERS, 0);
SY_MAP(vips4, HASH, __be32, __u32, SY_MAX_LISTENERS, 0);
SY_MAP(service_info, HASH, __u32, struct sy_service_info, SY_MAX_SERVICES, BPF_F_NO_PREALLOC);
SY_MAP(backend_info, HASH, __u32, struct sy_backend_info, SY_MAX_BACKENDS, BPF_F_NO_PREALLOC);
SY_MAP(nh_cache, PERCPU_ARRAY, __u32, struct sy_nh, SY_NH_CACHE, 0);
SY_MAP(cpu_state, PERCPU_ARRAY, __u32, struct sy_cpu, 1, 0);
SY_MAP(verdicts, PERCPU_ARRAY, __u32, __u64, SY_N_VERDICTS, 0);
SY_MAP(counts, PERCPU_ARRAY, __u32, __u64, SY_N_COUNTERS, 0);

/* struct sy_sweep with the timer under its own type, which the kernel looks for; not memory-mapped: a timer forbids it */
struct sweep_value {
	struct bpf_timer timer;
	__u32 cursor;
	__u32 last_beat;
	__u64 visits;
	__u64 rounds;
	__u64 jiffies;
	__u64 boottime_ns;
	__u32 last_visit;
	__u32 armed;
	__u64 suspect_word;
	__u32 suspect_index;
	__u32 suspect_since;
};
_Static_assert(sizeof(struct sweep_value) == sizeof(struct sy_sweep), "sy_sweep");
SY_MAP(sweep, ARRAY, __u32, struct sweep_value, 1, 0);

SY_STORAGE struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 18);
} events SEC(".maps");

extern const volatile struct sy_const sy_const;
extern const volatile struct sy_test sy_test;
