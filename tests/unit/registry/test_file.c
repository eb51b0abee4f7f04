// SPDX-License-Identifier: MIT
/* A real folder, a real loop, and every way in which people and tools change files. */
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <sys/stat.h>
#include "unit.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "registry/file.h"
#include "loop.h"


struct scene {
	struct event_base *loop;
	struct event *heartbeat;
	struct registry *registry;
	char top[64], path[80]; /* a folder of ours, and the one watched in it */
	unsigned n_snapshots, n_empty;
	size_t n_instances; /* of the last snapshot */
	double weight;	    /* of its first instance */
	double settled;	    /* weight of the service that settle() writes */
	bool torn;	    /* a snapshot that no writer ever wrote */
	enum registry_state state;
	char error[128];
};

static void on_snapshot(void *ctx, struct snapshot *s, uint64_t received_ns)
{
	struct scene *sc = ctx;

	assert_true(received_ns && received_ns <= clock_monotonic_ns());
	if (!strcmp(s->name, "settle")) {
		sc->settled = s->instances[0].weight;
		snapshot_free(s);
		return;
	}
	sc->n_snapshots++;
	sc->n_empty += !s->n_instances;
	sc->n_instances = s->n_instances;
	sc->weight = s->n_instances ? s->instances[0].weight : -1;
	/* the writers below give every instance of a file one weight */
	for (size_t i = 0; i < s->n_instances; i++)
		sc->torn |= s->instances[i].weight != sc->weight;
	snapshot_free(s);
}

static void on_state(void *ctx, const struct registry_status *status)
{
	struct scene *sc = ctx;

	sc->state = status->state;
	assert_string_equal(status->server, sc->path);
	snprintf(sc->error, sizeof(sc->error), "%s", status->last_error);
}

static struct scene *scene_new(void)
{
	struct scene *sc = calloc(1, sizeof(*sc));
	const struct timeval often = {0, 50000};

	sc->loop = event_base_new();
	sc->heartbeat = event_new(sc->loop, -1, EV_PERSIST, on_heartbeat, NULL);
	event_add(sc->heartbeat, &often);
	sc->state = REGISTRY_CONNECTING;
	snprintf(sc->top, sizeof(sc->top), "/tmp/steelyard-test-file-XXXXXX");
	assert_non_null(mkdtemp(sc->top));
	snprintf(sc->path, sizeof(sc->path), "%s/d", sc->top);
	return sc;
}

static void scene_start(struct scene *sc)
{
	const struct registry_sink sink = {on_snapshot, on_state, sc};

	sc->registry = file_new(sc->loop, "test", sc->path, &sink);
	assert_non_null(sc->registry);
	assert_int_equal(registry_start(sc->registry), 0);
	assert_int_equal(registry_subscribe(sc->registry, "DEFAULT_GROUP", "svc"), 0);
	assert_int_equal(sc->n_snapshots, 0);
}

static void run(const char *format, const char *argument)
{
	char command[512];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(command, sizeof(command), format, argument, argument, argument);
#pragma GCC diagnostic pop
	assert_int_equal(system(command), 0);
}

static void scene_free(struct scene *sc)
{
	registry_free(sc->registry);
	run("rm -rf %s", sc->top);
	event_free(sc->heartbeat);
	event_base_free(sc->loop);
	free(sc);
}

/* A file's text: n instances, all of one weight. */
static char *text(const char *service, size_t n, double weight)
{
	char *buf = NULL;
	size_t size;
	FILE *f = open_memstream(&buf, &size);

	fprintf(f, "{\"name\":\"%s\",\"groupName\":\"DEFAULT_GROUP\",\"hosts\":[", service);
	for (size_t i = 0; i < n; i++)
		fprintf(f, "%s{\"ip\":\"10.0.%zu.%zu\",\"port\":80,\"weight\":%g}", i ? "," : "", i / 250, i % 250 + 1,
			weight);
	fprintf(f, "]}\n");
	fclose(f);
	return buf;
}

static int open_file(struct scene *sc, const char *name, int flags)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", sc->path, name);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0644);
	assert_true(fd >= 0);
	return fd;
}

static void write_text(int fd, const char *part, size_t size)
{
	assert_int_equal(write(fd, part, size), size);
}

static void write_file(struct scene *sc, const char *name, const char *service, size_t n, double weight)
{
	_cleanup_free_ char *all = text(service, n, weight);
	_cleanup_close_ int fd = open_file(sc, name, O_TRUNC);

	write_text(fd, all, strlen(all));
}

/* A folder with svc in a.json: 2 instances of weight 1, told. */
static struct scene *scene_live(void)
{
	struct scene *sc = scene_new();

	assert_int_equal(mkdir(sc->path, 0755), 0);
	write_file(sc, "a.json", "svc", 2, 1);
	scene_start(sc);
	until(sc, sc->n_snapshots == 1);
	assert_int_equal(sc->state, REGISTRY_LIVE);
	assert_int_equal(sc->n_instances, 2);
	return sc;
}

/* Until a change made now is told: all that was to be told before has been. */
static void settle(struct scene *sc)
{
	double next = sc->settled + 1;

	assert_int_equal(registry_subscribe(sc->registry, "DEFAULT_GROUP", "settle"), 0);
	write_file(sc, "zz-settle.json", "settle", 1, next);
	until(sc, sc->settled == next);
}

static void in_place(void **state)
{
	struct scene *sc = scene_live();

	(void)state;
	write_file(sc, "a.json", "svc", 3, 2);
	until(sc, sc->weight == 2);
	assert_int_equal(sc->n_instances, 3);
	write_file(sc, "a.json", "svc", 0, 0);
	until(sc, sc->n_empty == 1);
	scene_free(sc);
}

static void in_pieces(void **state)
{
	struct scene *sc = scene_live();
	_cleanup_free_ char *all = text("svc", 500, 3);
	size_t size = strlen(all);
	int fd = open_file(sc, "a.json", O_TRUNC);

	(void)state;
	/* between any two pieces the folder is looked at for another reason: a rescan, an event of another file */
	for (size_t at = 0; at < size; at += 5000) {
		write_text(fd, all + at, size - at < 5000 ? size - at : 5000);
		run("touch %s/..data", sc->path);
		event_base_loop(sc->loop, EVLOOP_ONCE);
		event_base_loop(sc->loop, EVLOOP_NONBLOCK);
		assert_true(sc->n_instances == 2 || sc->n_instances == 500);
	}
	close(fd);
	until(sc, sc->n_instances == 500 && sc->weight == 3);
	assert_int_equal(sc->n_empty, 0);
	assert_false(sc->torn);
	scene_free(sc);
}

static void renamed_over(void **state)
{
	struct scene *sc = scene_live();

	(void)state;
	write_file(sc, "a.json.tmp", "svc", 4, 4);
	run("mv %s/a.json.tmp %s/a.json", sc->path);
	until(sc, sc->weight == 4);
	assert_int_equal(sc->n_empty, 0);
	run("cp %s/a.json /tmp/steelyard-test-file.$$ && sed -i s/:4/:5/ /tmp/steelyard-test-file.$$ && "
	    "mv /tmp/steelyard-test-file.$$ %s/a.json",
	    sc->path);
	until(sc, sc->weight == 5);
	assert_int_equal(sc->n_empty, 0);
	scene_free(sc);
}

static void unreadable_content(void **state)
{
	static const char *const contents[] = {"",
					       "{",
					       "nonsense",
					       "[]",
					       "{}",
					       "{\"name\":\"svc\"}",
					       "{\"name\":\"svc\",\"hosts\":null}",
					       "{\"name\":\"svc\",\"hosts\":[]} more"};
	struct scene *sc = scene_live();

	(void)state;
	for (size_t i = 0; i < sizeof(contents) / sizeof(*contents); i++) {
		int fd = open_file(sc, "a.json", O_TRUNC);
		write_text(fd, contents[i], strlen(contents[i]));
		close(fd);
		settle(sc);
		assert_int_equal(sc->n_empty, 0);
	}
	assert_int_equal(sc->n_snapshots, 1);
	write_file(sc, "a.json", "svc", 1, 9);
	until(sc, sc->weight == 9);
	scene_free(sc);
}

static void deleted(void **state)
{
	struct scene *sc = scene_live();

	(void)state;
	run("rm %s/a.json", sc->path);
	until(sc, sc->n_empty == 1);
	write_file(sc, "a.json", "svc", 1, 2);
	until(sc, sc->weight == 2);
	/* moved out is deleted, and moved in is written */
	run("mv %s/a.json /tmp/steelyard-test-file.$PPID", sc->path);
	until(sc, sc->n_empty == 2);
	run("mv /tmp/steelyard-test-file.$PPID %s/b.json", sc->path);
	until(sc, sc->weight == 2);
	scene_free(sc);
}

static void deleted_and_back(void **state)
{
	struct scene *sc = scene_live();
	uint64_t end;

	(void)state;
	for (int i = 0; i < 20; i++) {
		run("rm %s/a.json", sc->path);
		event_base_loop(sc->loop, EVLOOP_ONCE);
		write_file(sc, "a.json", "svc", 2, 10 + i);
		until(sc, sc->weight == 10 + i);
	}
	/* longer than a file may be missing */
	end = clock_monotonic_ns() + 2 * NS_PER_S;
	until(sc, clock_monotonic_ns() > end);
	assert_int_equal(sc->n_empty, 0);
	scene_free(sc);
}

static void linked(void **state)
{
	struct scene *sc = scene_live();

	(void)state;
	/* the way of a mounted config map: files lead through a link that is switched as a whole */
	run("cd %s && rm a.json && mkdir ..1 ..2 && ln -s ..1 ..data && ln -s ..data/a.json a.json", sc->path);
	write_file(sc, "..1/a.json", "svc", 1, 2);
	write_file(sc, "..2/a.json", "svc", 1, 3);
	run("touch -h %s/..data && ln -s x %s/..poke", sc->path);
	until(sc, sc->weight == 2);
	run("cd %s && ln -s ..2 ..new && mv -T ..new ..data", sc->path);
	until(sc, sc->weight == 3);
	assert_int_equal(sc->n_empty, 0);
	/* and a hard link, of which only its creation is heard */
	run("cd %s && sed s/:3/:4/ ..2/a.json > ../h && ln ../h 0.json", sc->path);
	until(sc, sc->weight == 4);
	scene_free(sc);
}

static void not_files(void **state)
{
	struct scene *sc = scene_live();

	(void)state;
	run("mkdir %s/0.json && mkfifo %s/1.json && ln -s /nowhere %s/2.json", sc->path);
	write_file(sc, ".hidden.json", "svc", 1, 66);
	write_file(sc, "a.json~", "svc", 1, 66);
	write_file(sc, "a.yaml", "svc", 1, 66);
	settle(sc);
	assert_int_equal(sc->n_snapshots, 1);
	write_file(sc, "a.json", "svc", 1, 2);
	until(sc, sc->weight == 2);
	scene_free(sc);
}

static void no_folder_yet(void **state)
{
	struct scene *sc = scene_new();

	(void)state;
	scene_start(sc);
	until(sc, sc->state == REGISTRY_DOWN);
	assert_string_equal(sc->error, "No such file or directory");
	assert_int_equal(mkdir(sc->path, 0755), 0);
	write_file(sc, "a.json", "svc", 1, 2);
	until(sc, sc->weight == 2);
	assert_int_equal(sc->state, REGISTRY_LIVE);
	assert_string_equal(sc->error, "");
	scene_free(sc);
}

static void folder_vanishes(void **state)
{
	struct scene *sc = scene_live();
	uint64_t end;

	(void)state;
	run("rm -rf %s", sc->path);
	until(sc, sc->state == REGISTRY_DOWN);
	end = clock_monotonic_ns() + 2 * NS_PER_S;
	until(sc, clock_monotonic_ns() > end);
	assert_int_equal(sc->n_empty, 0);
	/* back without the file: now it is known to be gone */
	assert_int_equal(mkdir(sc->path, 0755), 0);
	until(sc, sc->n_empty == 1);
	assert_int_equal(sc->state, REGISTRY_LIVE);
	write_file(sc, "a.json", "svc", 1, 2);
	until(sc, sc->weight == 2);
	scene_free(sc);
}

static void folder_replaced(void **state)
{
	struct scene *sc = scene_live();

	(void)state;
	run("cp -r %s %s.new && sed -i s/:1}/:2}/g %s.new/a.json", sc->path);
	run("cd $(dirname %s) && mv d d.old && mv d.new d", sc->path);
	until(sc, sc->weight == 2);
	write_file(sc, "a.json", "svc", 1, 3);
	until(sc, sc->weight == 3);
	/* and one that is reached through a link */
	run("cd $(dirname %s) && mv d e && cp -r e f && ln -s e d", sc->path);
	until(sc, sc->weight == 3 && sc->state == REGISTRY_LIVE);
	run("cd $(dirname %s) && sed -i s/:3}/:4}/ f/a.json && ln -s f g && mv -T g d", sc->path);
	until(sc, sc->weight == 4);
	assert_int_equal(sc->n_empty, 0);
	scene_free(sc);
}

static void overflow(void **state)
{
	struct scene *sc = scene_live();
	char a[128], b[128];
	long limit = 0;
	FILE *f = fopen("/proc/sys/fs/inotify/max_queued_events", "r");

	(void)state;
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%ld", &limit), 1);
	fclose(f);
	if (limit > 1000000)
		skip();
	snprintf(a, sizeof(a), "%s/noise-a", sc->path);
	snprintf(b, sizeof(b), "%s/noise-b", sc->path);
	close(open_file(sc, "noise-a", O_TRUNC));
	for (long i = 0; i < limit / 4 + 10; i++) {
		assert_int_equal(rename(a, b), 0);
		assert_int_equal(rename(b, a), 0);
	}
	write_file(sc, "a.json", "svc", 1, 8); /* of which no event is left */
	until(sc, sc->weight == 8);
	assert_int_equal(sc->n_empty, 0);
	scene_free(sc);
}

static void late_subscription(void **state)
{
	struct scene *sc = scene_live();

	(void)state;
	write_file(sc, "b.json", "late", 1, 2);
	settle(sc);
	assert_int_equal(sc->n_snapshots, 1);
	registry_subscribe(sc->registry, "DEFAULT_GROUP", "late");
	until(sc, sc->weight == 2);
	registry_subscribe(sc->registry, "DEFAULT_GROUP", "nobody");
	settle(sc);
	assert_int_equal(sc->n_snapshots, 2);
	scene_free(sc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE("a file written in place is told when it is closed", in_place),
		CASE("a file written in pieces is never told in part", in_pieces),
		CASE("a file renamed over another is told at once", renamed_over),
		CASE("content that is no service keeps what was", unreadable_content),
		CASE("a deleted file leaves its service empty, a new one fills it", deleted),
		CASE("a file deleted and written anew is never gone", deleted_and_back),
		CASE("links are followed when they are switched or made", linked),
		CASE("folders, pipes, dead links and other names are passed over", not_files),
		CASE("a folder that does not exist yet is waited for", no_folder_yet),
		CASE("a folder that vanishes changes nothing until it is back", folder_vanishes),
		CASE("a folder replaced by another is followed", folder_replaced),
		CASE("an overflow of the event queue is followed by a full scan", overflow),
		CASE("a service is told when it is subscribed, if there is a file", late_subscription),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
