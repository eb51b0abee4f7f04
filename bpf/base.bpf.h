/* SPDX-License-Identifier: GPL-2.0 */
/* What every kernel-side file starts from. */
#pragma once
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/tcp.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
#include "sy_abi.h"

#define INLINE static __always_inline
/* a stack frame of its own: the frames of a chain of calls share 512 bytes */
#define NOINLINE static __attribute__((noinline, unused))

#define READ_ONCE(x) (*(const volatile typeof(x) *)&(x))
#define WRITE_ONCE(x, v) (*(volatile typeof(x) *)&(x) = (v))
/* x86-64 keeps loads in order and stores in order: the compiler is what has to be told */
#define barrier() asm volatile("" ::: "memory")
/* keep clang from turning arithmetic on x back into a branch */
#define opaque(x) asm volatile("" : "+r"(x))

#define CAS(p, old, new) __sync_val_compare_and_swap((p), (old), (new))
