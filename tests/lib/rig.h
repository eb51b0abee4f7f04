/* SPDX-License-Identifier: MIT */
/* The programs and maps in the kernel without an agent: opened, loaded (nothing pinned), memory-mapped, filled record by
 * record, run on single packets. Any failure here is a fault of the test's surroundings: it prints and aborts. */
#pragma once
#include <bpf/libbpf.h>
#include <stdbool.h>
#include "dataplane/load.h"
#include "frame.h"
#include "sy_abi.h"

/* The scratch network namespace:
 *
 *   clients                       this host                       backends
 *   10.1.0.2 .. 10.1.0.9 ---- cl 10.1.0.1   be 10.2.0.1 ---- 10.2.0.10 .. 10.2.0.25
 *   10.64.0.0/10 behind 10.1.0.2                          10.3.0.0/16 behind 10.2.0.10
 *
 * Neighbours are permanent; 10.1.0.200 and 10.2.0.200 are on the link but unknown; there is no default route. */
#define RIG_CLIENT_IF "cl"
#define RIG_BACKEND_IF "be"

enum rig_hook { RIG_XDP, RIG_TC, RIG_N_HOOKS };

struct rig {
	struct bpf_object *object; /* borrowed */
	struct maps maps;
	int fd_hook[RIG_N_HOOKS]; /* steelyard_xdp and steelyard_tc, or -1 */
	int if_client, if_backend; /* by ifindex; their slots in ifaces are (ifindex & 255) */
	uint8_t mac_client_if[6], mac_backend_if[6];
	uint32_t next_region; /* in units of SY_REGION_ALIGN */
	uint32_t next_version;
	uint32_t hz; /* as the programs were told */
};

/* Enter a network namespace of our own, once per process, and make the above. */
void rig_enter_namespace(void);
/* Run a shell command that must succeed. */
void rig_shell(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A global of the object before it is loaded: its bytes, to be written; NULL when there is none of that name. */
void *rig_global(struct bpf_object *object, const char *name, size_t size);
/* Load only the programs whose names start so. */
void rig_only(struct bpf_object *object, const char *prefix);
/* Size the flow table, set the constants, load, map, fill config, interfaces and pool 0 (10.2.0.1, ports 1024-65535).
 * hz: what the programs take for a second, in jiffies; 0: the kernel's. A small one makes seconds short. */
void rig_load(struct rig *r, struct bpf_object *object, uint32_t n_groups, uint32_t hz);
void rig_unload(struct rig *r); /* unmaps; the object stays the caller's */
/* Everything as after rig_load; the sweeper must be quiet. */
void rig_clear(struct rig *r);
int rig_program(const struct rig *r, const char *name);
struct bpf_map *rig_map(const struct rig *r, const char *name);
/* A memory-mapped array of a test's own. */
void *rig_mmap(struct bpf_map *map);

void rig_pool(struct rig *r, uint32_t pool, const char *const *addrs, unsigned n_addrs, uint16_t first, uint16_t last);
/* Service id with one listener; timeouts are the contract's, on_empty reset, no table. */
void rig_service(struct rig *r, uint32_t id, const char *listen);
/* Backend id of generation gen, up; its endpoint has the same id. */
void rig_backend(struct rig *r, uint32_t id, uint32_t service, const char *at, uint32_t gen);
void rig_backend_state(struct rig *r, uint32_t id, enum sy_state state, enum sy_reason reason);
/* Write a fresh region and switch to it. n = 0: the empty table. */
void rig_table(struct rig *r, uint32_t service, const uint32_t *ids, const double *weights, size_t n);

/* The agent's beat as if heard now: next hops held in records count for another second. */
void rig_beat(struct rig *r);
/* The next hop word for a MAC on an interface (its index). */
uint64_t rig_next_hop(const struct rig *r, int ifindex, const uint8_t mac[6]);

/* Sum over the CPUs of each verdict or counter. */
void rig_verdicts(const struct rig *r, uint64_t ret[SY_N_VERDICTS]);
void rig_counts(const struct rig *r, uint64_t ret[SY_N_COUNTERS]);
struct sy_backend_count rig_backend_count(const struct rig *r, uint32_t backend);

/* Run a program once on one frame that came in on ifindex: its return value, *ret the frame as left. */
int rig_run(const struct rig *r, enum rig_hook hook, const struct frame *in, int ifindex, struct frame *ret);
/* Kernels refuse test runs of TC programs on frames that are shorter than their network header. */
bool rig_takes(enum rig_hook hook, const struct frame *in);
/* Run a program of either kind repeat times on a frame that came in on ifindex, for stress and bench: its last value. */
int rig_repeat(int fd, enum rig_hook kind, const struct frame *in, int ifindex, unsigned repeat);

/* A copy of everything that a packet could have written; rig_changed says what differs from now, or NULL. */
struct rig_copy;
struct rig_copy *rig_copy(const struct rig *r);
const char *rig_changed(const struct rig *r, const struct rig_copy *c);
void rig_copy_free(struct rig_copy *c);

/* Lines. */
static inline enum sy_line_state rig_state(uint64_t word)
{
	return (enum sy_line_state)(word & SY_STATE_MASK);
}
struct sy_line *rig_line(const struct rig *r, uint32_t index);
/* The forward or return line whose own key is from > to and which is not FREE; NULL: none. */
struct sy_line *rig_find(const struct rig *r, const char *from, const char *to);
uint32_t rig_index(const struct rig *r, const struct sy_line *l);
/* Kernel jiffies, truncated as in the maps, and how many make a second; both from /proc/timer_list. */
uint32_t rig_jiffies(void);
uint32_t rig_hz(void);
