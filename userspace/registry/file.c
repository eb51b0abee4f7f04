// SPDX-License-Identifier: MIT
/* The folder as a registry.
 *
 *   inotify ─▶ read, parse ─▶ file_set (which file counts, what is missing) ─timer─▶ sink
 *
 * What is never told is half a file: a file is read when its writer closes it or when it is renamed into place, and one
 * that does not parse changes nothing. A folder that vanishes is a registry that is down, so it changes nothing either;
 * when it is back, what it holds is compared with what was known. Once a second the folder at the path is compared with
 * the watched one, which covers every way of replacing it. */
#include "file.h"

#include <dirent.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include "../base/cleanup.h"
#include "../base/clock.h"
#include "../base/json.h"
#include "../base/log.h"
#include "../model/service_info.h"
#include "file_set.h"

#define TICK_NS	       NS_PER_S
#define MAX_FILE_BYTES (16U << 20)
#define EVENTS_BYTES   (64 << 10) /* read at a time: the loop has other work too */
#define MASK                                                                                                           \
	(IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_CREATE | IN_DELETE | IN_DELETE_SELF | IN_MOVE_SELF |        \
	 IN_ONLYDIR)

struct folder {
	struct registry registry;
	char *path, *log_area;
	int inotify;
	int watch; /* -1: the folder is not there */
	dev_t device;
	ino_t inode;
	struct event *readable, *tick, *expire, *deliver;
	struct file_set *set;
	enum registry_state state;
	uint64_t since_ns;
	const char *last_error; /* "" or static */
};

static void arm(struct event *e, uint64_t ns)
{
	const struct timeval t = {(time_t)(ns / NS_PER_S), (suseconds_t)(ns % NS_PER_S / NS_PER_US)};

	(void)event_add(e, &t);
}

/* What the set has to tell or to drop needs a turn of the loop: callbacks never come from inside subscribe. */
static void schedule(struct folder *f)
{
	uint64_t now_ns = clock_monotonic_ns(), at_ns = file_set_expire(f->set, now_ns);

	if (file_set_is_stale(f->set))
		arm(f->deliver, 0);
	if (at_ns)
		arm(f->expire, at_ns - now_ns);
}

static void on_deliver(evutil_socket_t fd, short what, void *user)
{
	struct folder *f = user;
	struct snapshot *s;
	uint64_t received_ns;

	(void)fd;
	(void)what;
	while ((s = file_set_next(f->set, &received_ns)))
		f->registry.sink.on_snapshot(f->registry.sink.ctx, s, received_ns);
}

static void on_expire(evutil_socket_t fd, short what, void *user)
{
	(void)fd;
	(void)what;
	schedule(user);
}

/* ---- files ---- */

/* Whole content, owned, not terminated. 0, -EAGAIN when it changed meanwhile, or -errno. */
static int slurp(const char *path, char **ret, size_t *ret_size)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	_cleanup_free_ char *data = NULL;
	struct stat before, after;
	size_t size = 0;
	ssize_t n;

	if (fd < 0 || fstat(fd, &before))
		return -errno;
	if (!S_ISREG(before.st_mode))
		return -EINVAL;
	if (before.st_size > MAX_FILE_BYTES)
		return -EFBIG;
	data = malloc((size_t)before.st_size + 1);
	if (!data)
		return -ENOMEM;
	while (size < (size_t)before.st_size && (n = read(fd, data + size, (size_t)before.st_size - size)) != 0) {
		if (n < 0)
			return -errno;
		size += (size_t)n;
	}
	if (fstat(fd, &after))
		return -errno;
	if (size != (size_t)after.st_size || before.st_mtim.tv_sec != after.st_mtim.tv_sec ||
	    before.st_mtim.tv_nsec != after.st_mtim.tv_nsec)
		return -EAGAIN;
	*ret = TAKE_PTR(data);
	*ret_size = size;
	return 0;
}

/* 0, -ENOENT when there is no such file, or -EINVAL with *ret_why. */
static int parse(const char *path, struct snapshot **ret, const char **ret_why)
{
	_cleanup_free_ char *text = NULL;
	_cleanup_json_ cJSON *json = NULL;
	size_t size;
	int r = slurp(path, &text, &size);

	if (r == -ENOENT)
		return r;
	if (r) {
		*ret_why = r == -EAGAIN ? "it is being written" : strerror(-r);
		return -EINVAL;
	}
	json = json_parse(text, size);
	if (!json) {
		*ret_why = size ? "not JSON" : "it is empty";
		return -EINVAL;
	}
	return service_info_parse(json, ret, ret_why) ? -EINVAL : 0;
}

/* Look at one file. quiet: it may be half written, and its writer's close will be heard. */
static void look_at_file(struct folder *f, const char *file_name, uint64_t now_ns, bool quiet)
{
	_cleanup_free_ char *path = NULL;
	struct snapshot *snapshot;
	const char *why = "";
	int r;

	if (asprintf(&path, "%s/%s", f->path, file_name) < 0) {
		path = NULL;
		return;
	}
	r = parse(path, &snapshot, &why);
	if (r == -ENOENT)
		file_set_missing(f->set, file_name, now_ns);
	else if (r)
		(void)file_set_seen(f->set, file_name);
	else if (file_set_put(f->set, file_name, snapshot, now_ns))
		why = "out of memory";
	if (*why && !quiet)
		log_warning(f->log_area, "%s: %s; what was known of it stays", file_name, why);
}

static bool is_service_file(const char *file_name)
{
	size_t n = strlen(file_name);

	return file_name[0] != '.' && n > 5 && !strcmp(file_name + n - 5, ".json");
}

/* ---- the folder ---- */

static void status(const struct registry *r, struct registry_status *ret)
{
	const struct folder *f = (const struct folder *)r;

	*ret = (struct registry_status){f->state, f->path, f->since_ns, file_set_n_subscribed(f->set), f->last_error};
}

static void tell_state(struct folder *f, enum registry_state state, const char *error)
{
	struct registry_status now;

	if (state == f->state && !strcmp(error, f->last_error))
		return;
	if (state == REGISTRY_LIVE)
		log_info(f->log_area, "live: watching %s", f->path);
	else
		log_warning(f->log_area, "%s: %s; what is known of it stays", f->path, error);
	f->state = state;
	f->last_error = error;
	f->since_ns = clock_realtime_ns();
	status(&f->registry, &now);
	f->registry.sink.on_state(f->registry.sink.ctx, &now);
}

static int scan_folder(struct folder *f, uint64_t now_ns)
{
	DIR *dir = opendir(f->path);
	const struct dirent *d;

	if (!dir)
		return -errno;
	file_set_scan_begin(f->set);
	while ((d = readdir(dir)))
		if (is_service_file(d->d_name))
			look_at_file(f, d->d_name, now_ns, false);
	closedir(dir);
	file_set_scan_end(f->set, now_ns);
	return 0;
}

static void unwatch(struct folder *f)
{
	if (f->watch >= 0)
		(void)inotify_rm_watch(f->inotify, f->watch);
	f->watch = -1;
	event_del(f->expire);
	file_set_forget_missing(f->set);
}

/* Bring the watch in line with what is at the path now, and read everything if that changed or again is set. */
static void look_at_folder(struct folder *f, bool again)
{
	uint64_t now_ns = clock_monotonic_ns();
	struct stat at_path;
	int error = stat(f->path, &at_path) ? errno : 0;

	if (!error && f->watch >= 0 && at_path.st_dev == f->device && at_path.st_ino == f->inode && !again)
		return;
	if (error || at_path.st_dev != f->device || at_path.st_ino != f->inode)
		unwatch(f);
	if (!error) {
		f->device = at_path.st_dev;
		f->inode = at_path.st_ino;
		f->watch = inotify_add_watch(f->inotify, f->path, MASK);
		error = f->watch < 0 ? errno : -scan_folder(f, now_ns);
	}
	if (error)
		unwatch(f);
	tell_state(f, error ? REGISTRY_DOWN : REGISTRY_LIVE, error ? strerror(error) : "");
	schedule(f);
}

static void on_tick(evutil_socket_t fd, short what, void *user)
{
	struct folder *f = user;

	(void)fd;
	(void)what;
	look_at_folder(f, false);
	arm(f->tick, TICK_NS);
}

/* true when only a scan can tell what happened. */
static bool event_take(struct folder *f, const struct inotify_event *event, uint64_t now_ns)
{
	const char *name = event->len ? event->name : "";

	if (event->mask & IN_Q_OVERFLOW)
		return true;
	if (event->wd != f->watch)
		return false; /* of a folder watched before */
	if (event->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED | IN_UNMOUNT)) {
		unwatch(f);
		return true;
	}
	/* "..data" and the like: a symbolic link that other files lead through, switched as a whole */
	if (!strncmp(name, "..", 2))
		return true;
	if (is_service_file(name))
		look_at_file(f, name, now_ns, !(event->mask & (IN_CLOSE_WRITE | IN_MOVED_TO)));
	return false;
}

static void on_readable(evutil_socket_t fd, short what, void *user)
{
	_Alignas(struct inotify_event) char buf[EVENTS_BYTES];
	struct folder *f = user;
	uint64_t now_ns = clock_monotonic_ns();
	bool rescan = false;
	ssize_t size = read(fd, buf, sizeof(buf));

	(void)what;
	for (ssize_t at = 0; at < size;) {
		const struct inotify_event *event = (const struct inotify_event *)(buf + at);
		rescan |= event_take(f, event, now_ns);
		at += (ssize_t)(sizeof(*event) + event->len);
	}
	if (rescan)
		look_at_folder(f, true);
	schedule(f);
}

/* ---- the five calls ---- */

static int start(struct registry *r)
{
	struct folder *f = (struct folder *)r;

	arm(f->tick, 0);
	return event_add(f->readable, NULL) ? -ENOMEM : 0;
}

static int subscribe(struct registry *r, const char *group, const char *name)
{
	struct folder *f = (struct folder *)r;
	int error = file_set_subscribe(f->set, group, name, clock_monotonic_ns());

	schedule(f);
	return error;
}

static int unsubscribe(struct registry *r, const char *group, const char *name)
{
	struct folder *f = (struct folder *)r;

	file_set_unsubscribe(f->set, group, name);
	return 0;
}

static void event_freep(struct event **e)
{
	if (*e)
		event_free(*e);
}

static void folder_free(struct registry *r)
{
	struct folder *f = (struct folder *)r;

	event_freep(&f->readable);
	event_freep(&f->tick);
	event_freep(&f->expire);
	event_freep(&f->deliver);
	file_set_free(f->set);
	closep(&f->inotify);
	free(f->path);
	free(f->log_area);
	free(r->name);
	free(f);
}
DEFINE_CLEANUP(struct registry *, registry_free)

struct registry *file_new(struct event_base *loop, const char *name, const char *path, const struct registry_sink *sink)
{
	static const struct registry_ops ops = {start, subscribe, unsubscribe, status, folder_free};
	_cleanup_(registry_freep) struct registry *r = NULL;
	struct folder *f = calloc(1, sizeof(*f));

	errno = ENOMEM;
	if (!f)
		return NULL;
	r = &f->registry;
	*r = (struct registry){&ops, loop, *sink, strdup(name)};
	f->watch = -1;
	f->state = REGISTRY_CONNECTING;
	f->since_ns = clock_realtime_ns();
	f->last_error = "";
	f->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (f->inotify < 0)
		return NULL;
	f->path = strdup(path);
	if (asprintf(&f->log_area, "registry %s", name) < 0)
		f->log_area = NULL;
	f->set = f->log_area ? file_set_new(f->log_area) : NULL;
	f->readable = event_new(loop, f->inotify, EV_READ | EV_PERSIST, on_readable, f);
	f->tick = event_new(loop, -1, 0, on_tick, f);
	f->expire = event_new(loop, -1, 0, on_expire, f);
	f->deliver = event_new(loop, -1, 0, on_deliver, f);
	if (!r->name || !f->path || !f->set || !f->readable || !f->tick || !f->expire || !f->deliver)
		return NULL;
	return TAKE_PTR(r);
}
