/* SPDX-License-Identifier: MIT */
/* Registry kind "file": a folder of *.json, one ServiceInfo each, watched with inotify. A file that does not parse or
 * is empty keeps what was; a deleted file is gone after 1 s (a snapshot without instances); of two files for one
 * service the first by name counts. While the folder itself is away the registry is down and nothing changes. */
#pragma once
#include "registry.h"

/* Owned; NULL with errno. path need not exist yet (state down until it does). */
struct registry *file_new(struct event_base *loop, const char *name, const char *path,
			  const struct registry_sink *sink);
