/* SPDX-License-Identifier: MIT */
/* dump --maps: each pinned map with what the kernel says about it and its entries, decoded field by field. Entries that
 * are all zero, or not in use, are left out. */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <string.h>
#include "../base/cleanup.h"
#include "../base/json.h"
#include "inspect_decode.h"
#include "maps.h"
#include "publish_private.h"

static void add_word(cJSON *o, uint64_t word)
{
	(void)json_add_u64(o, "backend_generation", SY_WORD_GEN(word));
	(void)cJSON_AddStringToObject(o, "state", inspect_state_name(SY_WORD_STATE(word)));
	(void)cJSON_AddStringToObject(o, "reason", inspect_reason_name(SY_WORD_REASON(word)));
}

static void decode_lines(const struct inspect *i, cJSON *entries)
{
	for (uint64_t index = 0; index < (uint64_t)i->maps->config->n_groups * SY_LINES_PER_GROUP; index++) {
		const struct sy_line *l = &i->maps->groups[index / SY_LINES_PER_GROUP].line[index % SY_LINES_PER_GROUP];
		char text[32];
		cJSON *o;

		if (!l->word)
			continue;
		o = inspect_add_entry(entries, "index", index);
		(void)cJSON_AddStringToObject(o, "state", inspect_line_state_name(l->word));
		inspect_add_hex(o, "word", l->word);
		inspect_endpoint(l->saddr, l->sport, text, sizeof(text));
		(void)cJSON_AddStringToObject(o, "source", text);
		inspect_endpoint(l->daddr, l->dport, text, sizeof(text));
		(void)cJSON_AddStringToObject(o, "destination", text);
		inspect_endpoint(l->new_saddr, l->new_sport, text, sizeof(text));
		(void)cJSON_AddStringToObject(o, "new_source", text);
		inspect_endpoint(l->new_daddr, l->new_dport, text, sizeof(text));
		(void)cJSON_AddStringToObject(o, "new_destination", text);
		(void)json_add_u64(o, "mate", l->mate);
		(void)json_add_u64(o, "seen", l->seen);
		(void)json_add_u64(o, "backend", l->backend);
		(void)json_add_u64(o, "backend_generation", l->backend_gen);
		inspect_add_hex(o, "aux", l->aux);
	}
}

static void decode_sweep(const struct inspect *i, cJSON *entries)
{
	const uint32_t zero = 0;
	struct sy_sweep s;
	cJSON *o;

	if (bpf_map_lookup_elem(i->maps->fd_sweep, &zero, &s))
		return;
	o = inspect_add_entry(entries, "cursor", s.cursor);
	(void)json_add_u64(o, "visits", s.visits);
	(void)json_add_u64(o, "rounds", s.rounds);
	(void)json_add_u64(o, "jiffies", s.jiffies);
	(void)json_add_u64(o, "boottime_ns", s.boottime_ns);
	(void)json_add_u64(o, "last_beat", s.last_beat);
	(void)json_add_u64(o, "armed", s.armed);
}

static void decode_backends(const struct inspect *i, cJSON *entries)
{
	for (uint32_t id = 1; id < SY_MAX_BACKENDS; id++) {
		const struct sy_backend *b = &i->maps->backends[id];
		struct sy_backend_info info;
		double weight;
		cJSON *o;

		if (!backend_in_use(b))
			continue;
		inspect_backend_info(i, id, &info);
		memcpy(&weight, &b->weight, sizeof(weight));
		o = inspect_add_entry(entries, "id", id);
		(void)cJSON_AddStringToObject(o, "address", info.address);
		add_word(o, b->word);
		(void)cJSON_AddBoolToObject(o, "listed", b->flags & SY_B_LISTED);
		(void)cJSON_AddBoolToObject(o, "member", b->flags & SY_B_MEMBER);
		(void)json_add_u64(o, "service", b->service);
		(void)json_add_u64(o, "endpoint", b->endpoint);
		(void)json_add_u64(o, "pool", b->pool);
		inspect_add_mac(o, "next_hop_mac", (const uint8_t *)&b->nh);
		(void)json_add_u64(o, "next_hop_slot", SY_NH_SLOT(b->nh));
		(void)json_add_u64(o, "next_hop_epoch", SY_NH_EPOCH(b->nh));
		(void)json_add_double(o, "weight", weight);
		(void)json_add_u64(o, "since_ns", b->since_ns);
	}
}

static void decode_loads(const struct inspect *i, cJSON *entries)
{
	for (uint32_t id = 1; id < SY_MAX_BACKENDS; id++) {
		const struct sy_load *l = &i->maps->loads[id];
		cJSON *o;

		if (inspect_is_zero(l, sizeof(*l)))
			continue;
		o = inspect_add_entry(entries, "backend", id);
		(void)json_add_u64(o, "active", l->active);
		inspect_add_hex(o, "word", l->word);
		(void)json_add_u64(o, "cursor", l->cursor);
		(void)json_add_u64(o, "refused", l->refused);
	}
}

static void decode_endpoints(const struct inspect *i, cJSON *entries)
{
	for (uint32_t id = 1; id < SY_MAX_ENDPOINTS; id++) {
		const struct sy_endpoint *e = &i->maps->endpoints[id];
		cJSON *o;

		if (inspect_is_zero(e, sizeof(*e)))
			continue;
		o = inspect_add_entry(entries, "endpoint", id);
		(void)json_add_u64(o, "agent", e->agent);
		(void)json_add_u64(o, "program", e->program);
	}
}

static void decode_counters(const struct inspect *i, cJSON *entries)
{
	for (uint64_t k = 0; k < (uint64_t)i->maps->config->n_cpus * SY_MAX_BACKENDS; k++) {
		const struct sy_backend_count *c = &i->maps->counters[k];
		cJSON *o;

		if (inspect_is_zero(c, sizeof(*c)))
			continue;
		o = inspect_add_entry(entries, "cpu", k / SY_MAX_BACKENDS);
		(void)json_add_u64(o, "backend", k % SY_MAX_BACKENDS);
		(void)json_add_u64(o, "packets", c->packets);
		(void)json_add_u64(o, "bytes", c->bytes);
		(void)json_add_u64(o, "connections", c->connections);
		(void)json_add_u64(o, "picks", c->picks);
	}
}

static void decode_services(const struct inspect *i, cJSON *entries)
{
	for (uint32_t id = 0; id < SY_MAX_SERVICES; id++) {
		const struct sy_service *s = &i->maps->services[id];
		cJSON *o, *timeouts;

		if (!s->used)
			continue;
		o = inspect_add_entry(entries, "id", id);
		(void)json_add_u64(o, "table_offset", (uint64_t)SY_TABLE_OFF(s->table) * SY_REGION_ALIGN);
		(void)json_add_u64(o, "table_members", SY_TABLE_LEN(s->table));
		(void)json_add_u64(o, "table_version", SY_TABLE_VER(s->table));
		(void)json_add_u64(o, "mode", s->mode);
		(void)json_add_u64(o, "algorithm", s->algorithm);
		(void)json_add_u64(o, "on_empty", s->on_empty);
		timeouts = cJSON_AddArrayToObject(o, "timeouts_jiffies");
		for (unsigned t = 0; t < SY_N_TIMEOUTS; t++)
			(void)cJSON_AddItemToArray(timeouts, cJSON_CreateNumber(s->timeout[t]));
		(void)json_add_u64(o, "generation", s->generation);
		(void)json_add_u64(o, "since_ns", s->since_ns);
		(void)json_add_u64(o, "source", s->source);
		(void)json_add_u64(o, "n_backends", s->n_backends);
		(void)json_add_u64(o, "apply_ns", s->apply_ns);
	}
}

static void decode_tables(const struct inspect *i, cJSON *entries)
{
	for (uint32_t id = 0; id < SY_MAX_SERVICES; id++) {
		_cleanup_(inspect_table_done) struct inspect_table t = {0};
		cJSON *o, *bounds, *ids;

		if (!i->maps->services[id].used || inspect_read_table(i, id, &t))
			continue;
		o = inspect_add_entry(entries, "service", id);
		bounds = cJSON_AddArrayToObject(o, "bounds");
		ids = cJSON_AddArrayToObject(o, "backends");
		for (size_t k = 0; k < t.n; k++) {
			(void)cJSON_AddItemToArray(bounds, cJSON_CreateNumber(t.bounds[k]));
			(void)cJSON_AddItemToArray(ids, cJSON_CreateNumber(t.ids[k]));
		}
	}
}

static void decode_pools(const struct inspect *i, cJSON *entries)
{
	for (uint32_t k = 0; k < SY_MAX_POOLS; k++) {
		const struct sy_pool *p = &i->maps->pools[k];
		cJSON *o, *addresses;

		if (!p->n_addrs)
			continue;
		o = inspect_add_entry(entries, "pool", k);
		addresses = cJSON_AddArrayToObject(o, "addresses");
		for (uint32_t a = 0; a < p->n_addrs && a < SY_MAX_POOL_ADDRS; a++) {
			char text[INET_ADDRSTRLEN] = "";

			(void)inet_ntop(AF_INET, &p->addr[a], text, sizeof(text));
			(void)cJSON_AddItemToArray(addresses, cJSON_CreateString(text));
		}
		(void)json_add_u64(o, "ports", p->n_ports);
		(void)json_add_u64(o, "first_port", p->n_ports ? p->port[0] : 0);
		(void)json_add_u64(o, "last_port", p->n_ports ? p->port[(p->n_ports - 1) % SY_MAX_POOL_PORTS] : 0);
	}
}

static void decode_ifaces(const struct inspect *i, cJSON *entries)
{
	for (uint32_t slot = 1; slot < SY_MAX_IFACES; slot++) {
		const struct sy_iface *f = &i->maps->ifaces[slot];
		cJSON *o;

		if (!f->ifindex)
			continue;
		o = inspect_add_entry(entries, "slot", slot);
		(void)json_add_u64(o, "ifindex", f->ifindex);
		inspect_add_mac(o, "mac", f->mac);
		(void)json_add_u64(o, "mtu", f->mtu);
		(void)cJSON_AddBoolToObject(o, "xdp_xmit", f->flags & SY_IF_XDP_XMIT);
		(void)cJSON_AddBoolToObject(o, "redirect", f->flags & SY_IF_REDIRECT);
	}
}

static void decode_config(const struct inspect *i, cJSON *entries)
{
	const struct sy_config *c = i->maps->config;
	cJSON *o = inspect_add_entry(entries, "layout", c->layout), *timeouts;

	/* the secret places flows: who knows it can make them collide, so it is not shown */
	(void)json_add_u64(o, "n_groups", c->n_groups);
	(void)json_add_u64(o, "hz", c->hz);
	(void)json_add_u64(o, "n_cpus", c->n_cpus);
	(void)json_add_u64(o, "flows", c->flows);
	(void)json_add_u64(o, "epoch", c->epoch);
	(void)json_add_u64(o, "beat", c->beat);
	(void)json_add_u64(o, "beat_jiffies", c->beat_jiffies);
	(void)json_add_u64(o, "min_timeout_jiffies", c->min_timeout);
	timeouts = cJSON_AddArrayToObject(o, "default_timeouts_jiffies");
	for (unsigned t = 0; t < SY_N_TIMEOUTS; t++)
		(void)cJSON_AddItemToArray(timeouts, cJSON_CreateNumber(c->default_timeout[t]));
}

static void decode(const struct inspect *i, const struct maps_row *row, const struct bpf_map_info *info, cJSON *entries)
{
	static const struct {
		const char *name;
		void (*decode)(const struct inspect *i, cJSON *entries);
	} decoders[] = {
		{"lines", decode_lines},       {"sweep", decode_sweep},		{"backends", decode_backends},
		{"loads", decode_loads},       {"endpoints", decode_endpoints}, {"counters", decode_counters},
		{"services", decode_services}, {"tables", decode_tables},	{"pools", decode_pools},
		{"ifaces", decode_ifaces},     {"config", decode_config},
	};

	for (size_t k = 0; k < sizeof(decoders) / sizeof(decoders[0]); k++)
		if (!strcmp(row->name, decoders[k].name))
			decoders[k].decode(i, entries);
	inspect_decode_hash(i, row->name, entries);
	if (info->type == BPF_MAP_TYPE_PERCPU_ARRAY)
		inspect_decode_per_cpu(i, row->name, maps_fd(i->maps, row), info, entries);
}

cJSON *inspect_maps(struct inspect *i)
{
	cJSON *out = cJSON_CreateArray(), *entries;
	const struct maps_row *rows;
	size_t n = maps_rows(&rows);

	for (size_t k = 0; k < n; k++) {
		struct bpf_map_info info = {0};
		__u32 size = sizeof(info);
		cJSON *o = cJSON_CreateObject();

		(void)bpf_obj_get_info_by_fd(maps_fd(i->maps, &rows[k]), &info, &size);
		(void)cJSON_AddStringToObject(o, "name", rows[k].name);
		(void)json_add_u64(o, "id", info.id);
		(void)cJSON_AddStringToObject(o, "type", libbpf_bpf_map_type_str(info.type));
		(void)json_add_u64(o, "key_bytes", info.key_size);
		(void)json_add_u64(o, "value_bytes", info.value_size);
		(void)json_add_u64(o, "size", info.max_entries);
		(void)json_add_u64(o, "layout", i->maps->config->layout);
		entries = cJSON_CreateArray();
		decode(i, &rows[k], &info, entries);
		(void)json_add_u64(o, "use", (uint64_t)cJSON_GetArraySize(entries));
		(void)cJSON_AddItemToObject(o, "entries", entries);
		(void)cJSON_AddItemToArray(out, o);
	}
	return out;
}
