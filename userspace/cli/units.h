/* SPDX-License-Identifier: MIT */
/* Numbers as people read them. Each writes into buf (UNITS_LEN bytes) and returns it. Pure. */
#pragma once
#include <stdint.h>

#define UNITS_LEN 40

char *units_count(char buf[static UNITS_LEN], uint64_t n);	 /* 1,234,567 */
char *units_bytes(char buf[static UNITS_LEN], uint64_t bytes);	 /* 999 B, 1.23 kB, 45.6 MB: powers of 1000 */
char *units_percent(char buf[static UNITS_LEN], double part);	 /* 0.1 is "10.00 %"; above 0 never shown as 0 */
char *units_seconds(char buf[static UNITS_LEN], double seconds); /* 0.4 s, 12 s, 3m 5s, 2h 4m, 3d 4h */
char *units_microseconds(char buf[static UNITS_LEN], double us); /* 38 us, 1.2 ms, 3.4 s */
char *units_weight(char buf[static UNITS_LEN], double weight);	 /* shortest text of the number, at most 6 digits */
