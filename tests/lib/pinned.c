// SPDX-License-Identifier: MIT
#include "pinned.h"
#include <bpf/bpf.h>
#include <arpa/inet.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/addr.h"

static void die(const char *what)
{
	fprintf(stderr, "pinned: %s\n", what);
	abort();
}

void pinned_enter_namespace(void)
{
	static bool entered;

	if (entered)
		return;
	if (unshare(CLONE_NEWNET))
		die("cannot enter a network namespace (root is needed)");
	entered = true;
	(void)pinned_shell("ip link set lo up");
}

int pinned_shell(const char *format, ...)
{
	char command[1024];
	va_list args;
	int status;

	va_start(args, format);
	(void)vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	status = system(command);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

const char *pinned_dir(void)
{
	static char path[64];

	if (!path[0])
		(void)snprintf(path, sizeof(path), "/sys/fs/bpf/sy_test_%d", getpid());
	return path;
}

struct load *pinned_load(void)
{
	const struct load_options o = {.pin_dir = pinned_dir(), .flows = PINNED_FLOWS, .quiet = true};
	enum load_fail fail;
	char why[512];
	struct load *l = load_open(&o, &fail, why, sizeof(why));

	if (!l)
		die(why);
	return l;
}

void pinned_remove(void)
{
	char why[512];

	(void)load_remove(pinned_dir(), true, why, sizeof(why));
}

static void fill(struct snapshot *s, const struct pinned_instance *from)
{
	const char *cluster = from->cluster ? from->cluster : "DEFAULT";
	struct instance *i = snapshot_append(s);

	if (!i)
		die("out of memory");
	i->address_text = snapshot_text(s, from->at, strlen(from->at));
	i->weight = from->weight;
	i->healthy = !from->unhealthy;
	i->enabled = true;
	i->cluster = snapshot_text(s, cluster, strlen(cluster));
	if (endpoint_parse(from->at, &i->endpoint))
		i->reject = SY_R_BAD_ADDRESS;
	if (!i->address_text || !i->cluster)
		die("out of memory");
}

int pinned_publish_by(struct publish *p, uint32_t service, const struct pinned_instance *list, size_t n,
		      const struct selector_rules *rules, enum sy_state gone, uint64_t now_ns,
		      struct publish_stats *ret)
{
	struct snapshot *s = snapshot_new("DEFAULT_GROUP", "test");
	struct selection sel;
	int err;

	for (size_t k = 0; k < n; k++)
		fill(s, &list[k]);
	if (selector_run(s, rules, &sel))
		die("selector_run");
	err = publish_selection(p, service, &sel, gone, SY_SOURCE_LIVE, 0, now_ns, ret);
	selection_done(&sel);
	snapshot_free(s);
	return err;
}

int pinned_publish(struct publish *p, uint32_t service, const struct pinned_instance *list, size_t n, uint64_t now_ns,
		   struct publish_stats *ret)
{
	const struct selector_rules rules = {.cluster_fallback_all = true, .family_v4 = true};

	return pinned_publish_by(p, service, list, n, &rules, SY_DRAINING, now_ns, ret);
}

int pinned_service(struct publish *p, const char *name, const char *listen, uint64_t drain_deadline_ns,
		   uint32_t *ret_id)
{
	const struct service_key key = {.registry = "test", .ns = "", .group = "DEFAULT_GROUP", .name = name};
	struct endpoint e;
	struct service_settings set = {
		.listen = &e, .n_listen = listen ? 1 : 0, .drain_deadline_ns = drain_deadline_ns};
	static const uint64_t timeout_s[SY_N_TIMEOUTS] = {60, 7440, 300, 30, 10};

	if (listen && endpoint_parse(listen, &e))
		die(listen);
	for (unsigned t = 0; t < SY_N_TIMEOUTS; t++)
		set.timeout_ns[t] = timeout_s[t] * 1000000000ULL;
	return publish_service(p, &key, &set, ret_id);
}

static uint64_t digest_bytes(uint64_t h, const void *bytes, size_t size)
{
	const uint64_t *w = bytes;

	for (size_t k = 0; k < size / 8; k++)
		h = (h ^ w[k]) * 0x9e3779b97f4a7c15ULL + (h >> 31);
	return h;
}

/* Entries of a hash come in any order: their digests are added up. */
static uint64_t digest_hash(int fd, size_t key_bytes, size_t value_bytes)
{
	char key[16] = {0}, value[1024], *at = NULL;
	uint64_t sum = 0;

	while (bpf_map_get_next_key(fd, at, key) == 0) {
		at = key;
		memset(value, 0, sizeof(value));
		if (bpf_map_lookup_elem(fd, key, value))
			continue;
		memcpy(value + value_bytes, key, key_bytes);
		sum += digest_bytes(1, value, (value_bytes + key_bytes + 7) / 8 * 8);
	}
	return sum;
}

uint64_t pinned_digest(const struct maps *m)
{
	uint64_t h = digest_bytes(1, m->backends, SY_MAX_BACKENDS * sizeof(*m->backends));

	h = digest_bytes(h, m->loads, SY_MAX_BACKENDS * sizeof(*m->loads));
	h = digest_bytes(h, m->endpoints, SY_MAX_ENDPOINTS * sizeof(*m->endpoints));
	h = digest_bytes(h, m->counters, (size_t)m->config->n_cpus * SY_MAX_BACKENDS * sizeof(*m->counters));
	h = digest_bytes(h, m->services, SY_MAX_SERVICES * sizeof(*m->services));
	h = digest_bytes(h, m->tables, sizeof(*m->tables));
	h = digest_bytes(h, m->pools, SY_MAX_POOLS * sizeof(*m->pools));
	h = digest_bytes(h, m->ifaces, SY_MAX_IFACES * sizeof(*m->ifaces));
	h = digest_bytes(h, m->config, sizeof(*m->config));
	h += digest_hash(m->fd_service_info, sizeof(uint32_t), sizeof(struct sy_service_info));
	h += digest_hash(m->fd_backend_info, sizeof(uint32_t), sizeof(struct sy_backend_info));
	h += digest_hash(m->fd_listeners4, sizeof(struct sy_listener_key), sizeof(struct sy_listener));
	return h + digest_hash(m->fd_vips4, sizeof(__be32), sizeof(uint32_t));
}

uint32_t pinned_find(const struct maps *m, uint32_t service, const char *at)
{
	struct endpoint e;

	if (endpoint_parse(at, &e))
		die(at);
	for (uint32_t id = 1; id < SY_MAX_BACKENDS; id++) {
		const struct sy_backend *b = &m->backends[id];

		if (b->family == AF_INET && b->service == service && b->addr[3] == e.addr.v4.s_addr &&
		    b->port == htons(e.port) && SY_WORD_REASON(b->word) != SY_R_DUPLICATE)
			return id;
	}
	return 0;
}
