/* SPDX-License-Identifier: MIT */
/* Make the n-th allocation of a source file fail: include this, then the .c file itself, in the test program. What the
 * program defines so is not taken from the library. */
#pragma once
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static long allocs_left = -1; /* before one fails; below 0: never */

static inline bool alloc_fails(void)
{
	return allocs_left >= 0 && allocs_left-- == 0;
}
__attribute__((unused)) static void *failing_malloc(size_t size)
{
	return alloc_fails() ? NULL : malloc(size);
}
__attribute__((unused)) static void *failing_calloc(size_t n, size_t size)
{
	return alloc_fails() ? NULL : calloc(n, size);
}
__attribute__((unused)) static void *failing_reallocarray(void *p, size_t n, size_t size)
{
	return alloc_fails() ? NULL : reallocarray(p, n, size);
}
__attribute__((unused)) static char *failing_strdup(const char *text)
{
	return alloc_fails() ? NULL : strdup(text);
}
__attribute__((unused)) static char *failing_strndup(const char *text, size_t size)
{
	return alloc_fails() ? NULL : strndup(text, size);
}
#undef strdup
#undef strndup
#define malloc(size)		 failing_malloc(size)
#define calloc(n, size)		 failing_calloc(n, size)
#define reallocarray(p, n, size) failing_reallocarray(p, n, size)
#define strdup(text)		 failing_strdup(text)
#define strndup(text, size)	 failing_strndup(text, size)
