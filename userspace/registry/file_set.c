// SPDX-License-Identifier: MIT
/* Two indexes: files by name, services by group and name. A service holds the files that name it in order of file name;
 * the first counts. Services stay while subscribed or named by a file. */
#include "file_set.h"

#include <errno.h>
#include <search.h>
#include <string.h>
#include <sys/queue.h>
#include "../base/cleanup.h"
#include "../base/log.h"

struct service {
	char *group, *name;
	bool subscribed;
	bool told;   /* the owner has a list of it */
	bool stale;  /* queued: the owner is to be told */
	bool absent; /* there is no file, and a while has passed */
	uint64_t received_ns;
	TAILQ_HEAD(, file) files; /* that name it, in order of file name */
	TAILQ_ENTRY(service) all;
	TAILQ_ENTRY(service) queue; /* while stale */
};

struct file {
	char *file_name;
	struct snapshot *snapshot; /* owned; NULL before it first parsed */
	struct service *service;   /* NULL with snapshot */
	uint64_t gone_at_ns;	   /* 0: it is there */
	unsigned scan;		   /* that saw it last */
	TAILQ_ENTRY(file) all;
	TAILQ_ENTRY(file) peer; /* in service->files */
	TAILQ_ENTRY(file) gone; /* while gone_at_ns, in order of it */
};

struct file_set {
	const char *log_area;
	void *files_index, *services_index; /* tsearch trees */
	TAILQ_HEAD(, file) files, gone;
	TAILQ_HEAD(, service) services, queue;
	unsigned n_subscribed;
	unsigned scan;
	bool scanned;	       /* what no file names is not there, but for the files that did not parse yet */
	uint64_t absent_at_ns; /* 0: no service to be found absent */
};

/* ---- services ---- */

static int service_compare(const void *a, const void *b)
{
	const struct service *x = a, *y = b;

	return strcmp(x->name, y->name) ?: strcmp(x->group, y->group);
}

static void service_free(struct service *s)
{
	if (!s)
		return;
	free(s->group);
	free(s->name);
	free(s);
}
DEFINE_CLEANUP(struct service *, service_free)

static struct service *service_find(struct file_set *set, const char *group, const char *name)
{
	const struct service key = {.group = (char *)group, .name = (char *)name};
	struct service **found = tfind(&key, &set->services_index, service_compare);

	return found ? *found : NULL;
}

/* Borrowed; made when there is none. NULL: no memory. */
static struct service *service_get(struct file_set *set, const char *group, const char *name)
{
	struct service *found = service_find(set, group, name);
	_cleanup_(service_freep) struct service *s = NULL;

	if (found)
		return found;
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	TAILQ_INIT(&s->files);
	s->group = strdup(group);
	s->name = strdup(name);
	if (!s->group || !s->name || !tsearch(s, &set->services_index, service_compare))
		return NULL;
	TAILQ_INSERT_TAIL(&set->services, s, all);
	return TAKE_PTR(s);
}

/* Forget it unless somebody asks for it or a file names it. */
static void service_put(struct file_set *set, struct service *s)
{
	if (s->subscribed || !TAILQ_EMPTY(&s->files))
		return;
	if (s->stale)
		TAILQ_REMOVE(&set->queue, s, queue);
	TAILQ_REMOVE(&set->services, s, all);
	tdelete(s, &set->services_index, service_compare);
	service_free(s);
}

static void service_changed(struct file_set *set, struct service *s, uint64_t received_ns)
{
	if (!s->subscribed)
		return;
	if (!s->stale)
		TAILQ_INSERT_TAIL(&set->queue, s, queue);
	s->stale = true;
	s->received_ns = received_ns;
}

/* ---- files ---- */

static int file_compare(const void *a, const void *b)
{
	const struct file *x = a, *y = b;

	return strcmp(x->file_name, y->file_name);
}

static struct file *file_find(struct file_set *set, const char *file_name)
{
	const struct file key = {.file_name = (char *)file_name};
	struct file **found = tfind(&key, &set->files_index, file_compare);

	return found ? *found : NULL;
}

static void file_free(struct file *e)
{
	if (!e)
		return;
	snapshot_free(e->snapshot);
	free(e->file_name);
	free(e);
}
DEFINE_CLEANUP(struct file *, file_free)

static struct file *file_get(struct file_set *set, const char *file_name)
{
	struct file *found = file_find(set, file_name);
	_cleanup_(file_freep) struct file *e = NULL;

	if (found)
		return found;
	e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	e->file_name = strdup(file_name);
	if (!e->file_name || !tsearch(e, &set->files_index, file_compare))
		return NULL;
	TAILQ_INSERT_TAIL(&set->files, e, all);
	return TAKE_PTR(e);
}

static void file_detach(struct file_set *set, struct file *e, uint64_t now_ns)
{
	struct service *s = e->service;

	if (!s)
		return;
	if (TAILQ_FIRST(&s->files) == e)
		service_changed(set, s, now_ns);
	TAILQ_REMOVE(&s->files, e, peer);
	e->service = NULL;
	service_put(set, s);
}

static void file_attach(struct file_set *set, struct file *e, struct service *s)
{
	struct file *peer;

	if (!TAILQ_EMPTY(&s->files)) {
		peer = TAILQ_FIRST(&s->files);
		log_warning(set->log_area, "%s@@%s is in both %s and %s; the first by name counts", s->group, s->name,
			    peer->file_name, e->file_name);
	}
	e->service = s;
	TAILQ_FOREACH(peer, &s->files, peer)
	if (file_compare(e, peer) < 0) {
		TAILQ_INSERT_BEFORE(peer, e, peer);
		return;
	}
	TAILQ_INSERT_TAIL(&s->files, e, peer);
}

static void file_remove(struct file_set *set, struct file *e, uint64_t now_ns)
{
	file_detach(set, e, now_ns);
	if (e->gone_at_ns)
		TAILQ_REMOVE(&set->gone, e, gone);
	TAILQ_REMOVE(&set->files, e, all);
	tdelete(e, &set->files_index, file_compare);
	file_free(e);
}

static void file_is_there(struct file_set *set, struct file *e)
{
	if (e->gone_at_ns)
		TAILQ_REMOVE(&set->gone, e, gone);
	e->gone_at_ns = 0;
	e->scan = set->scan;
}

/* Editors delete and write anew, so it counts as gone only after a while. */
static void file_is_missing(struct file_set *set, struct file *e, uint64_t now_ns)
{
	if (e->gone_at_ns)
		return;
	e->gone_at_ns = now_ns + FILE_SET_GONE_NS;
	TAILQ_INSERT_TAIL(&set->gone, e, gone);
}

int file_set_seen(struct file_set *set, const char *file_name)
{
	struct file *e = file_get(set, file_name);

	if (!e)
		return -ENOMEM;
	file_is_there(set, e);
	return 0;
}

int file_set_put(struct file_set *set, const char *file_name, struct snapshot *s, uint64_t now_ns)
{
	struct file *e = file_get(set, file_name);
	struct service *service = service_get(set, s->group, s->name);

	if (!e || !service) {
		snapshot_free(s);
		return -ENOMEM;
	}
	file_is_there(set, e);
	if (e->service != service) {
		file_detach(set, e, now_ns);
		file_attach(set, e, service);
	}
	snapshot_free(e->snapshot);
	e->snapshot = s;
	if (TAILQ_FIRST(&service->files) == e)
		service_changed(set, service, now_ns);
	return 0;
}

void file_set_missing(struct file_set *set, const char *file_name, uint64_t now_ns)
{
	struct file *e = file_find(set, file_name);

	if (e)
		file_is_missing(set, e, now_ns);
}

void file_set_scan_begin(struct file_set *set)
{
	set->scan++;
}

void file_set_scan_end(struct file_set *set, uint64_t now_ns)
{
	struct file *e;

	TAILQ_FOREACH(e, &set->files, all)
	if (e->scan != set->scan)
		file_is_missing(set, e, now_ns);
	set->scanned = true;
	set->absent_at_ns = now_ns + FILE_SET_GONE_NS;
}

void file_set_forget_missing(struct file_set *set)
{
	struct file *e;

	while ((e = TAILQ_FIRST(&set->gone)))
		file_is_there(set, e);
	set->scanned = false;
	set->absent_at_ns = 0;
}

/* Its owner may know a service from an earlier run, whose file was deleted meanwhile. A file that did not parse yet may
 * be that of any service: as long as there is one, nobody is absent. */
static void find_absent(struct file_set *set, uint64_t now_ns)
{
	struct service *s;
	struct file *e;

	set->absent_at_ns = 0;
	TAILQ_FOREACH(e, &set->files, all)
	if (!e->snapshot)
		set->absent_at_ns = now_ns + FILE_SET_GONE_NS;
	if (set->absent_at_ns)
		return;
	TAILQ_FOREACH(s, &set->services, all)
	if (s->subscribed && !s->told && !s->absent && TAILQ_EMPTY(&s->files)) {
		s->absent = true;
		service_changed(set, s, now_ns);
	}
}

uint64_t file_set_expire(struct file_set *set, uint64_t now_ns)
{
	struct file *e;

	while ((e = TAILQ_FIRST(&set->gone)) && e->gone_at_ns <= now_ns)
		file_remove(set, e, now_ns);
	if (set->absent_at_ns && set->absent_at_ns <= now_ns)
		find_absent(set, now_ns);
	if (!e || (set->absent_at_ns && set->absent_at_ns < e->gone_at_ns))
		return set->absent_at_ns;
	return e->gone_at_ns;
}

/* ---- subscriptions ---- */

int file_set_subscribe(struct file_set *set, const char *group, const char *name, uint64_t now_ns)
{
	struct service *s = service_get(set, group, name);

	if (!s)
		return -ENOMEM;
	if (s->subscribed)
		return 0;
	s->subscribed = true;
	set->n_subscribed++;
	if (set->scanned)
		set->absent_at_ns = now_ns + FILE_SET_GONE_NS;
	service_changed(set, s, now_ns);
	return 0;
}

void file_set_unsubscribe(struct file_set *set, const char *group, const char *name)
{
	struct service *s = service_find(set, group, name);

	if (!s || !s->subscribed)
		return;
	set->n_subscribed--;
	s->subscribed = false;
	s->told = s->absent = false;
	if (s->stale)
		TAILQ_REMOVE(&set->queue, s, queue);
	s->stale = false;
	service_put(set, s);
}

unsigned file_set_n_subscribed(const struct file_set *set)
{
	return set->n_subscribed;
}

bool file_set_is_stale(const struct file_set *set)
{
	return !TAILQ_EMPTY(&set->queue);
}

struct snapshot *file_set_next(struct file_set *set, uint64_t *ret_received_ns)
{
	struct snapshot *snapshot;
	const struct file *first;
	struct service *s;

	while ((s = TAILQ_FIRST(&set->queue))) {
		TAILQ_REMOVE(&set->queue, s, queue);
		s->stale = false;
		first = TAILQ_FIRST(&s->files);
		if (!first && !s->told && !s->absent)
			continue;
		snapshot = first ? snapshot_copy(first->snapshot) : snapshot_new(s->group, s->name);
		if (!snapshot) {
			log_error(set->log_area, "%s@@%s: out of memory; its last list stays", s->group, s->name);
			continue;
		}
		s->told = first;
		*ret_received_ns = s->received_ns;
		return snapshot;
	}
	return NULL;
}

/* ---- the whole ---- */

struct file_set *file_set_new(const char *log_area)
{
	struct file_set *set = calloc(1, sizeof(*set));

	if (!set)
		return NULL;
	set->log_area = log_area;
	TAILQ_INIT(&set->files);
	TAILQ_INIT(&set->gone);
	TAILQ_INIT(&set->services);
	TAILQ_INIT(&set->queue);
	return set;
}

void file_set_free(struct file_set *set)
{
	struct service *s;
	struct file *e;

	if (!set)
		return;
	while ((e = TAILQ_FIRST(&set->files)))
		file_remove(set, e, 0);
	while ((s = TAILQ_FIRST(&set->services))) {
		s->subscribed = false;
		service_put(set, s);
	}
	free(set);
}
