/* SPDX-License-Identifier: MIT */
/* What people read about backends: addresses and clusters as text. Private to dataplane. */
#pragma once
#include "publish_private.h"

/* Write backend_info of those whose text is not what was written; ids by candidate, 0: skipped. Many at once in one
 * call to the kernel where it takes that. 0 or -errno. */
int publish_text_write(struct publish *p, const struct selection *sel, const uint32_t *ids);
/* What of a text may change while the id stays: the cluster. The address is what the id was given out for. */
uint64_t publish_text_hash(const char *cluster);
/* Of an address that is none: of as much of its text as a record keeps, so that the next agent finds it by that. */
uint64_t publish_text_bad_hash(const char *address);
