/* SPDX-License-Identifier: MIT */
#include "ports.h"
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../base/log.h"

#define AREA "interface"

static struct port *port_find(const struct ports *p, const char *name)
{
	for (size_t i = 0; i < p->n; i++)
		if (!strcmp(p->list[i].name, name))
			return &p->list[i];
	return NULL;
}

static const char *kinds_text(unsigned kinds)
{
	bool tc = kinds & (ATTACH_TCX | ATTACH_CLSACT);

	if (kinds & ATTACH_XDP_NATIVE)
		return tc ? "native XDP with TC behind it" : "native XDP";
	return tc ? "TC" : "nothing";
}

static int port_attach(struct ports *p, struct port *port, char *why, size_t why_size)
{
	struct attach_request request = {
		.interface = port->name,
		.mode = (int)port->attach,
		.foreign_stop = port->foreign_xdp == CONFIG_FOREIGN_STOP,
	};
	unsigned ifindex = if_nametoindex(port->name), kinds = 0;
	int r;

	*why = 0;
	r = ifindex ? load_attach(p->load, &request, &kinds, why, why_size) : -ENODEV;
	if (r < 0) {
		if (!port->told && r == -ENODEV)
			log_warning(AREA, "%s: no such interface, waiting for it", port->name);
		else if (!port->told)
			log_error(AREA, "%s: cannot attach: %s, trying again each second", port->name,
				  *why ? why : strerror(-r));
		port->told = true;
		port->ifindex = 0;
		port->kinds = 0;
		return r;
	}
	if (*why)
		log_warning(AREA, "%s: %s", port->name, why);
	log_info(AREA, "%s: attached, %s", port->name, kinds_text(kinds));
	port->ifindex = ifindex;
	port->kinds = kinds;
	port->told = false;
	return 0;
}

static struct port *port_add(struct ports *p, const struct config_interface *i)
{
	struct port *more = realloc(p->list, (p->n + 1) * sizeof(*more));

	if (!more)
		return NULL;
	p->list = more;
	more[p->n] = (struct port){.name = strdup(i->name)};
	return more[p->n].name ? &more[p->n++] : NULL;
}

static void remove_unwanted(struct ports *p)
{
	size_t kept = 0;

	for (size_t i = 0; i < p->n; i++) {
		struct port *port = &p->list[i];

		if (port->wanted) {
			p->list[kept++] = *port;
			continue;
		}
		if (port->ifindex && load_detach(p->load, port->name) >= 0)
			log_info(AREA, "%s: detached, no longer configured", port->name);
		free(port->name);
	}
	p->n = kept;
}

/* What an earlier agent left on interfaces that are configured no more. */
static void remove_leftovers(struct ports *p)
{
	const char **names = calloc(p->n + 1, sizeof(*names));

	if (!names)
		return;
	for (size_t i = 0; i < p->n; i++)
		names[i] = p->list[i].name;
	load_detach_others(p->load, names, p->n);
	free(names);
}

int ports_configure(struct ports *p, const struct config *c, char *why, size_t why_size)
{
	char trouble[256];
	int first = 0;

	for (size_t i = 0; i < p->n; i++)
		p->list[i].wanted = false;
	for (size_t i = 0; i < c->n_interfaces; i++) {
		const struct config_interface *want = &c->interfaces[i];
		struct port *port = port_find(p, want->name);
		int r;

		if (!port)
			port = port_add(p, want);
		if (!port)
			return -ENOMEM;
		port->wanted = true;
		if (port->ifindex && port->attach == want->attach && port->foreign_xdp == want->foreign_xdp)
			continue;
		port->attach = want->attach;
		port->foreign_xdp = want->foreign_xdp;
		port->told = false;
		r = port_attach(p, port, trouble, sizeof(trouble));
		if (r >= 0 || r == -ENODEV || first < 0)
			continue;
		first = r;
		(void)snprintf(why, why_size, "%s: %s", port->name, *trouble ? trouble : strerror(-r));
	}
	remove_unwanted(p);
	remove_leftovers(p);
	return first;
}

void ports_check(struct ports *p)
{
	char why[256];

	for (size_t i = 0; i < p->n; i++) {
		struct port *port = &p->list[i];
		unsigned now = if_nametoindex(port->name);

		if (now && now == port->ifindex)
			continue;
		if (!now && port->ifindex) {
			log_warning(AREA, "%s: has gone, waiting for it", port->name);
			port->told = true;
			port->ifindex = 0;
			port->kinds = 0;
		}
		if (now)
			(void)port_attach(p, port, why, sizeof(why));
	}
}

void ports_done(struct ports *p)
{
	for (size_t i = 0; i < p->n; i++)
		free(p->list[i].name);
	free(p->list);
	*p = (struct ports){0};
}
