/* SPDX-License-Identifier: MIT */
/* What people read about backends: addresses and clusters as text. Private to dataplane. */
#pragma once
#include "publish_private.h"

/* Write backend_info of those whose text is not what was written; ids by candidate, 0: skipped. Many at once in one
 * call to the kernel where it takes that. 0 or -errno. */
int publish_text_write(struct publish *p, const struct selection *sel, const uint32_t *ids);
/* Of a record that is there already, for adoption. */
uint64_t publish_text_hash(const struct sy_backend_info *info);
