/* SPDX-License-Identifier: MIT */
/* UTF-8: what is one character, what is valid, where a text may be cut. Pure. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

/* Bytes of the well-formed character (RFC 3629: no surrogates, no overlong forms) that text starts with, 1..4; 0: none.
 */
size_t utf8_char(const char *text, size_t size);
bool utf8_valid(const char *text, size_t size);
/* Greatest length of at most max bytes that does not split a character; text is valid UTF-8 with a zero behind it. */
size_t utf8_cut(const char *text, size_t max);
