/* SPDX-License-Identifier: MIT */
/* IP addresses and address:port pairs. */
#pragma once
#include <linux/types.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct addr {
	sa_family_t family; /* AF_INET, AF_INET6; AF_UNSPEC: none */
	union {
		struct in_addr v4;
		struct in6_addr v6;
	};
};

struct endpoint {
	struct addr addr;
	uint16_t port; /* host order */
};

#define ADDR_TEXT_LEN 64 /* "[v6]:port" and its zero fit */

/* Strict: dotted quad, or IPv6 with or without brackets. No names, no scope ids. 0 or -EINVAL. */
int addr_parse(const char *text, struct addr *ret);
/* "A.B.C.D:PORT" or "[v6]:PORT", port 1..65535. 0 or -EINVAL. */
int endpoint_parse(const char *text, struct endpoint *ret);
/* IPv4 before IPv6, then by bytes, then by port. <0, 0, >0. */
int addr_compare(const struct addr *a, const struct addr *b);
int endpoint_compare(const struct endpoint *a, const struct endpoint *b);
char *addr_format(const struct addr *a, char buf[static ADDR_TEXT_LEN]);
char *endpoint_format(const struct endpoint *e, char buf[static ADDR_TEXT_LEN]);
/* Loopback, unspecified, multicast, broadcast, class E, v6 link-local: nothing a backend can have. */
bool addr_is_usable(const struct addr *a);
