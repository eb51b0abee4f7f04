/* SPDX-License-Identifier: MIT */
/* Reading the pinned maps for people: every report as the JSON of the contract (ARCHITECTURE.md, "JSON"). Needs no
 * agent. All return an owned cJSON or NULL with errno and a sentence in why. */
#pragma once
#include <cjson/cJSON.h>
#include "load.h"

struct inspect; /* open pin folder plus indexes by name */

struct inspect *inspect_open(const char *pin_dir, char *why, size_t why_size);
/* Over maps that the caller keeps open (the agent's own). */
struct inspect *inspect_over(struct maps *maps);
void inspect_close(struct inspect *i);

/* SERVICE: "GROUP@@name", "registry/GROUP@@name", "registry/ns/GROUP@@name" or a unique bare name. 0 and the id,
 * -ENOENT, -EEXIST: not unique (why lists them). */
int inspect_find_service(struct inspect *i, const char *text, uint32_t *ret, char *why, size_t why_size);
/* The name to print: with registry/ or registry/ns/ before it only where ambiguous. Owned. */
char *inspect_service_name(struct inspect *i, uint32_t service);

struct inspect_flow_filter {
	int64_t service;	      /* -1: all */
	const char *backend, *client; /* "ADDR" or "ADDR:PORT"; NULL: all */
	uint64_t limit;		      /* 0: none */
};

cJSON *inspect_services(struct inspect *i);
cJSON *inspect_backends(struct inspect *i, int64_t service); /* -1: all */
cJSON *inspect_table(struct inspect *i, uint32_t service);
cJSON *inspect_flows(struct inspect *i, const struct inspect_flow_filter *f);
cJSON *inspect_stats(struct inspect *i);
cJSON *inspect_flow_counts(struct inspect *i);	/* {"established","half_open","capacity"} */
cJSON *inspect_maps(struct inspect *i);		/* dump --maps */
cJSON *inspect_interfaces(const char *pin_dir); /* [{"name","attach","programs":[…]}] from the pinned links */
