// SPDX-License-Identifier: MIT
/* Running programs on packets, and comparing what they wrote (rig.h). */
#include "rig.h"
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Records at the start of the great arrays that a copy keeps: tests use low ids. */
#define COPY_IDS 1024U

static int run(int fd, enum rig_hook kind, const struct frame *in, int ifindex, unsigned repeat, struct frame *ret)
{
	struct xdp_md xdp = { .data_end = (uint32_t)in->len, .ingress_ifindex = (uint32_t)ifindex };
	struct __sk_buff skb = { .ifindex = (uint32_t)ifindex };
	LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = in->data, .data_size_in = (uint32_t)in->len, .data_out = ret->data,
		    .data_size_out = sizeof(ret->data), .repeat = (int)repeat);

	if (kind == RIG_XDP) {
		o.ctx_in = &xdp;
		o.ctx_size_in = sizeof(xdp);
	} else {
		o.ctx_in = &skb;
		o.ctx_size_in = sizeof(skb);
	}
	if (bpf_prog_test_run_opts(fd, &o)) {
		fprintf(stderr, "rig: test run of %zu bytes: %s\n", in->len, strerror(errno));
		abort();
	}
	ret->len = o.data_size_out;
	return (int)o.retval;
}

int rig_run(const struct rig *r, enum rig_hook hook, const struct frame *in, int ifindex, struct frame *ret)
{
	return run(r->fd_hook[hook], hook, in, ifindex, 1, ret);
}

bool rig_takes(enum rig_hook hook, const struct frame *in)
{
	size_t least = 15;

	if (hook == RIG_XDP)
		return in->len >= 14;
	if (in->data[12] == 0x08 && in->data[13] == 0x00)
		least = 14 + 20;
	if (in->data[12] == 0x86 && in->data[13] == 0xdd)
		least = 14 + 40;
	return in->len >= least;
}

int rig_repeat(int fd, enum rig_hook kind, const struct frame *in, int ifindex, unsigned repeat)
{
	struct frame out;

	return run(fd, kind, in, ifindex, repeat, &out);
}

static void sum_percpu(int fd, uint32_t n, uint64_t *ret)
{
	int n_cpus = libbpf_num_possible_cpus();
	uint64_t *v = calloc((size_t)n_cpus, sizeof(*v));

	for (uint32_t i = 0; v && i < n; i++) {
		ret[i] = 0;
		if (bpf_map_lookup_elem(fd, &i, v))
			abort();
		for (int cpu = 0; cpu < n_cpus; cpu++)
			ret[i] += v[cpu];
	}
	free(v);
}

void rig_verdicts(const struct rig *r, uint64_t ret[SY_N_VERDICTS])
{
	sum_percpu(r->maps.fd_verdicts, SY_N_VERDICTS, ret);
}

void rig_counts(const struct rig *r, uint64_t ret[SY_N_COUNTERS])
{
	sum_percpu(r->maps.fd_counts, SY_N_COUNTERS, ret);
}

struct sy_backend_count rig_backend_count(const struct rig *r, uint32_t backend)
{
	struct sy_backend_count sum = { 0 };

	for (uint32_t cpu = 0; cpu < r->maps.config->n_cpus; cpu++) {
		const struct sy_backend_count *c = &r->maps.counters[(size_t)cpu * SY_MAX_BACKENDS + backend];

		sum.packets += c->packets;
		sum.bytes += c->bytes;
		sum.connections += c->connections;
		sum.picks += c->picks;
	}
	return sum;
}

/* ---- what changed ---- */

struct rig_copy {
	uint64_t verdicts[SY_N_VERDICTS];
	uint64_t counts[SY_N_COUNTERS];
	struct sy_backend backends[COPY_IDS];
	struct sy_load loads[COPY_IDS];
	struct sy_endpoint endpoints[COPY_IDS];
	struct sy_service services[COPY_IDS];
	struct sy_backend_count counters[COPY_IDS];
	struct sy_config config;
	struct sy_group *groups;
};

static void copy_fill(const struct rig *r, struct rig_copy *c)
{
	const struct maps *m = &r->maps;

	rig_verdicts(r, c->verdicts);
	rig_counts(r, c->counts);
	/* these two count work, not packets: a hand-over has looked where the packet would go */
	c->counts[SY_C_FIB_LOOKUPS] = c->counts[SY_C_PICK_AGAIN] = 0;
	memcpy(c->backends, m->backends, sizeof(c->backends));
	memcpy(c->loads, m->loads, sizeof(c->loads));
	memcpy(c->endpoints, m->endpoints, sizeof(c->endpoints));
	memcpy(c->services, m->services, sizeof(c->services));
	for (uint32_t i = 0; i < COPY_IDS; i++)
		c->counters[i] = rig_backend_count(r, i);
	c->config = *m->config;
	memcpy(c->groups, m->groups, m->config->n_groups * sizeof(*c->groups));
}

struct rig_copy *rig_copy(const struct rig *r)
{
	struct rig_copy *c = calloc(1, sizeof(*c));

	if (c)
		c->groups = calloc(r->maps.config->n_groups, sizeof(*c->groups));
	if (!c || !c->groups)
		abort();
	copy_fill(r, c);
	return c;
}

const char *rig_changed(const struct rig *r, const struct rig_copy *c)
{
	struct rig_copy *now = rig_copy(r);
	const char *what = NULL;

#define CHECK(MEMBER)                                                                                                  \
	if (memcmp(now->MEMBER, c->MEMBER, sizeof(c->MEMBER)))                                                         \
		what = #MEMBER;
	CHECK(verdicts)
	CHECK(counts)
	CHECK(backends)
	CHECK(loads)
	CHECK(endpoints)
	CHECK(services)
	CHECK(counters)
#undef CHECK
	if (memcmp(&now->config, &c->config, sizeof(c->config)))
		what = "config";
	if (memcmp(now->groups, c->groups, r->maps.config->n_groups * sizeof(*c->groups)))
		what = "lines";
	rig_copy_free(now);
	return what;
}

void rig_copy_free(struct rig_copy *c)
{
	if (!c)
		return;
	free(c->groups);
	free(c);
}
