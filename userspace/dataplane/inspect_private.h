/* SPDX-License-Identifier: MIT */
/* What the files of inspect share. Private to dataplane. */
#pragma once
#include "inspect.h"

struct inspect {
	struct maps own;	       /* opened by inspect_open */
	struct maps *maps;	       /* borrowed, or &own */
	char **names;		       /* owned, by service id: as printed; NULL: no such service */
	struct sy_service_info *infos; /* owned, n_ids of them, in the order of ids */
	uint32_t *ids;		       /* owned: services in use, ascending */
	size_t n_ids;
};

/* Sums over CPUs, and what the programs count. */
struct inspect_sums {
	uint64_t connections, packets, bytes, active;
};

/* Names and ids of services; read once, at first use. 0 or -ENOMEM. */
int inspect_names(struct inspect *i);
void inspect_sum_backend(const struct inspect *i, uint32_t id, struct inspect_sums *sums);
/* A whole published table, as a reader has it: version checked before and after. */
struct inspect_table {
	uint32_t *bounds, *ids; /* owned */
	double *weights;	/* owned */
	size_t n;
	long double total;
};
int inspect_read_table(const struct inspect *i, uint32_t service, struct inspect_table *ret);
void inspect_table_done(struct inspect_table *t);
/* Text of a backend's address, from its record when there is no text. */
void inspect_backend_info(const struct inspect *i, uint32_t id, struct sy_backend_info *ret);
bool inspect_backend_in_use(const struct inspect *i, uint32_t id);
void inspect_endpoint(const __be32 addr, __be16 port, char *buf, size_t size);

const char *inspect_state_name(unsigned state);
const char *inspect_reason_name(unsigned reason);
const char *inspect_line_state_name(uint64_t word);
/* "ADDR" or "ADDR:PORT" against an address; NULL fits all. */
bool inspect_fits(const char *filter, __be32 addr, __be16 port);
/* The kernel's jiffies now, as lines hold them; false: the sweeper has never run. */
bool inspect_jiffies(const struct inspect *i, uint32_t *ret);
