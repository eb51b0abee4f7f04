/* SPDX-License-Identifier: MIT */
/* Decoding entries of maps that are not memory-mapped, and what all decoders build their JSON with. */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <stdio.h>
#include <string.h>
#include "../base/cleanup.h"
#include "../base/json.h"
#include "inspect_decode.h"

void inspect_add_ipv4(cJSON *o, const char *key, __be32 addr)
{
	char text[INET_ADDRSTRLEN] = "";

	(void)inet_ntop(AF_INET, &addr, text, sizeof(text));
	(void)cJSON_AddStringToObject(o, key, text);
}

void inspect_add_mac(cJSON *o, const char *key, const uint8_t *mac)
{
	char text[18];

	(void)snprintf(text, sizeof(text), "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3], mac[4],
		       mac[5]);
	(void)cJSON_AddStringToObject(o, key, text);
}

void inspect_add_hex(cJSON *o, const char *key, uint64_t value)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "0x%016llx", (unsigned long long)value);
	(void)cJSON_AddStringToObject(o, key, text);
}

cJSON *inspect_add_entry(cJSON *entries, const char *key, uint64_t value)
{
	cJSON *o = cJSON_CreateObject();

	(void)json_add_u64(o, key, value);
	(void)cJSON_AddItemToArray(entries, o);
	return o;
}

bool inspect_is_zero(const void *bytes, size_t size)
{
	const unsigned char *b = bytes;

	return !size || (!b[0] && !memcmp(b, b + 1, size - 1));
}

/* Maps that are not memory-mapped: calls back with each key and value, a bounded number of times. */
static void walk(int fd, size_t value_bytes, void (*cb)(cJSON *o, const void *key, const void *value), cJSON *entries)
{
	_cleanup_free_ char *value = calloc(1, value_bytes);
	char key[16], *at = NULL;

	for (uint32_t n = 0; value && n < 2 * SY_MAX_BACKENDS && bpf_map_get_next_key(fd, at, key) == 0; n++) {
		cJSON *o;

		at = key;
		if (bpf_map_lookup_elem(fd, key, value))
			continue;
		o = cJSON_CreateObject();
		cb(o, key, value);
		if (o->child)
			(void)cJSON_AddItemToArray(entries, o);
		else
			cJSON_Delete(o);
	}
}

static void show_listener(cJSON *o, const void *key, const void *value)
{
	const struct sy_listener_key *k = key;
	char text[32];

	inspect_endpoint(k->addr, k->port, text, sizeof(text));
	(void)cJSON_AddStringToObject(o, "listen", text);
	(void)json_add_u64(o, "protocol", k->proto);
	(void)json_add_u64(o, "service", ((const struct sy_listener *)value)->service);
}

static void show_vip(cJSON *o, const void *key, const void *value)
{
	inspect_add_ipv4(o, "address", *(const __be32 *)key);
	(void)json_add_u64(o, "listeners", *(const uint32_t *)value);
}

static void show_service_info(cJSON *o, const void *key, const void *value)
{
	const struct sy_service_info *s = value;

	(void)json_add_u64(o, "id", *(const uint32_t *)key);
	(void)cJSON_AddStringToObject(o, "registry", s->registry);
	(void)cJSON_AddStringToObject(o, "namespace", s->ns);
	(void)cJSON_AddStringToObject(o, "group", s->group);
	(void)cJSON_AddStringToObject(o, "name", s->name);
}

static void show_backend_info(cJSON *o, const void *key, const void *value)
{
	const struct sy_backend_info *b = value;

	(void)json_add_u64(o, "id", *(const uint32_t *)key);
	(void)cJSON_AddStringToObject(o, "address", b->address);
	(void)cJSON_AddStringToObject(o, "cluster", b->cluster);
}

void inspect_decode_hash(const struct inspect *i, const char *name, cJSON *entries)
{
	if (!strcmp(name, "listeners4"))
		walk(i->maps->fd_listeners4, sizeof(struct sy_listener), show_listener, entries);
	else if (!strcmp(name, "vips4"))
		walk(i->maps->fd_vips4, sizeof(uint32_t), show_vip, entries);
	else if (!strcmp(name, "service_info"))
		walk(i->maps->fd_service_info, sizeof(struct sy_service_info), show_service_info, entries);
	else if (!strcmp(name, "backend_info"))
		walk(i->maps->fd_backend_info, sizeof(struct sy_backend_info), show_backend_info, entries);
}

static void show_u64(cJSON *o, const void *value)
{
	(void)json_add_u64(o, "value", *(const uint64_t *)value);
}

static void show_cpu(cJSON *o, const void *value)
{
	const struct sy_cpu *c = value;

	(void)json_add_u64(o, "ids", c->ids);
	(void)json_add_u64(o, "port_walk", c->port_walk);
}

static void show_nh(cJSON *o, const void *value)
{
	const struct sy_nh *h = value;

	inspect_add_ipv4(o, "destination", h->daddr);
	(void)json_add_u64(o, "epoch", h->epoch);
	(void)json_add_u64(o, "ifindex", h->ifindex);
	inspect_add_mac(o, "mac", h->dmac);
}

/* Per-CPU arrays: one entry an index and CPU. */
void inspect_decode_per_cpu(const struct inspect *i, const char *name, int fd, const struct bpf_map_info *info,
			    cJSON *entries)
{
	void (*show)(cJSON * o, const void *value) = !strcmp(name, "nh_cache")	  ? show_nh
						     : !strcmp(name, "cpu_state") ? show_cpu
										  : show_u64;
	size_t stride = (info->value_size + 7) & ~7U;
	_cleanup_free_ char *values = calloc(i->maps->config->n_cpus, stride);

	for (uint32_t index = 0; values && index < info->max_entries; index++) {
		if (bpf_map_lookup_elem(fd, &index, values))
			continue;
		for (uint32_t cpu = 0; cpu < i->maps->config->n_cpus; cpu++) {
			cJSON *o;

			if (inspect_is_zero(values + cpu * stride, stride))
				continue;
			o = inspect_add_entry(entries, "index", index);
			(void)json_add_u64(o, "cpu", cpu);
			show(o, values + cpu * stride);
		}
	}
}
