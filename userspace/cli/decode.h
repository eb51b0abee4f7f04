/* SPDX-License-Identifier: MIT */
/* Numbers and words of the pinned maps in words. Pure; needs no maps. */
#pragma once
#include <cjson/cJSON.h>
#include <stddef.h>

#define DECODE_KINDS                                                                                                   \
	"verdict, reason, state, line-state, counter, event, word, backend-word, endpoint-word, table-word, "          \
	"line-word, next-hop, isn, backend-flags or iface-flags"

/* Of a list (verdict, reason, state, line-state, counter, event): {"kind","number","name","text",…} of the number or
 * name in value, or with value NULL an array of all. Of a word: an object of its fields, value in hexadecimal; kind
 * "word" reads it as every kind of word. 0 and an owned value; -EINVAL: no such kind, or not a value of it; -ENOENT: a
 * number that this version has not; -ENOMEM. With one line in why. */
int decode_value(const char *kind, const char *value, cJSON **ret, char *why, size_t why_size);
