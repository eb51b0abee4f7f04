/* SPDX-License-Identifier: MIT */
/* Where the programs are attached, from the pinned links. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <errno.h>
#include <linux/bpf.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include "../base/cleanup.h"
#include "../base/json.h"
#include "inspect.h"
#include "pins.h"

struct attached {
	char interface[64];
	bool xdp, gone;
	char programs[2][BPF_OBJ_NAME_LEN];
	unsigned n_programs;
};

struct attached_list {
	struct attached *all; /* owned */
	size_t n;
};

static struct attached *attached_get(struct attached_list *list, const char *interface)
{
	struct attached *grown;

	for (size_t i = 0; i < list->n; i++)
		if (!strcmp(list->all[i].interface, interface))
			return &list->all[i];
	grown = realloc(list->all, (list->n + 1) * sizeof(*grown));
	if (!grown)
		return NULL;
	list->all = grown;
	memset(&grown[list->n], 0, sizeof(*grown));
	(void)snprintf(grown[list->n].interface, sizeof(grown[list->n].interface), "%s", interface);
	return &grown[list->n++];
}

/* To be told by the kernel takes CAP_SYS_ADMIN, which the agent does not keep: then by what we attach there. */
static void program_name(uint32_t id, enum pins_link kind, char name[static BPF_OBJ_NAME_LEN])
{
	_cleanup_close_ int fd = bpf_prog_get_fd_by_id(id);
	struct bpf_prog_info info = {0};
	__u32 size = sizeof(info);

	(void)snprintf(name, BPF_OBJ_NAME_LEN, "%s", kind == PINS_LINK_XDP ? "steelyard_xdp" : "steelyard_tc");
	if (fd >= 0 && bpf_obj_get_info_by_fd(fd, &info, &size) == 0)
		(void)snprintf(name, BPF_OBJ_NAME_LEN, "%s", info.name);
}

/* false: the interface is gone */
static bool link_program(const char *path, uint32_t *ret_id)
{
	LIBBPF_OPTS(bpf_obj_get_opts, opts, .file_flags = 0);
	_cleanup_close_ int fd = bpf_obj_get_opts(path, &opts);
	struct bpf_link_info info = {0};
	__u32 size = sizeof(info);

	if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &size) || !info.xdp.ifindex)
		return false;
	*ret_id = info.prog_id;
	return true;
}

static bool filter_program(const char *interface, uint32_t *ret_id)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = (int)if_nametoindex(interface), .attach_point = BPF_TC_INGRESS);
	LIBBPF_OPTS(bpf_tc_opts, opts, .handle = PINS_FILTER_HANDLE, .priority = PINS_FILTER_HANDLE);

	if (!hook.ifindex || bpf_tc_query(&hook, &opts))
		return false;
	*ret_id = opts.prog_id;
	return true;
}

static void add_entry(struct attached_list *list, const char *pin_dir, enum pins_link kind, const char *interface)
{
	struct attached *a = kind == PINS_MARK_CLSACT ? NULL : attached_get(list, interface);
	char path[PATH_MAX];
	uint32_t id = 0;
	bool ok;

	if (!a || a->n_programs == 2 || pins_link_path(pin_dir, kind, interface, path))
		return;
	ok = kind == PINS_MARK_FILTER ? filter_program(interface, &id) : link_program(path, &id);
	a->gone |= !ok;
	a->xdp |= ok && kind == PINS_LINK_XDP;
	if (ok)
		program_name(id, kind, a->programs[a->n_programs++]);
}

static void read_entries(struct attached_list *list, const char *pin_dir)
{
	char path[PATH_MAX], interface[64];
	enum pins_link kind;
	DIR *folder;

	if (snprintf(path, sizeof(path), "%s/%s", pin_dir, SY_PIN_LINKS) >= (int)sizeof(path))
		return;
	folder = opendir(path);
	if (!folder)
		return;
	for (const struct dirent *e = readdir(folder); e; e = readdir(folder))
		if (pins_link_parse(e->d_name, &kind, interface))
			add_entry(list, pin_dir, kind, interface);
	(void)closedir(folder);
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(((const struct attached *)a)->interface, ((const struct attached *)b)->interface);
}

cJSON *inspect_interfaces(const char *pin_dir)
{
	struct attached_list list = {0};
	cJSON *out = cJSON_CreateArray();

	read_entries(&list, pin_dir);
	if (list.n)
		qsort(list.all, list.n, sizeof(*list.all), compare_names);
	for (size_t i = 0; i < list.n; i++) {
		const struct attached *a = &list.all[i];
		cJSON *o = cJSON_CreateObject(), *programs;

		(void)cJSON_AddStringToObject(o, "name", a->interface);
		(void)cJSON_AddStringToObject(o, "attach",
					      a->gone && !a->n_programs ? "gone"
					      : a->xdp			? "native"
									: "tc");
		programs = cJSON_AddArrayToObject(o, "programs");
		for (unsigned k = 0; k < a->n_programs; k++)
			(void)cJSON_AddItemToArray(programs, cJSON_CreateString(a->programs[k]));
		(void)cJSON_AddItemToArray(out, o);
	}
	free(list.all);
	return out;
}
