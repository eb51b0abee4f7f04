// SPDX-License-Identifier: GPL-2.0
/* Defines every map and the load-time constants; see maps.bpf.h; flow.bpf.h has one of its own. */
#define SY_STORAGE
#include "flow.bpf.h"

const volatile struct sy_const sy_const = { 0 };
const volatile struct sy_test sy_test = { 0 };

char LICENSE[] SEC("license") = "GPL";
