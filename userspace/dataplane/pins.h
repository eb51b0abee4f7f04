/* SPDX-License-Identifier: MIT */
/* The pin folder: names, the lock, and what is found there. Private to dataplane. */
#pragma once
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Every map, as named in bpf/maps.bpf.h and in the pin folder; config last, since a folder that has it is complete. */
#define PINS_MAPS(X)                                                                                                   \
	X(lines)                                                                                                       \
	X(sweep)                                                                                                       \
	X(backends)                                                                                                    \
	X(loads)                                                                                                       \
	X(endpoints)                                                                                                   \
	X(counters)                                                                                                    \
	X(services)                                                                                                    \
	X(tables)                                                                                                      \
	X(service_info)                                                                                                \
	X(backend_info)                                                                                                \
	X(listeners4)                                                                                                  \
	X(vips4)                                                                                                       \
	X(pools)                                                                                                       \
	X(ifaces)                                                                                                      \
	X(nh_cache)                                                                                                    \
	X(cpu_state)                                                                                                   \
	X(verdicts)                                                                                                    \
	X(counts)                                                                                                      \
	X(events)                                                                                                      \
	X(config)

/* What is pinned under links/ for one interface: the two kinds of link, and for kernels without tcx a folder each that
 * says that our clsact filter is there and that the clsact qdisc is of our making. */
enum pins_link { PINS_LINK_XDP, PINS_LINK_TC, PINS_MARK_FILTER, PINS_MARK_CLSACT, PINS_N_LINKS };

/* Handle and priority of our clsact filter. */
#define PINS_FILTER_HANDLE 0x5359

/* Paths into buf of PATH_MAX; -ENAMETOOLONG. Dots of interface names are escaped: bpffs refuses them. */
int pins_map_path(const char *pin_dir, const char *map, char buf[static PATH_MAX]);
int pins_link_path(const char *pin_dir, enum pins_link kind, const char *interface, char buf[static PATH_MAX]);
/* The other way: a file name under links/. false: none of ours. */
bool pins_link_parse(const char *file, enum pins_link *ret_kind, char interface[static 64]);
/* The first entry under links/ that is of ours and of none of the interfaces to keep; false: none. */
bool pins_next_link(const char *pin_dir, const char *const *keep, size_t n_keep, enum pins_link *ret_kind,
		    char interface[static 64]);

/* Make the folder (and mount bpffs at /sys/fs/bpf when it lies there and that is not mounted). 0 or -errno; -EINVAL: it
 * is on no bpffs. */
int pins_make(const char *pin_dir);
/* Take the folder's lock: an open fd that holds it; -EWOULDBLOCK: another agent has it; -ENOENT: no folder. */
int pins_lock(const char *pin_dir);
/* Unlink every map's pin. Names that are not ours stay. */
void pins_remove_maps(const char *pin_dir);
