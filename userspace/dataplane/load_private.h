/* SPDX-License-Identifier: MIT */
/* What the files of the loader share. Private to dataplane. */
#pragma once
#include "load.h"

struct steelyard_bpf;

struct load {
	struct steelyard_bpf *skel; /* owned */
	struct maps maps;
	char *pin_dir; /* owned */
	int lock_fd;   /* holds the folder's lock */
	bool adopted;
};

/* Name of an interface's driver ("veth", "virtio_net") into buf of 32, "" when it does not say. */
void load_driver_name(const char *interface, char buf[static 32]);
