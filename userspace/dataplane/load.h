/* SPDX-License-Identifier: MIT */
/* Programs and maps in the kernel: loading, pinning, adoption of what an earlier agent pinned, attaching. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "sy_abi.h"

/* Every pinned map opened and, where memory-mapped, mapped. Writable for the agent, read-only for the CLI. */
struct maps {
	int fd_lines, fd_sweep, fd_backends, fd_loads, fd_endpoints, fd_counters, fd_services, fd_tables,
		fd_service_info, fd_backend_info, fd_listeners4, fd_vips4, fd_pools, fd_ifaces, fd_nh_cache, fd_config,
		fd_cpu_state, fd_verdicts, fd_counts, fd_events;
	struct sy_group *groups;	   /* config->n_groups of them */
	struct sy_backend *backends;	   /* SY_MAX_BACKENDS */
	struct sy_load *loads;		   /* SY_MAX_BACKENDS */
	struct sy_endpoint *endpoints;	   /* SY_MAX_ENDPOINTS */
	struct sy_backend_count *counters; /* config->n_cpus * SY_MAX_BACKENDS */
	struct sy_service *services;	   /* SY_MAX_SERVICES */
	struct sy_table_area *tables;
	struct sy_pool *pools;	 /* SY_MAX_POOLS */
	struct sy_iface *ifaces; /* SY_MAX_IFACES */
	struct sy_config *config;
};

/* Open an existing pin folder, for reading or (detach, tests) writing. 0; -ENOENT: nothing pinned there; -EPROTO:
 * another layout version (*ret_layout says which); -EPERM, -EACCES. */
int maps_open(const char *pin_dir, bool writable, struct maps *ret, uint32_t *ret_layout);
void maps_close(struct maps *m);

struct load_options {
	const char *pin_dir;
	uint32_t flows;
	bool quiet; /* keep libbpf's own lines to itself */
};

struct load; /* the agent's hold on programs, maps and the pin folder */

/* Which exit status a failure of load_open deserves is in ret_fail. */
enum load_fail { LOAD_OK, LOAD_FEATURE, LOAD_DIRECTORY, LOAD_LOCKED, LOAD_PERMISSION, LOAD_LAYOUT, LOAD_OTHER };

/* Lock the folder (one agent per folder), adopt or create the maps, load the programs, arm the sweeper, pin all. Mounts
 * bpffs at /sys/fs/bpf if the folder lies there and it is not mounted. Failure: NULL, *ret_fail and a sentence in why.
 */
struct load *load_open(const struct load_options *o, enum load_fail *ret_fail, char *why, size_t why_size);
/* Leaves programs, links and pins as they are: traffic goes on. */
void load_close(struct load *l);
struct maps *load_maps(struct load *l);
bool load_adopted(const struct load *l); /* found pins of an earlier agent */

/* Run one of the programs by section-less name ("steelyard_xdp", "steelyard_tc") for tests and benches: borrowed fd. */
int load_program_fd(const struct load *l, const char *name);

enum attach_kind { ATTACH_NONE = 0, ATTACH_XDP_NATIVE = 1, ATTACH_TCX = 2, ATTACH_CLSACT = 4 };
struct attach_request {
	const char *interface;
	int mode;	   /* enum config_attach's values: 0 auto, 1 native, 2 tc */
	bool foreign_stop; /* someone else's XDP program: fail instead of TC alone */
};
/* 0 and *ret_kinds (a set of enum attach_kind); -ENODEV: no such interface yet; -EBUSY: foreign XDP and foreign_stop;
 * else -errno. why gets a sentence on failure, and on success a warning or "". A link of an earlier agent is updated in
 * place. */
int load_attach(struct load *l, const struct attach_request *r, unsigned *ret_kinds, char *why, size_t why_size);
/* Take our programs off one interface. */
int load_detach(struct load *l, const char *interface);
/* Take them off every interface but these: what an earlier agent attached and the configuration no longer names. */
void load_detach_others(struct load *l, const char *const *interfaces, size_t n);

/* Remove programs, links and pins of a folder. -EBUSY: an agent lives and force is false. */
int load_remove(const char *pin_dir, bool force, char *why, size_t why_size);
