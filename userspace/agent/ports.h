/* SPDX-License-Identifier: MIT */
/* The configured interfaces: attached when they are there, waited for when not. */
#pragma once
#include "../dataplane/load.h"
#include "config.h"

struct port {
	char *name; /* owned */
	enum config_attach attach;
	enum config_foreign_xdp foreign_xdp;
	unsigned ifindex; /* attached to; 0: waiting */
	unsigned kinds;	  /* set of enum attach_kind */
	bool told;	  /* its present trouble is logged */
	bool wanted;
};

struct ports {
	struct load *load; /* borrowed */
	struct port *list; /* owned */
	size_t n;
};

/* Attach what is new or changed, detach what is no longer wanted. 0; an interface that is missing is no failure; else
 * the first -errno with a sentence in why, the others being attached all the same. */
int ports_configure(struct ports *p, const struct config *c, char *why, size_t why_size);
/* Every second: attach what has come, notice what has gone or was made anew. */
void ports_check(struct ports *p);
/* Leaves the programs where they are. */
void ports_done(struct ports *p);
