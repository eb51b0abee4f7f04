/* SPDX-License-Identifier: MIT */
/* What the files of a folder say about services, file by file: which one counts, what is missing since when, and which
 * subscribed services the owner has to be told of. Pure: no I/O, time is an argument (any monotonic clock). */
#pragma once
#include <stdint.h>
#include "../model/instance.h"

#define FILE_SET_GONE_NS 1000000000ULL /* a missing file counts as gone after this */

struct file_set;

/* log_area is borrowed. Owned; NULL: no memory. */
struct file_set *file_set_new(const char *log_area);
void file_set_free(struct file_set *set); /* NULL is fine */

/* Subscribing twice is one subscription. 0 or -ENOMEM. */
int file_set_subscribe(struct file_set *set, const char *group, const char *name, uint64_t now_ns);
void file_set_unsubscribe(struct file_set *set, const char *group, const char *name);
unsigned file_set_n_subscribed(const struct file_set *set);

/* The file is there, whatever is in it. 0 or -ENOMEM. */
int file_set_seen(struct file_set *set, const char *file_name);
/* It is there and has a new content; takes s, on failure too. 0 or -ENOMEM. */
int file_set_put(struct file_set *set, const char *file_name, struct snapshot *s, uint64_t now_ns);
void file_set_missing(struct file_set *set, const char *file_name, uint64_t now_ns);
/* A walk over the whole folder: what is not seen or put between the two is missing. */
void file_set_scan_begin(struct file_set *set);
void file_set_scan_end(struct file_set *set, uint64_t now_ns);
/* The folder itself went away: nothing is known to be missing. */
void file_set_forget_missing(struct file_set *set);
/* Drop the files that are gone by now, and find the services that no file names a while after the scan or their
 * subscription: they are empty. When to call again, or 0 when nothing is awaited. */
uint64_t file_set_expire(struct file_set *set, uint64_t now_ns);

bool file_set_is_stale(const struct file_set *set); /* file_set_next() has something */
/* The next list to be told, owned, or NULL when there is none (left). Without instances when its last file is gone. */
struct snapshot *file_set_next(struct file_set *set, uint64_t *ret_received_ns);
