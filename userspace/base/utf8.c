// SPDX-License-Identifier: MIT
#include "utf8.h"
#include <stdint.h>
#include <string.h>

static bool is_continuation(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

size_t utf8_char(const char *text, size_t size)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000}; /* less is an overlong form */
	uint32_t code;
	size_t n;

	if (size == 0)
		return 0;
	code = (unsigned char)text[0];
	if (code < 0x80)
		return 1;
	n = code >= 0xf0 ? 4 : code >= 0xe0 ? 3 : 2;
	if (code < 0xc0 || code >= 0xf8 || n > size)
		return 0;
	code &= 0x7fU >> n;
	for (size_t i = 1; i < n; i++) {
		if (!is_continuation(text[i]))
			return 0;
		code = code << 6 | ((unsigned char)text[i] & 0x3f);
	}
	if (code < least[n] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
		return 0;
	return n;
}

/* Bytes below 0x80 that text starts with, eight at a time: JSON is little else. */
static size_t ascii_prefix(const char *text, size_t size)
{
	uint64_t eight;
	size_t n = 0;

	for (; size - n >= sizeof(eight); n += sizeof(eight)) {
		memcpy(&eight, text + n, sizeof(eight));
		if (eight & 0x8080808080808080ULL)
			break;
	}
	return n;
}

bool utf8_valid(const char *text, size_t size)
{
	for (size_t i = ascii_prefix(text, size), n; i < size; i += n + ascii_prefix(text + i + n, size - i - n)) {
		n = utf8_char(text + i, size - i);
		if (n == 0)
			return false;
	}
	return true;
}

size_t utf8_cut(const char *text, size_t max)
{
	size_t n = strnlen(text, max + 1);

	if (n <= max)
		return n;
	for (n = max; n > 0 && is_continuation(text[n]); n--)
		;
	return n;
}
