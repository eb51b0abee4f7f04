/* SPDX-License-Identifier: MIT */
/* Ports that this host's own TCP sockets listen on, in the caller's network namespace. Private to dataplane. */
#pragma once

/* Calls back with each port, repeatedly when several sockets share it. Asks the kernel for listening sockets alone;
 * where it has no such answer, /proc is read. */
void listeners_for_each(void (*cb)(void *ctx, unsigned port), void *ctx);

/* Pure: the local port of one line of /proc/net/tcp or tcp6 when it listens, else -1. */
int listeners_parse(const char *line);
