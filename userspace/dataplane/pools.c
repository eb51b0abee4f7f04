/* SPDX-License-Identifier: MIT */
#include "pools.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "../base/cleanup.h"
#include "listeners.h"

void pools_init(struct pools *p, struct sy_pool *map, uint16_t first, uint16_t last)
{
	memset(p, 0, sizeof(*p));
	p->map = map;
	p->first = last ? first : 1024;
	p->last = last ? last : 65535;
	if (!p->first)
		p->first = 1;
}

uint32_t pools_ports(uint16_t first, uint16_t last, const uint64_t *busy, uint16_t *ports, uint64_t *member)
{
	uint32_t n = 0;

	memset(member, 0, SY_MAX_POOL_PORTS / 8);
	for (uint32_t port = first; port <= last; port++) {
		if (busy && (busy[port / 64] >> (port % 64) & 1))
			continue;
		ports[n++] = (uint16_t)port;
		member[port / 64] |= 1ULL << (port % 64);
	}
	return n;
}

static void set_busy(void *ctx, unsigned port)
{
	struct pools *p = ctx;

	if (port < SY_MAX_POOL_PORTS)
		p->busy[port / 64] |= 1ULL << (port % 64);
}

static void read_ephemeral(struct pools *p)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");
	unsigned from = 32768, to = 60999;

	if (f && fscanf(f, "%u %u", &from, &to) != 2)
		return;
	for (unsigned port = from; port <= to && port < SY_MAX_POOL_PORTS; port++)
		set_busy(p, port);
}

/* A packet may be reading: growing, the entries come before their number, shrinking, after it. Each entry is a port
 * that was or is allowed at any moment. */
static void set_ports(struct pools *p, uint32_t i)
{
	static uint16_t ports[SY_MAX_POOL_PORTS];
	static uint64_t member[SY_MAX_POOL_PORTS / 64];
	struct sy_pool *pool = &p->map[i];
	uint32_t n = pools_ports(p->first, p->last, p->own[i] ? p->busy : NULL, ports, member);

	if (n < pool->n_ports)
		__atomic_store_n(&pool->n_ports, n, __ATOMIC_RELEASE);
	for (uint32_t k = 0; k < n; k++)
		if (pool->port[k] != ports[k])
			__atomic_store_n(&pool->port[k], ports[k], __ATOMIC_RELAXED);
	for (uint32_t k = 0; k < SY_MAX_POOL_PORTS / 64; k++)
		if (pool->member[k] != member[k])
			__atomic_store_n(&pool->member[k], member[k], __ATOMIC_RELAXED);
	if (n > pool->n_ports)
		__atomic_store_n(&pool->n_ports, n, __ATOMIC_RELEASE);
}

void pools_refresh(struct pools *p)
{
	memset(p->busy, 0, sizeof(p->busy));
	read_ephemeral(p);
	listeners_for_each(set_busy, p);
	for (uint32_t i = 0; i < SY_MAX_POOLS; i++)
		if (p->in_use[i] && p->own[i])
			set_ports(p, i);
}

static int place_for(const struct pools *p, const __be32 *addrs, unsigned n)
{
	/* the same one as before a restart, or one that nothing was ever in, or one that only an earlier agent used */
	for (int i = 0; i < SY_MAX_POOLS; i++)
		if (p->map[i].n_addrs == n && !memcmp(p->map[i].addr, addrs, n * sizeof(*addrs)))
			return i;
	for (int i = 0; i < SY_MAX_POOLS; i++)
		if (!p->map[i].n_addrs)
			return i;
	for (int i = 0; i < SY_MAX_POOLS; i++)
		if (!p->in_use[i])
			return i;
	return -ENOSPC;
}

int pools_find(struct pools *p, const __be32 *addrs, unsigned n, bool own, uint32_t *ret)
{
	int i = n && n <= SY_MAX_POOL_ADDRS ? place_for(p, addrs, n) : -ENOSPC;
	struct sy_pool *pool;

	if (i < 0)
		return i;
	*ret = (uint32_t)i;
	if (p->in_use[i])
		return 0;
	pool = &p->map[i];
	p->in_use[i] = true;
	p->own[i] = own;
	if (pool->n_addrs != n || memcmp(pool->addr, addrs, n * sizeof(*addrs))) {
		__atomic_store_n(&pool->n_addrs, 0, __ATOMIC_RELEASE);
		for (unsigned k = 0; k < n; k++)
			__atomic_store_n(&pool->addr[k], addrs[k], __ATOMIC_RELEASE);
	}
	set_ports(p, (uint32_t)i);
	__atomic_store_n(&pool->n_addrs, n, __ATOMIC_RELEASE);
	return 0;
}
