/* SPDX-License-Identifier: MIT */
#include "listeners.h"
#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <stdio.h>
#include "../base/cleanup.h"
#include "rtnl.h"

#define TCP_LISTENING 0x0a /* TCP_LISTEN of the kernel's tcp_states.h */

struct pass {
	void (*cb)(void *ctx, unsigned port);
	void *ctx;
};

int listeners_parse(const char *line)
{
	unsigned port, state;

	/* "  0: 0100007F:0035 00000000:0000 0A ..." */
	if (sscanf(line, " %*u: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x", &port, &state) != 2)
		return -1;
	return state == TCP_LISTENING && port && port < 65536 ? (int)port : -1;
}

static void read_proc(const char *path, const struct pass *pass)
{
	_cleanup_fclose_ FILE *f = fopen(path, "re");
	char line[512];

	while (f && fgets(line, sizeof(line), f)) {
		int port = listeners_parse(line);

		if (port > 0)
			pass->cb(pass->ctx, (unsigned)port);
	}
}

static int on_socket(const struct nlmsghdr *n, void *ctx)
{
	const struct inet_diag_msg *m = mnl_nlmsg_get_payload(n);
	const struct pass *pass = ctx;

	if (n->nlmsg_type == SOCK_DIAG_BY_FAMILY && m->id.idiag_sport)
		pass->cb(pass->ctx, ntohs(m->id.idiag_sport));
	return MNL_CB_OK;
}

static int ask_kernel(struct mnl_socket *s, uint8_t family, struct pass *pass)
{
	char buf[256] = {0};
	struct nlmsghdr *n = mnl_nlmsg_put_header(buf);
	struct inet_diag_req_v2 *r = mnl_nlmsg_put_extra_header(n, sizeof(*r));

	n->nlmsg_type = SOCK_DIAG_BY_FAMILY;
	n->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	r->sdiag_family = family;
	r->sdiag_protocol = IPPROTO_TCP;
	r->idiag_states = 1U << TCP_LISTENING;
	return rtnl_ask(s, n, on_socket, pass);
}

void listeners_for_each(void (*cb)(void *ctx, unsigned port), void *ctx)
{
	struct pass pass = {.cb = cb, .ctx = ctx};
	struct mnl_socket *s = rtnl_open(NETLINK_SOCK_DIAG);
	bool told = s && ask_kernel(s, AF_INET, &pass) == 0 && ask_kernel(s, AF_INET6, &pass) == 0;

	if (s)
		(void)mnl_socket_close(s);
	if (told)
		return;
	read_proc("/proc/thread-self/net/tcp", &pass);
	read_proc("/proc/thread-self/net/tcp6", &pass);
}
