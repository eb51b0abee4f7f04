/* SPDX-License-Identifier: MIT */
/* Loading and adoption.
 *
 * A pin folder is complete when it holds `config`, which is pinned last and removed first: an agent that dies in
 * between leaves a folder that the next one clears and makes anew. A complete folder is adopted: the new programs are
 * loaded over the maps that are pinned, so flows, ids and generations stay, and links are then updated in place
 * (load_attach.c). */
#include "load.h"
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include "../base/cleanup.h"
#include "../base/clock.h"
#include "hz.h"
#include "load_check.h"
#include "load_private.h"
#include "maps.h"
#include "pins.h"
#include "steelyard.skel.h"

struct failure {
	enum load_fail fail;
	char *why;
	size_t why_size;
};

static int __attribute__((format(printf, 4, 5)))
failed(struct failure *f, enum load_fail fail, int err, const char *format, ...)
{
	va_list args;

	f->fail = fail;
	va_start(args, format);
	(void)vsnprintf(f->why, f->why_size, format, args);
	va_end(args);
	return err;
}

static int print_warnings(enum libbpf_print_level level, const char *format, va_list args)
{
	return level == LIBBPF_WARN ? vfprintf(stderr, format, args) : 0;
}

static int print_nothing(enum libbpf_print_level level, const char *format, va_list args)
{
	(void)level;
	(void)format;
	(void)args;
	return 0;
}

static int check_host(struct failure *f)
{
	char missing[256];

	load_check_capabilities(missing, sizeof(missing));
	if (missing[0])
		return failed(f, LOAD_PERMISSION, -EPERM, "not permitted: %s missing", missing);
	load_check_features(missing, sizeof(missing));
	if (missing[0])
		return failed(f, LOAD_FEATURE, -EOPNOTSUPP, "the kernel lacks: %s", missing);
	return 0;
}

static int take_folder(struct load *l, struct failure *f)
{
	int err = pins_make(l->pin_dir);

	if (err == -EINVAL)
		return failed(f, LOAD_DIRECTORY, err, "%s: not on a bpf file system (mount -t bpf bpf /sys/fs/bpf)",
			      l->pin_dir);
	if (err)
		return failed(f, LOAD_DIRECTORY, err, "%s: cannot make the pin folder: %s", l->pin_dir, strerror(-err));
	l->lock_fd = pins_lock(l->pin_dir);
	if (l->lock_fd == -EWOULDBLOCK)
		return failed(f, LOAD_LOCKED, -EWOULDBLOCK, "%s: another agent owns this pin folder", l->pin_dir);
	if (l->lock_fd < 0)
		return failed(f, LOAD_DIRECTORY, l->lock_fd, "%s: cannot lock: %s", l->pin_dir, strerror(-l->lock_fd));
	return 0;
}

/* Lines needed for that many flows, in whole groups, a power of two so that a mask finds a group. */
static uint32_t groups_for(uint32_t flows)
{
	uint64_t need = ((uint64_t)flows * SY_LINES_PER_FLOW + SY_LINES_PER_GROUP - 1) / SY_LINES_PER_GROUP, n = 1;

	while (n < need)
		n <<= 1;
	return (uint32_t)n;
}

static int config_make(struct sy_config *c, uint32_t flows)
{
	static const uint32_t default_s[SY_N_TIMEOUTS] = {60, 7440, 300, 30, 10};
	int n_cpus = libbpf_num_possible_cpus(), err;

	if (n_cpus < 0)
		return n_cpus;
	memset(c, 0, sizeof(*c));
	err = hz_measure(&c->hz);
	if (err)
		return err;
	if (getrandom(c->secret, sizeof(c->secret), 0) != (ssize_t)sizeof(c->secret))
		return -EIO;
	c->layout = SY_LAYOUT_VERSION;
	c->flows = flows < SY_MIN_FLOWS ? SY_MIN_FLOWS : flows > SY_MAX_FLOWS ? SY_MAX_FLOWS : flows;
	c->n_groups = groups_for(c->flows);
	c->n_cpus = (uint32_t)n_cpus;
	c->epoch = 1;
	c->min_timeout = UINT32_MAX;
	for (unsigned t = 0; t < SY_N_TIMEOUTS; t++) {
		c->default_timeout[t] = default_s[t] * c->hz;
		if (c->default_timeout[t] < c->min_timeout)
			c->min_timeout = c->default_timeout[t];
	}
	return 0;
}

static int set_sizes(struct load *l, const struct sy_config *c)
{
	int err = bpf_map__set_max_entries(l->skel->maps.lines, c->n_groups);

	if (!err)
		err = bpf_map__set_max_entries(l->skel->maps.counters, c->n_cpus * SY_MAX_BACKENDS);
	l->skel->rodata->sy_const.group_mask = c->n_groups - 1;
	l->skel->rodata->sy_const.hz = c->hz;
	l->skel->rodata->sy_const.n_cpus = c->n_cpus;
	l->skel->rodata->sy_const.have_loop = libbpf_probe_bpf_helper(BPF_PROG_TYPE_SCHED_CLS, BPF_FUNC_loop, NULL) == 1;
	memcpy(l->skel->rodata->sy_const.secret, c->secret, sizeof(c->secret));
	return err;
}

/* Is a pinned map what these programs were compiled for? */
static bool fits(const struct bpf_map *map, int fd)
{
	struct bpf_map_info info = {0};
	__u32 size = sizeof(info);

	return bpf_obj_get_info_by_fd(fd, &info, &size) == 0 && info.type == bpf_map__type(map) &&
	       info.key_size == bpf_map__key_size(map) && info.value_size == bpf_map__value_size(map) &&
	       info.max_entries == bpf_map__max_entries(map);
}

static int reuse_pinned(struct load *l, struct failure *f)
{
	const struct maps_row *rows;
	size_t n = maps_rows(&rows);

	for (size_t i = 0; i < n; i++) {
		struct bpf_map *map = bpf_object__find_map_by_name(l->skel->obj, rows[i].name);
		int fd = maps_fd(&l->maps, &rows[i]);

		if (!map || !fits(map, fd))
			return failed(f, LOAD_LAYOUT, -EPROTO,
				      "%s/%s: of another shape than this agent's; remove it with `steelyard detach`",
				      l->pin_dir, rows[i].name);
		if (bpf_map__reuse_fd(map, fd))
			return failed(f, LOAD_OTHER, -errno, "%s: cannot adopt: %s", rows[i].name, strerror(errno));
	}
	return 0;
}

/* 1: adopted, 0: nothing to adopt, else -errno */
static int find_pinned(struct load *l, struct failure *f)
{
	uint32_t layout = 0;
	int err = maps_open(l->pin_dir, true, &l->maps, &layout);

	if (!err)
		return 1;
	if (err == -ENOENT) {
		pins_remove_maps(l->pin_dir);
		return 0;
	}
	if (err == -EPROTO && layout == SY_LAYOUT_VERSION)
		return failed(f, LOAD_LAYOUT, err,
			      "%s: incomplete or of another shape; remove it with `steelyard detach`", l->pin_dir);
	if (err == -EPROTO)
		return failed(f, LOAD_LAYOUT, err,
			      "%s: pinned with layout version %u, this agent has %u; remove it with `steelyard detach`",
			      l->pin_dir, layout, SY_LAYOUT_VERSION);
	return failed(f, err == -EPERM || err == -EACCES ? LOAD_PERMISSION : LOAD_OTHER, err,
		      "%s: cannot open the pinned maps: %s", l->pin_dir, strerror(-err));
}

static int pin_new(struct load *l, const struct sy_config *c, struct failure *f)
{
	static const char *const names[] = {
#define X(NAME) #NAME,
		PINS_MAPS(X)
#undef X
	};
	const uint32_t zero = 0;
	char path[PATH_MAX];
	int err;

	if (bpf_map_update_elem(bpf_map__fd(l->skel->maps.config), &zero, c, BPF_ANY))
		return failed(f, LOAD_OTHER, -errno, "config: cannot write: %s", strerror(errno));
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct bpf_map *map = bpf_object__find_map_by_name(l->skel->obj, names[i]);

		if (!map || pins_map_path(l->pin_dir, names[i], path))
			return failed(f, LOAD_OTHER, -ENOENT, "%s: no such map", names[i]);
		if (bpf_obj_pin(bpf_map__fd(map), path))
			return failed(f, LOAD_DIRECTORY, -errno, "%s: cannot pin: %s", path, strerror(errno));
	}
	err = maps_open(l->pin_dir, true, &l->maps, NULL);
	return err ? failed(f, LOAD_OTHER, err, "%s: cannot open what was pinned: %s", l->pin_dir, strerror(-err)) : 0;
}

/* The timer's callback stays the one that armed it, whatever programs come later: so it is armed at each load. */
static int arm_sweeper(struct load *l, struct failure *f)
{
	char packet[64] = {0};
	LIBBPF_OPTS(bpf_test_run_opts, opts);
	int err;

	if (bpf_program__type(l->skel->progs.steelyard_arm) != BPF_PROG_TYPE_SYSCALL) {
		opts.data_in = packet;
		opts.data_size_in = sizeof(packet);
	}
	err = bpf_prog_test_run_opts(bpf_program__fd(l->skel->progs.steelyard_arm), &opts) ? -errno : 0;
	if (!err && opts.retval)
		err = (int)opts.retval < 0 ? (int)opts.retval : -EIO;
	return err ? failed(f, LOAD_OTHER, err, "cannot arm the sweeper: %s", strerror(-err)) : 0;
}

static int open_and_load(struct load *l, const struct load_options *o, struct failure *f)
{
	struct sy_config c;
	int found, err;

	found = find_pinned(l, f);
	if (found < 0)
		return found;
	l->adopted = found;
	if (l->adopted)
		c = *l->maps.config;
	else if ((err = config_make(&c, o->flows)))
		return failed(f, LOAD_OTHER, err, "cannot measure the kernel's clock: %s", strerror(-err));

	l->skel = steelyard_bpf__open();
	if (!l->skel)
		return failed(f, LOAD_OTHER, -errno, "cannot open the programs: %s", strerror(errno));
	err = set_sizes(l, &c);
	if (err)
		return failed(f, LOAD_OTHER, err, "cannot size the maps: %s", strerror(-err));
	if (l->adopted && (err = reuse_pinned(l, f)))
		return err;
	err = steelyard_bpf__load(l->skel);
	if (err == -EPERM)
		return failed(f, LOAD_PERMISSION, err, "the kernel refuses to load the programs: not permitted");
	if (err)
		return failed(f, LOAD_OTHER, err, "cannot load the programs and maps for %u flows: %s", c.flows,
			      strerror(-err));
	if (!l->adopted && (err = pin_new(l, &c, f)))
		return err;
	return arm_sweeper(l, f);
}

struct load *load_open(const struct load_options *o, enum load_fail *ret_fail, char *why, size_t why_size)
{
	struct failure f = {.fail = LOAD_OTHER, .why = why, .why_size = why_size};
	struct load *l = calloc(1, sizeof(*l));
	int err = -ENOMEM;

	if (l) {
		l->lock_fd = -1;
		l->maps.fd_lines = -1;
		l->pin_dir = strdup(o->pin_dir);
	}
	if (!l || !l->pin_dir) {
		(void)failed(&f, LOAD_OTHER, err, "out of memory");
	} else {
		(void)libbpf_set_print(o->quiet ? print_nothing : print_warnings);
		err = check_host(&f);
		if (!err)
			err = take_folder(l, &f);
		if (!err)
			err = open_and_load(l, o, &f);
	}
	if (err) {
		load_close(l);
		*ret_fail = f.fail;
		return NULL;
	}
	if (why_size)
		why[0] = 0;
	if (l->adopted && l->maps.config->flows != o->flows)
		(void)snprintf(why, why_size,
			       "flows: %u stays in force as pinned; %u takes effect after `steelyard detach`",
			       l->maps.config->flows, o->flows);
	*ret_fail = LOAD_OK;
	return l;
}

void load_close(struct load *l)
{
	if (!l)
		return;
	if (l->maps.config)
		maps_close(&l->maps);
	steelyard_bpf__destroy(l->skel);
	if (l->lock_fd >= 0)
		(void)close(l->lock_fd);
	free(l->pin_dir);
	free(l);
}

struct maps *load_maps(struct load *l)
{
	return &l->maps;
}

bool load_adopted(const struct load *l)
{
	return l->adopted;
}

int load_program_fd(const struct load *l, const char *name)
{
	const struct bpf_program *p = bpf_object__find_program_by_name(l->skel->obj, name);

	return p ? bpf_program__fd(p) : -ENOENT;
}
