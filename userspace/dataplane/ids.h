/* SPDX-License-Identifier: MIT */
/* Small integers given out lowest first: backend, endpoint and service ids. Pure; private to dataplane. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ids {
	uint64_t *used; /* owned bitmap */
	uint32_t n;	/* ids are 0 .. n - 1 */
	uint32_t n_used;
	uint32_t from; /* no word of the bitmap below this one has a free id */
};

int ids_init(struct ids *s, uint32_t n); /* 0 or -ENOMEM */
void ids_done(struct ids *s);
/* 0 and the lowest free id, or -ENOSPC. */
int ids_take(struct ids *s, uint32_t *ret);
/* Take this very id. false: it is taken or out of range. */
bool ids_claim(struct ids *s, uint32_t id);
void ids_release(struct ids *s, uint32_t id);
