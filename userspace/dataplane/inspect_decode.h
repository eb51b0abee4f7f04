/* SPDX-License-Identifier: MIT */
/* Decoding map entries to JSON. Private to dataplane. */
#pragma once
#include <linux/bpf.h>
#include "inspect_private.h"

void inspect_add_ipv4(cJSON *o, const char *key, __be32 addr);
void inspect_add_mac(cJSON *o, const char *key, const uint8_t *mac);
void inspect_add_hex(cJSON *o, const char *key, uint64_t value);
/* A new object with one number, appended; borrowed. */
cJSON *inspect_add_entry(cJSON *entries, const char *key, uint64_t value);
bool inspect_is_zero(const void *bytes, size_t size);

/* Append the entries of a hash, by the map's name; of another map: nothing. */
void inspect_decode_hash(const struct inspect *i, const char *name, cJSON *entries);
/* One entry an index and CPU of a per-CPU array. */
void inspect_decode_per_cpu(const struct inspect *i, const char *name, int fd, const struct bpf_map_info *info,
			    cJSON *entries);
