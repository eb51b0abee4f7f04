/* SPDX-License-Identifier: MIT */
/* What every cmocka test program starts with, and a case whose name is a sentence. */
#pragma once
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* clang-format off */
#define CASE(sentence, func) {sentence, func, NULL, NULL, NULL}
/* clang-format on */

/* splitmix64: the same numbers on every machine and in every run */
static inline uint64_t unit_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}
