// SPDX-License-Identifier: MIT
#include "registry.h"

#include <errno.h>

const char *registry_state_name(enum registry_state s)
{
	static const char *const names[] = {
		[REGISTRY_CONNECTING] = "connecting",
		[REGISTRY_LIVE] = "live",
		[REGISTRY_CACHED] = "cached",
		[REGISTRY_DOWN] = "down",
	};

	return names[s];
}

int registry_start(struct registry *r)
{
	return r->ops->start(r);
}

int registry_subscribe(struct registry *r, const char *group, const char *name)
{
	return *group && *name ? r->ops->subscribe(r, group, name) : -EINVAL;
}

int registry_unsubscribe(struct registry *r, const char *group, const char *name)
{
	return r->ops->unsubscribe(r, group, name);
}

void registry_status(const struct registry *r, struct registry_status *ret)
{
	r->ops->status(r, ret);
}

void registry_free(struct registry *r)
{
	if (r)
		r->ops->free(r);
}
