// SPDX-License-Identifier: MIT
/* Next hops and source pools against the kernel's own tables, in a namespace: be 10.2.0.1/24, with a peer that answers
 * nobody. */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "dataplane/neigh.h"
#include "pinned.h"
#include "unit.h"

#define LINK "sybe"

static struct load *load;
static struct maps *maps;
static struct neigh *neigh;

static int open_neigh(const char *snat)
{
	struct neigh_options o = {0};
	struct addr a;

	if (snat) {
		assert_int_equal(addr_parse(snat, &a), 0);
		o = (struct neigh_options){
			.snat_addresses = &a, .n_snat_addresses = 1, .port_first = 2000, .port_last = 2999};
	}
	neigh = neigh_new(maps, &o);
	return neigh ? 0 : -errno;
}

static int set_up(void **state)
{
	(void)state;
	if (pinned_shell(
		    "ip link add %s type veth peer name sybe-peer && ip link set %s up && ip link set sybe-peer up && "
		    "ip addr add 10.2.0.1/24 dev %s && ip route add 10.3.0.0/16 via 10.2.0.254",
		    LINK, LINK, LINK))
		return -1;
	load = pinned_load();
	maps = load_maps(load);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	neigh_free(neigh);
	neigh = NULL;
	load_close(load);
	pinned_remove();
	(void)pinned_shell("ip link del %s", LINK);
	return 0;
}

static struct sy_backend *backend_at(uint32_t id, const char *addr)
{
	struct sy_backend *b = &maps->backends[id];

	b->family = AF_INET;
	b->addr[3] = inet_addr(addr);
	b->port = htons(80);
	b->nh = 0;
	return b;
}

/* Until backends have to be prepared anew, ticking as the agent does; 10 s at most. */
static bool wait_for_change(void)
{
	struct pollfd p = {.fd = neigh_fd(neigh), .events = POLLIN};

	for (unsigned i = 0; i < 100; i++)
		if ((poll(&p, 1, 100) == 1 && neigh_process(neigh)) || neigh_tick(neigh))
			return true;
	return false;
}

/* Until the epoch is another one. */
static bool wait_for_epoch(uint32_t before)
{
	for (unsigned i = 0; i < 100 && maps->config->epoch == before; i++)
		(void)wait_for_change();
	return maps->config->epoch != before;
}

static void permanent(const char *addr, const char *mac)
{
	assert_int_equal(pinned_shell("ip neigh replace %s lladdr %s dev %s nud permanent", addr, mac, LINK), 0);
}

static void interfaces_have_slots(void **state)
{
	uint32_t ifindex = if_nametoindex(LINK), found = 0;

	(void)state;
	assert_int_equal(open_neigh(NULL), 0);
	for (uint32_t i = 0; i < 4 && !found; i++) {
		uint32_t slot = (ifindex + i) % SY_MAX_IFACES;

		found = slot && maps->ifaces[slot].ifindex == ifindex ? slot : 0;
	}
	assert_int_not_equal(found, 0);
	assert_int_equal(maps->ifaces[found].mtu, 1500);
	assert_true(maps->ifaces[found].flags & SY_IF_REDIRECT);
	assert_int_equal(pinned_shell("ip link set %s mtu 1400", LINK), 0);
	for (unsigned i = 0; i < 100 && maps->ifaces[found].mtu != 1400; i++) {
		(void)usleep(20000);
		(void)neigh_process(neigh);
	}
	assert_int_equal(maps->ifaces[found].mtu, 1400);
}

static void known_neighbour_is_a_word(void **state)
{
	static const uint8_t mac[6] = {2, 0, 0, 0, 0, 0x10};
	struct sy_backend *b;
	uint32_t epoch;

	(void)state;
	permanent("10.2.0.10", "02:00:00:00:00:10");
	assert_int_equal(open_neigh(NULL), 0);
	b = backend_at(1, "10.2.0.10");
	assert_int_equal(neigh_prepare(neigh, b), 0);
	assert_memory_equal(&b->nh, mac, sizeof(mac));
	assert_int_equal(maps->ifaces[SY_NH_SLOT(b->nh)].ifindex, if_nametoindex(LINK));
	assert_int_equal(SY_NH_EPOCH(b->nh), maps->config->epoch & 0xff);
	/* another MAC: all that is held is stale at once */
	epoch = maps->config->epoch;
	permanent("10.2.0.10", "02:00:00:00:00:11");
	assert_true(wait_for_epoch(epoch));
	assert_int_equal(neigh_prepare(neigh, b), 0);
	assert_int_equal(((const uint8_t *)&b->nh)[5], 0x11);
}

static void unknown_neighbour_is_awaited(void **state)
{
	struct sy_backend *b;
	uint32_t epoch;

	(void)state;
	assert_int_equal(open_neigh(NULL), 0);
	b = backend_at(1, "10.3.1.1");
	assert_int_equal(neigh_prepare(neigh, b), 0);
	assert_int_equal(b->nh, 0);
	epoch = maps->config->epoch;
	(void)neigh_tick(neigh); /* everything is to be prepared once at the beginning */
	/* the gateway's answer */
	permanent("10.2.0.254", "02:00:00:00:00:fe");
	assert_true(wait_for_change());
	assert_int_equal(maps->config->epoch, epoch);
	assert_int_equal(neigh_prepare(neigh, b), 0);
	assert_int_equal(((const uint8_t *)&b->nh)[5], 0xfe);
}

static void route_change_raises_the_epoch(void **state)
{
	struct sy_backend *b;
	uint32_t epoch;

	(void)state;
	permanent("10.2.0.254", "02:00:00:00:00:fe");
	permanent("10.2.0.253", "02:00:00:00:00:fd");
	assert_int_equal(open_neigh(NULL), 0);
	b = backend_at(1, "10.3.1.1");
	assert_int_equal(neigh_prepare(neigh, b), 0);
	epoch = maps->config->epoch;
	assert_int_equal(pinned_shell("ip route replace 10.3.0.0/16 via 10.2.0.253"), 0);
	assert_true(wait_for_epoch(epoch));
	assert_int_equal(neigh_prepare(neigh, b), 0);
	assert_int_equal(((const uint8_t *)&b->nh)[5], 0xfd);
}

static void no_route_is_told(void **state)
{
	(void)state;
	assert_int_equal(open_neigh(NULL), 0);
	assert_int_equal(neigh_prepare(neigh, backend_at(1, "192.0.2.1")), -ENOENT);
	/* this host cannot be its own backend */
	assert_int_equal(neigh_prepare(neigh, backend_at(2, "10.2.0.1")), -ENOENT);
}

static bool has_port(const struct sy_pool *p, unsigned port)
{
	return p->member[port / 64] >> (port % 64) & 1;
}

static void own_address_leaves_ports_to_the_host(void **state)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(5555), .sin_addr.s_addr = htonl(INADDR_ANY)};
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const struct sy_pool *p;
	struct sy_backend *b;

	(void)state;
	assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(pinned_shell("sysctl -qw net.ipv4.ip_local_port_range='40000 50000'"), 0);
	assert_int_equal(open_neigh(NULL), 0);
	b = backend_at(1, "10.2.0.10");
	assert_int_equal(neigh_prepare(neigh, b), 0);
	p = &maps->pools[b->pool];
	assert_int_equal(p->n_addrs, 1);
	assert_int_equal(p->addr[0], inet_addr("10.2.0.1"));
	assert_false(has_port(p, 1023));
	assert_true(has_port(p, 1024));
	assert_false(has_port(p, 5555));
	assert_false(has_port(p, 40000));
	assert_false(has_port(p, 50000));
	assert_true(has_port(p, 50001));
	assert_int_equal(p->n_ports, 65536 - 1024 - 1 - 10001);
	assert_int_equal(p->port[0], 1024);
	assert_int_equal(p->port[p->n_ports - 1], 65535);
	(void)close(listener);
}

static void dedicated_address_gives_all(void **state)
{
	const struct sy_pool *p;
	struct sy_backend *b;

	(void)state;
	assert_int_equal(open_neigh("10.2.0.100"), 0);
	b = backend_at(1, "10.2.0.10");
	assert_int_equal(neigh_prepare(neigh, b), 0);
	p = &maps->pools[b->pool];
	assert_int_equal(p->addr[0], inet_addr("10.2.0.100"));
	assert_int_equal(p->n_ports, 1000);
	assert_int_equal(p->port[999], 2999);
}

static void wrap_clears_flows(void **state)
{
	struct sy_line *used, *forward;
	const uint32_t zero = 0;
	struct sy_sweep sweep;

	(void)state;
	maps->config->epoch = 0xfe;
	assert_int_equal(open_neigh(NULL), 0);
	assert_int_equal(maps->config->epoch, 0xff);
	assert_int_equal(bpf_map_lookup_elem(maps->fd_sweep, &zero, &sweep), 0);
	used = &maps->groups[3].line[1];
	forward = &maps->groups[5].line[2];
	used->mate = 5 * SY_LINES_PER_GROUP + 2;
	forward->mate = 3 * SY_LINES_PER_GROUP + 1;
	used->seen = forward->seen = (uint32_t)sweep.jiffies;
	used->aux = forward->aux = 0x1234;
	forward->word = 7ULL << SY_ID_SHIFT | SY_ESTABLISHED;
	used->word = 7ULL << SY_ID_SHIFT | SY_USED;
	permanent("10.2.0.10", "02:00:00:00:00:10");
	assert_int_equal(pinned_shell("ip route add 10.4.0.0/16 via 10.2.0.254"), 0);
	assert_true(wait_for_epoch(0xff));
	assert_int_equal(maps->config->epoch, 0x100);
	assert_int_equal(used->aux, 0);
	assert_int_equal(forward->aux, 0x1234);
}

static void beat_is_raised(void **state)
{
	uint32_t beat;

	(void)state;
	assert_int_equal(open_neigh(NULL), 0);
	beat = maps->config->beat;
	(void)neigh_tick(neigh);
	assert_int_equal(maps->config->beat, beat + 1);
}

static void wanted_neighbour_is_managed(void **state)
{
	struct sy_backend *b;

	(void)state;
	assert_int_equal(open_neigh(NULL), 0);
	b = backend_at(1, "10.2.0.77");
	assert_int_equal(neigh_prepare(neigh, b), 0);
	/* the kernel is at it, without a packet having been sent there */
	assert_int_equal(pinned_shell("ip neigh show dev %s | grep -q '^10.2.0.77 '", LINK), 0);
}

static bool is_managed(const char *addr)
{
	return pinned_shell("ip neigh show dev %s | grep '^%s ' | grep -q managed", LINK, addr) == 0;
}

static void unused_neighbour_is_let_go(void **state)
{
	struct sy_backend *gone, *kept;

	(void)state;
	assert_int_equal(open_neigh(NULL), 0);
	gone = backend_at(1, "10.2.0.77");
	kept = backend_at(2, "10.2.0.78");
	assert_int_equal(neigh_prepare(neigh, gone), 0);
	assert_int_equal(neigh_prepare(neigh, kept), 0);
	if (!is_managed("10.2.0.77"))
		skip(); /* before Linux 5.16 */
	gone->family = 0;
	/* a minute of ticks */
	for (unsigned i = 0; i < 240; i++)
		(void)neigh_tick(neigh);
	assert_false(is_managed("10.2.0.77"));
	assert_true(is_managed("10.2.0.78"));
}

static void addresses_of_long_ago_take_no_room(void **state)
{
	struct sy_backend *b;

	(void)state;
	assert_int_equal(pinned_shell("ip route add 11.0.0.0/8 via 10.2.0.254"), 0);
	assert_int_equal(open_neigh("10.9.0.1"), 0);
	b = backend_at(1, "11.0.0.1");
	for (uint32_t i = 1; i < SY_MAX_BACKENDS + 1000; i++) {
		b->addr[3] = htonl(0x0b000000 + i);
		if (neigh_prepare(neigh, b))
			fail_msg("address %u is refused", i);
	}
}

#define C(sentence, func)                                                                                              \
	{                                                                                                              \
		sentence, func, set_up, tear_down, NULL                                                                \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		C("interfaces have slots that programs find, and follow their MTU", interfaces_have_slots),
		C("a known neighbour becomes a next hop word, a new MAC a new epoch", known_neighbour_is_a_word),
		C("an unknown neighbour is awaited without a new epoch", unknown_neighbour_is_awaited),
		C("a changed route raises the epoch and is followed", route_change_raises_the_epoch),
		C("a backend without a route, or on this host, is refused", no_route_is_told),
		C("a pool on the host's own address leaves it its ports", own_address_leaves_ports_to_the_host),
		C("a pool on a dedicated address has all configured ports", dedicated_address_gives_all),
		C("when the epoch's low byte wraps, next hops held by flows are cleared", wrap_clears_flows),
		C("a tick raises the beat", beat_is_raised),
		C("a backend's neighbour is resolved before any packet", wanted_neighbour_is_managed),
		C("a neighbour that no backend needs any more is let go", unused_neighbour_is_let_go),
		C("a backend has a path however many there were before it", addresses_of_long_ago_take_no_room),
	};

	pinned_enter_namespace();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
