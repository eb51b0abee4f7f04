/* SPDX-License-Identifier: MIT */
/* The list of maps as data, for those who walk over all of them. Private to dataplane. */
#pragma once
#include "load.h"

struct maps_row {
	const char *name;   /* of the map, and of its pin */
	size_t fd;	    /* offset of its fd in struct maps */
	size_t area;	    /* offset of the pointer to its memory, 0: not memory-mapped */
	size_t value_bytes; /* of one element, when memory-mapped */
};

size_t maps_rows(const struct maps_row **ret);
int maps_fd(const struct maps *m, const struct maps_row *row);
