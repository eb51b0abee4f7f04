/* SPDX-License-Identifier: MIT */
/* A pin folder and a network namespace of a test's own, with what an agent does to them: load, publish, go away, come
 * back. Failures of the surroundings print and abort. */
#pragma once
#include "dataplane/inspect.h"
#include "dataplane/load.h"
#include "dataplane/publish.h"

#define PINNED_FLOWS 1024

/* Enter a network namespace of our own, once per process. */
void pinned_enter_namespace(void);
/* Run a shell command; its exit status. */
int pinned_shell(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The folder of this process. */
const char *pinned_dir(void);
/* Open it as an agent does; must succeed. */
struct load *pinned_load(void);
/* Take programs and pins away, whoever left them. */
void pinned_remove(void);

struct pinned_instance {
	const char *at; /* "A.B.C.D:PORT", or a bad address */
	double weight;
	bool unhealthy;
	const char *cluster; /* NULL: "DEFAULT" */
};
/* Select and publish what a registry listing these would make of it. gone backends drain. */
int pinned_publish(struct publish *p, uint32_t service, const struct pinned_instance *list, size_t n, uint64_t now_ns,
		   struct publish_stats *ret);
/* The same with rules and the state of gone ones. */
int pinned_publish_by(struct publish *p, uint32_t service, const struct pinned_instance *list, size_t n,
		      const struct selector_rules *rules, enum sy_state gone, uint64_t now_ns,
		      struct publish_stats *ret);
/* A service of registry "test", group DEFAULT_GROUP, with one listener (NULL: none). */
int pinned_service(struct publish *p, const char *name, const char *listen, uint64_t drain_deadline_ns,
		   uint32_t *ret_id);

/* Everything the agent writes, as one number: memory-mapped maps and hashes. */
uint64_t pinned_digest(const struct maps *m);
/* The backend at an address, 0: none. The first that is no duplicate. */
uint32_t pinned_find(const struct maps *m, uint32_t service, const char *at);
