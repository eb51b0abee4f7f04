/* SPDX-License-Identifier: MIT */
/* How many jiffies a second has: the kernel does not say, so it is measured. Private to dataplane. */
#pragma once
#include <stdint.h>

/* Takes about 0.2 s. 0 and the count, or -errno of loading or running the three-instruction program that reads jiffies.
 */
int hz_measure(uint32_t *ret_hz);
/* Pure: the frequency that n_jiffies in ns comes from: one that kernels are built with if it is within 2 %, else
 * rounded. */
uint32_t hz_from(uint64_t n_jiffies, uint64_t ns);
