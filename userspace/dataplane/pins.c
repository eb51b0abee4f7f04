/* SPDX-License-Identifier: MIT */
#include "pins.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include "../base/cleanup.h"
#include "sy_abi.h"

#define BPFFS_ROOT "/sys/fs/bpf"

static const char *const link_prefixes[PINS_N_LINKS] = {"xdp_", "tc_", "filter_", "clsact_"};

static int path_format(char buf[static PATH_MAX], const char *pin_dir, const char *sub, const char *name)
{
	int n = snprintf(buf, PATH_MAX, "%s/%s%s", pin_dir, sub, name);

	return n < 0 || n >= PATH_MAX ? -ENAMETOOLONG : 0;
}

int pins_map_path(const char *pin_dir, const char *map, char buf[static PATH_MAX])
{
	return path_format(buf, pin_dir, "", map);
}

int pins_link_path(const char *pin_dir, enum pins_link kind, const char *interface, char buf[static PATH_MAX])
{
	char name[128];
	size_t n = (size_t)snprintf(name, sizeof(name), "%s", link_prefixes[kind]);

	for (const char *c = interface; *c; c++) {
		if (n + 4 >= sizeof(name))
			return -ENAMETOOLONG;
		if (*c == '.' || *c == '%' || *c == '/')
			n += (size_t)sprintf(name + n, "%%%02x", (unsigned)*c);
		else
			name[n++] = *c;
	}
	name[n] = 0;
	return path_format(buf, pin_dir, SY_PIN_LINKS "/", name);
}

bool pins_link_parse(const char *file, enum pins_link *ret_kind, char interface[static 64])
{
	for (unsigned k = 0; k < PINS_N_LINKS; k++) {
		size_t skip = strlen(link_prefixes[k]), n = 0;

		if (strncmp(file, link_prefixes[k], skip))
			continue;
		for (const char *c = file + skip; *c && n < 63; c++) {
			unsigned code;

			if (*c == '%' && sscanf(c + 1, "%2x", &code) == 1) {
				interface[n++] = (char)code;
				c += 2;
			} else {
				interface[n++] = *c;
			}
		}
		interface[n] = 0;
		*ret_kind = (enum pins_link)k;
		return n > 0;
	}
	return false;
}

static bool is_kept(const char *const *keep, size_t n_keep, const char *interface)
{
	for (size_t i = 0; i < n_keep; i++)
		if (!strcmp(keep[i], interface))
			return true;
	return false;
}

bool pins_next_link(const char *pin_dir, const char *const *keep, size_t n_keep, enum pins_link *ret_kind,
		    char interface[static 64])
{
	char path[PATH_MAX];
	bool found = false;
	DIR *folder;

	if (path_format(path, pin_dir, "", SY_PIN_LINKS))
		return false;
	folder = opendir(path);
	if (!folder)
		return false;
	for (const struct dirent *e = readdir(folder); e && !found; e = readdir(folder))
		found = pins_link_parse(e->d_name, ret_kind, interface) && !is_kept(keep, n_keep, interface);
	(void)closedir(folder);
	return found;
}

static bool is_bpffs(const char *path)
{
	struct statfs s;

	return statfs(path, &s) == 0 && (unsigned long)s.f_type == BPF_FS_MAGIC;
}

static int make_folders(const char *path)
{
	char part[PATH_MAX];

	if (strlen(path) >= sizeof(part))
		return -ENAMETOOLONG;
	strcpy(part, path);
	for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		if (mkdir(part, 0755) && errno != EEXIST)
			return -errno;
		*slash = '/';
	}
	return mkdir(part, 0700) && errno != EEXIST ? -errno : 0;
}

int pins_make(const char *pin_dir)
{
	char links[PATH_MAX];
	int err;

	if (!strncmp(pin_dir, BPFFS_ROOT "/", sizeof(BPFFS_ROOT)) && !is_bpffs(BPFFS_ROOT) &&
	    mount("bpf", BPFFS_ROOT, "bpf", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0700"))
		return -errno;
	err = make_folders(pin_dir);
	if (err)
		return err;
	if (!is_bpffs(pin_dir))
		return -EINVAL;
	err = path_format(links, pin_dir, "", SY_PIN_LINKS);
	if (err)
		return err;
	return mkdir(links, 0700) && errno != EEXIST ? -errno : 0;
}

int pins_lock(const char *pin_dir)
{
	/* the folder may be removed by `steelyard detach` between open and lock: then what we locked is not what is
	 * there */
	for (unsigned i = 0; i < 8; i++) {
		_cleanup_close_ int fd = open(pin_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		struct stat mine, there;

		if (fd < 0)
			return -errno;
		if (flock(fd, LOCK_EX | LOCK_NB))
			return -errno;
		if (fstat(fd, &mine) == 0 && stat(pin_dir, &there) == 0 && mine.st_ino == there.st_ino)
			return TAKE_FD(fd);
	}
	return -ENOENT;
}

void pins_remove_maps(const char *pin_dir)
{
	static const char *const names[] = {
#define X(NAME) #NAME,
		PINS_MAPS(X)
#undef X
	};
	char path[PATH_MAX];

	/* config first: a folder without it is no longer adopted, whatever happens next */
	for (size_t i = sizeof(names) / sizeof(names[0]); i-- > 0;)
		if (pins_map_path(pin_dir, names[i], path) == 0)
			(void)unlink(path);
}
