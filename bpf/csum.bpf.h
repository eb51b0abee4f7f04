/* SPDX-License-Identifier: GPL-2.0 */
/* Internet checksums, RFC 1624: differences of 16-bit words, carries folded at the end. */
#pragma once
#include "base.bpf.h"

INLINE __u32 csum_words(__u32 value)
{
	return (value & 0xffff) + (value >> 16);
}

/* What replacing from by to adds to a sum. */
INLINE __u32 csum_diff(__u32 from, __u32 to)
{
	return csum_words(~from) + csum_words(to);
}

INLINE __u16 csum_fold(__u32 sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

INLINE __u16 csum_apply(__u16 check, __u32 diff)
{
	return ~csum_fold((__u32)(__u16)~check + diff);
}
