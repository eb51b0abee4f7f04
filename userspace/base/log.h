/* SPDX-License-Identifier: MIT */
/* Logging to stderr, one event a line: text ("LEVEL area: message", with a timestamp unless stderr is the journal) or
 * JSON ({"time","level","area","message"}). Only layers that own a decision log; the others return errors. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

enum log_level { LOG_LEVEL_DEBUG, LOG_LEVEL_INFO, LOG_LEVEL_WARNING, LOG_LEVEL_ERROR };

void log_init(enum log_level level, bool json);
void log_write(enum log_level level, const char *area, const char *format, ...) __attribute__((format(printf, 3, 4)));

#define log_debug(area, ...) log_write(LOG_LEVEL_DEBUG, area, __VA_ARGS__)
#define log_info(area, ...) log_write(LOG_LEVEL_INFO, area, __VA_ARGS__)
#define log_warning(area, ...) log_write(LOG_LEVEL_WARNING, area, __VA_ARGS__)
#define log_error(area, ...) log_write(LOG_LEVEL_ERROR, area, __VA_ARGS__)

/* One line per interval_ns at one place; the others are counted in *limit and told in the next line that passes. */
struct log_limit {
	uint64_t last_ns;
	uint64_t n_held_back;
};
bool log_limit_passes(struct log_limit *limit, uint64_t now_ns, uint64_t interval_ns, uint64_t *ret_held_back);
