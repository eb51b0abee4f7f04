/* SPDX-License-Identifier: MIT */
/* Clocks and durations. Pure code takes time as an argument; only wiring calls clock_*. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#define NS_PER_S 1000000000ULL
#define NS_PER_MS 1000000ULL
#define NS_PER_US 1000ULL

uint64_t clock_monotonic_ns(void);
uint64_t clock_realtime_ns(void);
uint64_t clock_boottime_ns(void);

/* "250ms", "15s", "2h4m", "0s", "1m30s"; a bare "0" too. 0, or -EINVAL with *ret_ns untouched. */
int duration_parse(const char *text, uint64_t *ret_ns);
/* Shortest exact form of the above into buf (at least 32 bytes). Returns buf. */
char *duration_format(uint64_t ns, char *buf, size_t size);
/* RFC 3339 UTC with milliseconds, "2026-01-31T12:00:00.123Z", into buf (at least 32 bytes). Returns buf. */
char *time_format(uint64_t realtime_ns, char *buf, size_t size);
