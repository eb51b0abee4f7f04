/* SPDX-License-Identifier: MIT */
/* The flow table against what must hold whenever no packet is under way: every flow has both halves and they agree, no key
 * and no port is there twice, nothing is left half done, counts of active flows are exact. */
#pragma once
#include "rig.h"

struct lines_report {
	uint32_t n[SY_N_LINE_STATES]; /* lines by state */
	uint32_t n_reset; /* live forward lines with the RESET flag */
	/* faults */
	uint32_t stuck; /* BUSY or NEW */
	uint32_t half; /* a live forward line without its return line, or the other way round */
	uint32_t mismatched; /* the halves' keys and rewrites are not each other's reverse */
	uint32_t twice; /* another line has the same key: a flow twice, or a port given twice */
	uint32_t miscounted; /* backends whose active count is wrong */
	uint32_t other_bits; /* flags where none may be, or a state that is none */
};

/* Look at a copy of the table, taken at once. Returns the sum of the faults. */
uint32_t lines_check(const struct rig *r, struct lines_report *ret);
/* Faults that stay: the sweeper may be at work on single lines, so a fault counts only when it is still there after
 * several looks, milliseconds apart. */
uint32_t lines_check_settled(const struct rig *r, struct lines_report *ret);
/* For a failure message; static storage. */
const char *lines_text(const struct lines_report *report);
