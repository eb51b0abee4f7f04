// SPDX-License-Identifier: MIT
/* See rig.h. */
#include "rig.h"
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/bpf.h>
#include <math.h>
#include <net/if.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include "policy/table.h"

#define N_BACKEND_NEIGHBOURS 16
#define N_CLIENT_NEIGHBOURS 8

__attribute__((format(printf, 1, 2), noreturn)) static void fail(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	fputs("rig: ", stderr);
	vfprintf(stderr, format, ap);
	fputc('\n', stderr);
	va_end(ap);
	abort();
}

void rig_shell(const char *format, ...)
{
	char command[1024];
	va_list ap;

	va_start(ap, format);
	vsnprintf(command, sizeof(command), format, ap);
	va_end(ap);
	if (system(command) != 0)
		fail("failed: %s", command);
}

void rig_enter_namespace(void)
{
	static bool entered;

	if (entered)
		return;
	if (unshare(CLONE_NEWNET))
		fail("unshare: %m (root is needed)");
	entered = true;
	rig_shell("ip link set lo up; for i in cl be; do "
		  "ip link add $i type veth peer name $i-far && ip link set $i up && ip link set $i-far up || exit 1; done");
	rig_shell("ip addr add 10.1.0.1/24 dev cl && ip addr add 10.2.0.1/24 dev be && ip addr add 10.0.0.100/32 dev lo");
	rig_shell("echo 1 >/proc/sys/net/ipv4/ip_forward; echo 1 >/proc/sys/net/ipv4/conf/cl/forwarding; "
		  "echo 1 >/proc/sys/net/ipv4/conf/be/forwarding");
	for (int i = 0; i < N_CLIENT_NEIGHBOURS; i++)
		rig_shell("ip neigh add 10.1.0.%d lladdr 02:00:00:01:00:%02x dev cl nud permanent", 2 + i, 2 + i);
	for (int i = 0; i < N_BACKEND_NEIGHBOURS; i++)
		rig_shell("ip neigh add 10.2.0.%d lladdr 02:00:00:02:00:%02x dev be nud permanent", 10 + i, 10 + i);
	rig_shell("ip route add 10.64.0.0/10 via 10.1.0.2; ip route add 10.3.0.0/16 via 10.2.0.10");
}

/* ---- opening ---- */

void *rig_global(struct bpf_object *object, const char *name, size_t size)
{
	const struct btf *btf = bpf_object__btf(object);
	struct bpf_map *map;

	bpf_object__for_each_map(map, object) {
		uint32_t type = bpf_map__btf_value_type_id(map);
		const struct btf_type *t = type ? btf__type_by_id(btf, type) : NULL;
		size_t n;
		/* the same bytes that a skeleton's ->rodata points to: writable until the object is loaded */
		char *data = (char *)(uintptr_t)bpf_map__initial_value(map, &n);

		if (!t || !data || !btf_is_datasec(t))
			continue;
		for (int i = 0; i < btf_vlen(t); i++) {
			const struct btf_var_secinfo *v = btf_var_secinfos(t) + i;
			const struct btf_type *var = btf__type_by_id(btf, v->type);

			if (strcmp(btf__name_by_offset(btf, var->name_off), name))
				continue;
			if (v->size != size)
				fail("%s has %u bytes, not %zu", name, v->size, size);
			return data + v->offset;
		}
	}
	return NULL;
}

struct bpf_map *rig_map(const struct rig *r, const char *name)
{
	struct bpf_map *map = bpf_object__find_map_by_name(r->object, name);

	if (!map)
		fail("no map %s", name);
	return map;
}

int rig_program(const struct rig *r, const char *name)
{
	struct bpf_program *p = bpf_object__find_program_by_name(r->object, name);

	return p && bpf_program__autoload(p) ? bpf_program__fd(p) : -1;
}

static size_t mmap_size(const struct bpf_map *map)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), value = (bpf_map__value_size(map) + 7U) & ~7U;

	return (value * bpf_map__max_entries(map) + page - 1) & ~(page - 1);
}

void *rig_mmap(struct bpf_map *map)
{
	void *p = mmap(NULL, mmap_size(map), PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);

	if (p == MAP_FAILED)
		fail("mmap of %s: %m", bpf_map__name(map));
	return p;
}

/* The maps by name, one line each: where its descriptor goes and, if it is memory-mapped, its address. */
#define RIG_MAPPED(X) X(backends) X(loads) X(endpoints) X(counters) X(services) X(tables) X(pools) X(ifaces) X(config)
#define RIG_PLAIN(X)                                                                                                   \
	X(sweep) X(service_info) X(backend_info) X(listeners4) X(vips4) X(nh_cache) X(cpu_state) X(verdicts) X(counts) X(events)

static void map_all(struct rig *r)
{
	struct maps *m = &r->maps;

	m->fd_lines = bpf_map__fd(rig_map(r, "lines"));
	m->groups = rig_mmap(rig_map(r, "lines"));
#define X(NAME)                                                                                                        \
	m->fd_##NAME = bpf_map__fd(rig_map(r, #NAME));                                                                 \
	m->NAME = rig_mmap(rig_map(r, #NAME));
	RIG_MAPPED(X)
#undef X
#define X(NAME) m->fd_##NAME = bpf_map__fd(rig_map(r, #NAME));
	RIG_PLAIN(X)
#undef X
}

void rig_unload(struct rig *r)
{
	munmap(r->maps.groups, mmap_size(rig_map(r, "lines")));
#define X(NAME) munmap(r->maps.NAME, mmap_size(rig_map(r, #NAME)));
	RIG_MAPPED(X)
#undef X
	*r = (struct rig){ 0 };
}

static void fill_constants(struct rig *r)
{
	struct sy_config *c = r->maps.config;

	*c = (struct sy_config){ .layout = SY_LAYOUT_VERSION,
				 .n_groups = bpf_map__max_entries(rig_map(r, "lines")),
				 .hz = r->hz,
				 .n_cpus = (uint32_t)libbpf_num_possible_cpus(),
				 .epoch = c->epoch + 1 };
	c->flows = c->n_groups * SY_LINES_PER_GROUP / SY_LINES_PER_FLOW;
	const uint32_t seconds[SY_N_TIMEOUTS] = { 60, 7440, 300, 30, 10 };
	for (int i = 0; i < SY_N_TIMEOUTS; i++)
		c->default_timeout[i] = seconds[i] * c->hz;
	c->min_timeout = 10 * c->hz;
	for (int i = 0; i < 8; i++)
		c->secret[i] = 0x9e3779b9U * (uint32_t)(i + 1) | 1;
}

static void fill_iface(struct rig *r, const char *name, int *ret_index, uint8_t mac[6])
{
	char command[64], text[32] = "";
	struct sy_iface *iface;
	FILE *f;

	*ret_index = (int)if_nametoindex(name);
	/* /sys shows the namespace of whoever mounted it, so ask by netlink */
	snprintf(command, sizeof(command), "ip -o link show %s", name);
	f = popen(command, "r");
	if (!f || *ret_index == 0)
		fail("no interface %s", name);
	for (char line[512]; fgets(line, sizeof(line), f);) {
		const char *at = strstr(line, "link/ether ");

		if (at)
			snprintf(text, sizeof(text), "%.17s", at + 11);
	}
	pclose(f);
	if (sscanf(text, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", mac, mac + 1, mac + 2, mac + 3, mac + 4, mac + 5) != 6)
		fail("no address of %s", name);
	iface = &r->maps.ifaces[*ret_index & (SY_MAX_IFACES - 1)];
	*iface = (struct sy_iface){ .ifindex = (uint32_t)*ret_index, .flags = SY_IF_XDP_XMIT, .mtu = 1500 };
	memcpy(iface->mac, mac, 6);
}

static void fill(struct rig *r)
{
	fill_constants(r);
	fill_iface(r, RIG_CLIENT_IF, &r->if_client, r->mac_client_if);
	fill_iface(r, RIG_BACKEND_IF, &r->if_backend, r->mac_backend_if);
	rig_pool(r, 0, (const char *const[]){ "10.2.0.1" }, 1, 1024, 65535);
	rig_beat(r);
}

void rig_only(struct bpf_object *object, const char *prefix)
{
	struct bpf_program *p;

	bpf_object__for_each_program(p, object)
		bpf_program__set_autoload(p, !strncmp(bpf_program__name(p), prefix, strlen(prefix)));
}

/* libbpf's lines, of the verifier's log only the end, where it says what is wrong. */
static int print_end(enum libbpf_print_level level, const char *format, va_list ap)
{
	char *text;
	int n;

	if (level != LIBBPF_WARN)
		return 0;
	n = vasprintf(&text, format, ap);
	if (n < 0)
		return 0;
	fputs(n > 2000 ? text + n - 2000 : text, stderr);
	free(text);
	return 0;
}

void rig_load(struct rig *r, struct bpf_object *object, uint32_t n_groups, uint32_t hz)
{
	struct sy_const *k;
	int rc;

	*r = (struct rig){ .object = object, .hz = hz ? hz : rig_hz() };
	libbpf_set_print(print_end);
	if (!object)
		fail("the object does not open: %m");
	k = rig_global(object, "sy_const", sizeof(*k));
	if (!k)
		fail("no sy_const in the object");
	*k = (struct sy_const){ .group_mask = n_groups - 1,
				 .hz = r->hz,
				 .n_cpus = (uint32_t)libbpf_num_possible_cpus() };
	for (int i = 0; i < 8; i++)
		k->secret[i] = 0x9e3779b9U * (uint32_t)(i + 1) | 1;
	bpf_map__set_max_entries(rig_map(r, "lines"), n_groups);
	bpf_map__set_max_entries(rig_map(r, "counters"), k->n_cpus * SY_MAX_BACKENDS);
	rc = bpf_object__load(object);
	if (rc)
		fail("the object does not load: %s", strerror(-rc));
	map_all(r);
	fill(r);
	r->fd_hook[RIG_XDP] = rig_program(r, "steelyard_xdp");
	r->fd_hook[RIG_TC] = rig_program(r, "steelyard_tc");
}

/* ---- emptying ---- */

static void clear_hash(int fd)
{
	uint8_t key[64];

	while (bpf_map_get_next_key(fd, NULL, key) == 0)
		if (bpf_map_delete_elem(fd, key))
			fail("delete: %m");
}

static void clear_percpu(const struct bpf_map *map)
{
	size_t n = (size_t)libbpf_num_possible_cpus() * ((bpf_map__value_size(map) + 7U) & ~7U);
	void *zero = calloc(1, n);

	for (uint32_t i = 0; zero && i < bpf_map__max_entries(map); i++)
		if (bpf_map_update_elem(bpf_map__fd(map), &i, zero, BPF_ANY))
			fail("clearing %s: %m", bpf_map__name(map));
	free(zero);
}

void rig_clear(struct rig *r)
{
	struct maps *m = &r->maps;

	memset(m->groups, 0, mmap_size(rig_map(r, "lines")));
	memset(m->backends, 0, mmap_size(rig_map(r, "backends")));
	memset(m->loads, 0, mmap_size(rig_map(r, "loads")));
	memset(m->endpoints, 0, mmap_size(rig_map(r, "endpoints")));
	memset(m->counters, 0, mmap_size(rig_map(r, "counters")));
	memset(m->services, 0, mmap_size(rig_map(r, "services")));
	memset(m->ifaces, 0, mmap_size(rig_map(r, "ifaces")));
	clear_hash(m->fd_listeners4);
	clear_hash(m->fd_vips4);
	clear_percpu(rig_map(r, "verdicts"));
	clear_percpu(rig_map(r, "counts"));
	r->next_region = 0;
	fill(r);
}

/* ---- records ---- */

void rig_pool(struct rig *r, uint32_t pool, const char *const *addrs, unsigned n_addrs, uint16_t first, uint16_t last)
{
	struct sy_pool *p = &r->maps.pools[pool];

	memset(p, 0, sizeof(*p));
	for (unsigned i = 0; i < n_addrs; i++)
		if (inet_pton(AF_INET, addrs[i], &p->addr[i]) != 1)
			fail("not an address: %s", addrs[i]);
	for (uint32_t port = first; port <= last; port++) {
		p->port[p->n_ports++] = (uint16_t)port;
		p->member[port / 64] |= 1ULL << port % 64;
	}
	p->n_addrs = n_addrs;
}

void rig_service(struct rig *r, uint32_t id, const char *listen)
{
	struct sy_listener_key key = { .proto = IPPROTO_TCP };
	struct sy_listener value = { .service = id };
	struct sy_service *s = &r->maps.services[id];
	uint32_t n = 0;
	uint16_t port;

	frame_address(listen, &key.addr, &port);
	key.port = htons(port);
	*s = (struct sy_service){ .used = 1, .source = SY_SOURCE_LIVE };
	memcpy(s->timeout, r->maps.config->default_timeout, sizeof(s->timeout));
	(void)bpf_map_lookup_elem(r->maps.fd_vips4, &key.addr, &n);
	n++;
	if (bpf_map_update_elem(r->maps.fd_vips4, &key.addr, &n, BPF_ANY) ||
	    bpf_map_update_elem(r->maps.fd_listeners4, &key, &value, BPF_ANY))
		fail("listener %s: %m", listen);
}

void rig_backend(struct rig *r, uint32_t id, uint32_t service, const char *at, uint32_t gen)
{
	struct sy_backend b = { .word = SY_BACKEND_WORD(gen, SY_UP, SY_R_NONE),
				.flags = SY_B_LISTED | SY_B_MEMBER,
				.family = AF_INET,
				.service = service,
				.endpoint = id };
	uint16_t port;

	frame_address(at, &b.addr[3], &port);
	b.addr[2] = htonl(0xffff);
	b.port = htons(port);
	r->maps.backends[id] = b;
	r->maps.endpoints[id] = (struct sy_endpoint){ 0 };
}

void rig_backend_state(struct rig *r, uint32_t id, enum sy_state state, enum sy_reason reason)
{
	__u64 *word = &r->maps.backends[id].word;

	__atomic_store_n(word, SY_BACKEND_WORD(SY_WORD_GEN(*word), state, reason), __ATOMIC_SEQ_CST);
}

void rig_table(struct rig *r, uint32_t service, const uint32_t *ids, const double *weights, size_t n)
{
	struct sy_service *s = &r->maps.services[service];
	size_t bytes = n ? table_region_bytes(n) : 0;
	uint32_t *bounds = calloc(n + 1, sizeof(*bounds));

	if (!bounds || (n && table_bounds(weights, n, bounds)))
		fail("bounds of %zu members", n);
	if ((uint64_t)r->next_region * SY_REGION_ALIGN + bytes > SY_TABLE_BYTES)
		r->next_region = 0;
	if (n)
		table_region_write((uint8_t *)r->maps.tables + (size_t)r->next_region * SY_REGION_ALIGN, bounds, ids, n);
	__atomic_store_n(&s->table, SY_TABLE_WORD(r->next_region, n, ++r->next_version & 0x7fffff), __ATOMIC_SEQ_CST);
	s->generation++;
	r->next_region += (uint32_t)(bytes / SY_REGION_ALIGN);
	free(bounds);
}

void rig_beat(struct rig *r)
{
	__atomic_store_n(&r->maps.config->beat_jiffies, rig_jiffies(), __ATOMIC_SEQ_CST);
}

uint64_t rig_next_hop(const struct rig *r, int ifindex, const uint8_t mac[6])
{
	uint64_t word = 0;

	memcpy(&word, mac, 6);
	return word | (uint64_t)(ifindex & (SY_MAX_IFACES - 1)) << 48 | (uint64_t)(r->maps.config->epoch & 0xff) << 56;
}

/* ---- lines ---- */

struct sy_line *rig_line(const struct rig *r, uint32_t index)
{
	return &r->maps.groups[index / SY_LINES_PER_GROUP].line[index % SY_LINES_PER_GROUP];
}

uint32_t rig_index(const struct rig *r, const struct sy_line *l)
{
	return (uint32_t)(l - rig_line(r, 0));
}

struct sy_line *rig_find(const struct rig *r, const char *from, const char *to)
{
	__be32 saddr, daddr;
	uint16_t sport, dport;

	frame_address(from, &saddr, &sport);
	frame_address(to, &daddr, &dport);
	for (uint32_t i = 0; i < r->maps.config->n_groups * SY_LINES_PER_GROUP; i++) {
		struct sy_line *l = rig_line(r, i);

		if (rig_state(l->word) != SY_FREE && l->saddr == saddr && l->daddr == daddr && l->sport == htons(sport) &&
		    l->dport == htons(dport))
			return l;
	}
	return NULL;
}

/* ---- time ---- */

uint32_t rig_jiffies(void)
{
	FILE *f = fopen("/proc/timer_list", "r");
	unsigned long long v = 0;

	if (!f)
		fail("/proc/timer_list: %m");
	for (char line[256]; !v && fgets(line, sizeof(line), f);)
		(void)sscanf(line, "jiffies: %llu", &v);
	fclose(f);
	if (!v)
		fail("no jiffies in /proc/timer_list");
	return (uint32_t)v;
}

uint32_t rig_hz(void)
{
	static const uint32_t known[] = { 100, 250, 300, 1000 };
	static uint32_t hz;
	struct timespec a, b;
	uint32_t j;
	double rate;

	if (hz)
		return hz;
	clock_gettime(CLOCK_MONOTONIC, &a);
	j = rig_jiffies();
	usleep(300000);
	clock_gettime(CLOCK_MONOTONIC, &b);
	rate = (rig_jiffies() - j) / ((double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) * 1e-9);
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (!hz || fabs(known[i] - rate) < fabs(hz - rate))
			hz = known[i];
	return hz;
}
