/* SPDX-License-Identifier: MIT */
#include "setup.h"
#include <cap-ng.h>
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "../base/cleanup.h"

static const struct {
	unsigned cap;
	const char *name;
} needed[] = {{CAP_BPF, "CAP_BPF"}, {CAP_NET_ADMIN, "CAP_NET_ADMIN"}, {CAP_PERFMON, "CAP_PERFMON"}};
#define N_NEEDED (sizeof(needed) / sizeof(*needed))

/* A parsed list is a hundred thousand small pieces. Kept apart when freed, they would all be joined by the next greater
 * allocation, which is the one of the change on its way to the maps: 1 ms for 5,000 instances. */
void setup_memory(void)
{
	(void)mallopt(M_MXFAST, 0);
}

int setup_directories(const struct config *c, char *why, size_t why_size)
{
	_cleanup_free_ char *path = strdup(c->state_dir);
	int r = 0;

	if (!path) {
		(void)snprintf(why, why_size, "out of memory");
		return -ENOMEM;
	}
	for (char *end = strchr(path + 1, '/'); !r; end = strchr(end + 1, '/')) {
		if (end)
			*end = 0;
		if (mkdir(path, 0755) < 0 && errno != EEXIST)
			r = -errno;
		if (!end)
			break;
		*end = '/';
	}
	if (!r && access(c->state_dir, W_OK | X_OK) < 0)
		r = -errno;
	if (r < 0)
		(void)snprintf(why, why_size, "state_dir %s cannot be written: %s", c->state_dir, strerror(-r));
	return r;
}

int setup_check_capabilities(char *why, size_t why_size)
{
	size_t used = 0;

	capng_get_caps_process();
	/* CAP_SYS_ADMIN stands for the two newer ones */
	for (size_t i = 0; i < N_NEEDED; i++)
		if (!capng_have_capability(CAPNG_EFFECTIVE, needed[i].cap) &&
		    (needed[i].cap == CAP_NET_ADMIN || !capng_have_capability(CAPNG_EFFECTIVE, CAP_SYS_ADMIN)))
			used += (size_t)snprintf(why + used, why_size - used, "%s%s", used ? ", " : "", needed[i].name);
	return used ? -EPERM : 0;
}

int setup_drop_privileges(void)
{
	bool held[N_NEEDED];

	capng_get_caps_process();
	for (size_t i = 0; i < N_NEEDED; i++)
		held[i] = capng_have_capability(CAPNG_PERMITTED, needed[i].cap);
	capng_clear(CAPNG_SELECT_BOTH);
	for (size_t i = 0; i < N_NEEDED; i++)
		if (held[i] &&
		    capng_update(CAPNG_ADD, CAPNG_EFFECTIVE | CAPNG_PERMITTED | CAPNG_BOUNDING_SET, needed[i].cap))
			return -EINVAL;
	return capng_apply(CAPNG_SELECT_BOTH) ? -EPERM : 0;
}
