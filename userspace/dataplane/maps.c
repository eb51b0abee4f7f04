/* SPDX-License-Identifier: MIT */
/* Opening the pinned maps and mapping those that are memory-mapped. */
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "../base/cleanup.h"
#include "load.h"
#include "maps.h"
#include "pins.h"

#define FD(NAME)	  offsetof(struct maps, fd_##NAME)
#define AREA(NAME, FIELD) #NAME, FD(NAME), offsetof(struct maps, FIELD), sizeof(*((struct maps *)0)->FIELD)
#define PLAIN(NAME)	  #NAME, FD(NAME), 0, 0

/* config comes first: its layout says whether the others can be understood */
static const struct maps_row rows[] = {
	{AREA(config, config)},
	{AREA(lines, groups)},
	{AREA(backends, backends)},
	{AREA(loads, loads)},
	{AREA(endpoints, endpoints)},
	{AREA(counters, counters)},
	{AREA(services, services)},
	{AREA(tables, tables)},
	{AREA(pools, pools)},
	{AREA(ifaces, ifaces)},
	{PLAIN(sweep)},
	{PLAIN(service_info)},
	{PLAIN(backend_info)},
	{PLAIN(listeners4)},
	{PLAIN(vips4)},
	{PLAIN(nh_cache)},
	{PLAIN(cpu_state)},
	{PLAIN(verdicts)},
	{PLAIN(counts)},
	{PLAIN(events)},
};
#define N_ROWS (sizeof(rows) / sizeof(rows[0]))

size_t maps_rows(const struct maps_row **ret)
{
	*ret = rows;
	return N_ROWS;
}

int maps_fd(const struct maps *m, const struct maps_row *row)
{
	return *(const int *)((const char *)m + row->fd);
}

static int *fd_of(struct maps *m, const struct maps_row *row)
{
	return (int *)((char *)m + row->fd);
}

static void **area_of(struct maps *m, const struct maps_row *row)
{
	return (void **)((char *)m + row->area);
}

static size_t area_bytes(const struct bpf_map_info *info)
{
	size_t bytes = (size_t)info->max_entries * ((info->value_size + 7) & ~7U);
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (bytes + page - 1) / page * page;
}

static int map_info(int fd, struct bpf_map_info *ret)
{
	__u32 size = sizeof(*ret);

	memset(ret, 0, sizeof(*ret));
	return bpf_obj_get_info_by_fd(fd, ret, &size) ? -errno : 0;
}

static int open_row(const char *pin_dir, const struct maps_row *row, bool writable, struct maps *m)
{
	/* a read-only fd cannot be mapped shared, not even for reading: there the mapping alone is read-only */
	LIBBPF_OPTS(bpf_obj_get_opts, opts, .file_flags = writable || row->area ? 0 : BPF_F_RDONLY);
	struct bpf_map_info info;
	char path[PATH_MAX];
	void *area;
	int fd, err;

	err = pins_map_path(pin_dir, row->name, path);
	if (err)
		return err;
	fd = bpf_obj_get_opts(path, &opts);
	if (fd < 0)
		return -errno;
	*fd_of(m, row) = fd;
	if (!row->area)
		return 0;

	err = map_info(fd, &info);
	if (err)
		return err;
	if (info.value_size != row->value_bytes)
		return -EPROTO;
	area = mmap(NULL, area_bytes(&info), PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED, fd, 0);
	if (area == MAP_FAILED)
		return -errno;
	*area_of(m, row) = area;
	return 0;
}

static int open_all(const char *pin_dir, bool writable, struct maps *m, uint32_t *layout)
{
	for (size_t i = 0; i < N_ROWS; i++) {
		int err = open_row(pin_dir, &rows[i], writable, m);

		/* the folder has a config but not this: it is of no layout that we know */
		if (err == -ENOENT && i > 0)
			err = -EPROTO;
		if (err)
			return err;
		if (i > 0)
			continue;
		*layout = m->config->layout;
		if (*layout != SY_LAYOUT_VERSION)
			return -EPROTO;
	}
	return 0;
}

static void maps_init(struct maps *m)
{
	memset(m, 0, sizeof(*m));
	for (size_t i = 0; i < N_ROWS; i++)
		*fd_of(m, &rows[i]) = -1;
}

int maps_open(const char *pin_dir, bool writable, struct maps *ret, uint32_t *ret_layout)
{
	struct maps m;
	uint32_t layout = 0;
	int err;

	maps_init(&m);
	err = open_all(pin_dir, writable, &m, &layout);
	if (ret_layout && (!err || err == -EPROTO))
		*ret_layout = layout;
	if (err) {
		maps_close(&m);
		return err;
	}
	*ret = m;
	return 0;
}

void maps_close(struct maps *m)
{
	for (size_t i = 0; i < N_ROWS; i++) {
		const struct maps_row *row = &rows[i];
		struct bpf_map_info info;
		int fd = maps_fd(m, row);

		if (fd < 0)
			continue;
		if (row->area && *area_of(m, row) && map_info(fd, &info) == 0)
			(void)munmap(*area_of(m, row), area_bytes(&info));
		(void)close(fd);
	}
	maps_init(m);
}
