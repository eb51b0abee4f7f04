/* SPDX-License-Identifier: MIT */
#include "events.h"
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>

struct events {
	struct ring_buffer *ring;
	events_callback callback;
	void *ctx;
};

static int on_record(void *arg, void *data, size_t size)
{
	struct events *e = arg;

	if (size >= sizeof(struct sy_event))
		e->callback(e->ctx, data);
	return 0;
}

struct events *events_new(const struct maps *maps, events_callback callback, void *ctx)
{
	struct events *e = calloc(1, sizeof(*e));
	int saved;

	if (!e)
		return NULL;
	e->callback = callback;
	e->ctx = ctx;
	e->ring = ring_buffer__new(maps->fd_events, on_record, e, NULL);
	if (e->ring)
		return e;
	saved = errno;
	free(e);
	errno = saved;
	return NULL;
}

void events_free(struct events *e)
{
	if (!e)
		return;
	ring_buffer__free(e->ring);
	free(e);
}

int events_fd(const struct events *e)
{
	return ring_buffer__epoll_fd(e->ring);
}

void events_process(struct events *e)
{
	(void)ring_buffer__consume(e->ring);
}

const char *events_kind_name(uint32_t kind)
{
	static const char *const names[SY_N_EVENTS] = {
#define X(NAME, name, text) [SY_E_##NAME] = name,
		SY_EVENTS(X)
#undef X
	};

	return kind < SY_N_EVENTS ? names[kind] : "unknown";
}
