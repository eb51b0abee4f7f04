/* SPDX-License-Identifier: MIT */
/* From a document to the checked configuration. */
#pragma once
#include "config.h"
#include "config_doc.h"

/* 0 and an owned configuration; -EINVAL: the document's errors say why; -ENOMEM. */
int config_read(struct config_doc *d, struct config **ret);
