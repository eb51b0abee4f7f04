// SPDX-License-Identifier: MIT
#include "unit.h"
#include "dataplane/hz.h"
#include "dataplane/listeners.h"
#include "dataplane/pins.h"
#include "dataplane/pools.h"
#include <arpa/inet.h>
#include <errno.h>

static uint16_t ports[SY_MAX_POOL_PORTS];
static uint64_t member[SY_MAX_POOL_PORTS / 64], busy[SY_MAX_POOL_PORTS / 64];

static void ports_without_the_busy(void **state)
{
	(void)state;
	assert_int_equal(pools_ports(1024, 65535, NULL, ports, member), 64512);
	assert_int_equal(ports[0], 1024);
	assert_int_equal(ports[64511], 65535);
	memset(busy, 0, sizeof(busy));
	busy[80] = 1ULL << 5; /* 5125 */
	assert_int_equal(pools_ports(5120, 5130, busy, ports, member), 10);
	assert_int_equal(ports[4], 5124);
	assert_int_equal(ports[5], 5126);
	assert_int_equal(member[80], 0x7dfULL & ~(1ULL << 5));
	assert_int_equal(member[81], 0);
	assert_int_equal(pools_ports(5125, 5125, busy, ports, member), 0);
}

static void listeners_are_parsed(void **state)
{
	(void)state;
	assert_int_equal(listeners_parse("   0: 0100007F:0035 00000000:0000 0A 00000000:00000000 00:00000000"), 53);
	assert_int_equal(listeners_parse("   1: 0100007F:C350 0100007F:0035 01 00000000:00000000"), -1);
	assert_int_equal(listeners_parse("  12: 00000000000000000000000000000000:1F90 "
					 "00000000000000000000000000000000:0000 0A 00000000:00000000"),
			 8080);
	assert_int_equal(listeners_parse("  sl  local_address rem_address   st tx_queue"), -1);
	assert_int_equal(listeners_parse(""), -1);
}

static void pools_by_address_set(void **state)
{
	static struct sy_pool map[SY_MAX_POOLS];
	static struct pools p, next;
	__be32 addrs[2] = {inet_addr("10.0.0.1"), inet_addr("10.0.0.2")};
	uint32_t a, b, c;

	(void)state;
	pools_init(&p, map, 2000, 2099);
	assert_int_equal(pools_find(&p, addrs, 1, false, &a), 0);
	assert_int_equal(pools_find(&p, addrs, 2, false, &b), 0);
	assert_int_not_equal(a, b);
	assert_int_equal(pools_find(&p, addrs, 1, false, &c), 0);
	assert_int_equal(c, a);
	assert_int_equal(map[b].n_addrs, 2);
	assert_int_equal(map[b].n_ports, 100);
	/* the next agent finds them again, with its own range */
	pools_init(&next, map, 2000, 2049);
	assert_int_equal(pools_find(&next, addrs, 2, false, &c), 0);
	assert_int_equal(c, b);
	assert_int_equal(map[b].n_ports, 50);
	assert_int_equal(pools_find(&next, addrs, 0, false, &c), -ENOSPC);
	assert_int_equal(pools_find(&next, addrs, SY_MAX_POOL_ADDRS + 1, false, &c), -ENOSPC);
}

static void pools_run_out(void **state)
{
	static struct sy_pool map[SY_MAX_POOLS];
	static struct pools p, next;
	uint32_t pool;
	__be32 addr;

	(void)state;
	pools_init(&p, map, 0, 0);
	for (uint32_t k = 0; k < SY_MAX_POOLS; k++) {
		addr = htonl(0x0a000001 + k);
		assert_int_equal(pools_find(&p, &addr, 1, true, &pool), 0);
		assert_int_equal(map[pool].port[0], 1024);
	}
	addr = htonl(0x0a0000ff);
	assert_int_equal(pools_find(&p, &addr, 1, true, &pool), -ENOSPC);
	/* those of an agent that is gone may be taken over */
	pools_init(&next, map, 0, 0);
	assert_int_equal(pools_find(&next, &addr, 1, true, &pool), 0);
	assert_int_equal(map[pool].addr[0], addr);
}

static void frequencies(void **state)
{
	(void)state;
	assert_int_equal(hz_from(25, 100000000), 250);
	assert_int_equal(hz_from(30, 100000000), 300);
	assert_int_equal(hz_from(100, 100400000), 1000);
	assert_int_equal(hz_from(77, 1000000000), 77);
	assert_int_equal(hz_from(5, 0), 1);
}

static void link_names(void **state)
{
	char path[PATH_MAX], name[64];
	enum pins_link kind;

	(void)state;
	assert_int_equal(pins_link_path("/pin", PINS_LINK_TC, "eth0.100", path), 0);
	assert_string_equal(path, "/pin/links/tc_eth0%2e100");
	assert_true(pins_link_parse("tc_eth0%2e100", &kind, name));
	assert_int_equal(kind, PINS_LINK_TC);
	assert_string_equal(name, "eth0.100");
	assert_true(pins_link_parse("clsact_x", &kind, name));
	assert_int_equal(kind, PINS_MARK_CLSACT);
	assert_false(pins_link_parse("lines", &kind, name));
	assert_false(pins_link_parse("xdp_", &kind, name));
	assert_int_equal(
		pins_link_path("/pin", PINS_LINK_TC, "%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%", path),
		-ENAMETOOLONG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE("a pool's ports are the range without the busy ones", ports_without_the_busy),
		CASE("listening ports are read from /proc/net/tcp", listeners_are_parsed),
		CASE("a pool is found by its addresses, over a restart too", pools_by_address_set),
		CASE("pools run out, and an earlier agent's are taken over", pools_run_out),
		CASE("a measured frequency is one that kernels are built with", frequencies),
		CASE("interface names with dots are escaped in pins", link_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
