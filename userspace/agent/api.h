/* SPDX-License-Identifier: MIT */
/* The pages of the control socket. */
#pragma once
#include "../control/control.h"
#include "pipeline.h"

struct api {
	struct pipeline *pipeline; /* borrowed */
	/* Read the configuration again and bring it about: 0, or -errno and a sentence in why. */
	int (*reload)(void *ctx, char *why, size_t why_size);
	void *reload_ctx;
};

extern const struct control_route api_routes[]; /* handlers take a struct api as ctx */
