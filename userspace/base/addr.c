// SPDX-License-Identifier: MIT
#include "addr.h"
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Parse size bytes. ::ffff:A.B.C.D is the IPv4 address that it stands for: one address, one identity. */
static int parse_span(const char *text, size_t size, struct addr *ret)
{
	struct addr a = {0};
	char buf[ADDR_TEXT_LEN];
	bool bracketed = size >= 2 && text[0] == '[' && text[size - 1] == ']';

	if (bracketed) {
		text++;
		size -= 2;
	}
	if (size >= sizeof(buf))
		return -EINVAL;
	memcpy(buf, text, size);
	buf[size] = '\0';
	if (!bracketed && inet_pton(AF_INET, buf, &a.v4) == 1)
		a.family = AF_INET;
	else if (inet_pton(AF_INET6, buf, &a.v6) == 1)
		a.family = AF_INET6;
	else
		return -EINVAL;
	if (a.family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&a.v6)) {
		struct addr v4 = {.family = AF_INET};

		memcpy(&v4.v4, &a.v6.s6_addr[12], sizeof(v4.v4));
		a = v4;
	}
	*ret = a;
	return 0;
}

int addr_parse(const char *text, struct addr *ret)
{
	return parse_span(text, strlen(text), ret);
}

int endpoint_parse(const char *text, struct endpoint *ret)
{
	const char *colon = strrchr(text, ':');
	struct endpoint e;
	size_t n_digits;
	uint32_t port = 0;

	if (!colon)
		return -EINVAL;
	n_digits = strspn(colon + 1, "0123456789");
	if (n_digits == 0 || n_digits > 5 || colon[1 + n_digits])
		return -EINVAL;
	for (size_t i = 1; i <= n_digits; i++)
		port = port * 10 + (uint32_t)(colon[i] - '0');
	if (port == 0 || port > UINT16_MAX)
		return -EINVAL;
	if (parse_span(text, (size_t)(colon - text), &e.addr) < 0)
		return -EINVAL;
	/* without brackets nobody can tell where an IPv6 address ends */
	if (text[0] != '[' && memchr(text, ':', (size_t)(colon - text)))
		return -EINVAL;
	e.port = (uint16_t)port;
	*ret = e;
	return 0;
}

int addr_compare(const struct addr *a, const struct addr *b)
{
	if (a->family != b->family)
		return a->family < b->family ? -1 : 1; /* AF_UNSPEC < AF_INET < AF_INET6 */
	switch (a->family) {
	case AF_INET:
		return memcmp(&a->v4, &b->v4, sizeof(a->v4));
	case AF_INET6:
		return memcmp(&a->v6, &b->v6, sizeof(a->v6));
	default:
		return 0;
	}
}

int endpoint_compare(const struct endpoint *a, const struct endpoint *b)
{
	int r = addr_compare(&a->addr, &b->addr);

	return r ? r : (int)a->port - (int)b->port;
}

char *addr_format(const struct addr *a, char buf[static ADDR_TEXT_LEN])
{
	const char *r = NULL;

	if (a->family == AF_INET)
		r = inet_ntop(AF_INET, &a->v4, buf, ADDR_TEXT_LEN);
	else if (a->family == AF_INET6)
		r = inet_ntop(AF_INET6, &a->v6, buf, ADDR_TEXT_LEN);
	if (!r)
		(void)snprintf(buf, ADDR_TEXT_LEN, "none");
	return buf;
}

char *endpoint_format(const struct endpoint *e, char buf[static ADDR_TEXT_LEN])
{
	char host[ADDR_TEXT_LEN];
	int n;

	addr_format(&e->addr, host);
	n = snprintf(buf, ADDR_TEXT_LEN, e->addr.family == AF_INET6 ? "[%s]:%u" : "%s:%u", host, (unsigned)e->port);
	assert(n > 0 && n < ADDR_TEXT_LEN);
	(void)n;
	return buf;
}

static bool v4_is_usable(const struct in_addr *v4)
{
	uint32_t host = ntohl(v4->s_addr);
	uint32_t net = host >> 24;

	/* 0/8 "this network", 127/8 loopback, 224/4 multicast, 240/4 class E with the broadcast address */
	return net != 0 && net != 127 && net < 224;
}

bool addr_is_usable(const struct addr *a)
{
	switch (a->family) {
	case AF_INET:
		return v4_is_usable(&a->v4);
	case AF_INET6:
		return !IN6_IS_ADDR_UNSPECIFIED(&a->v6) && !IN6_IS_ADDR_LOOPBACK(&a->v6) &&
		       !IN6_IS_ADDR_MULTICAST(&a->v6) && !IN6_IS_ADDR_LINKLOCAL(&a->v6) &&
		       !IN6_IS_ADDR_V4MAPPED(&a->v6);
	default:
		return false;
	}
}
