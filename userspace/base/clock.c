// SPDX-License-Identifier: MIT
#include "clock.h"
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const struct unit {
	const char *name;
	uint64_t ns;
} units[] = {
	{"h", 3600 * NS_PER_S}, {"m", 60 * NS_PER_S}, {"s", NS_PER_S}, {"ms", NS_PER_MS}, {"us", NS_PER_US}, {"ns", 1},
};
#define N_UNITS (sizeof(units) / sizeof(units[0]))

static uint64_t read_clock(clockid_t id)
{
	struct timespec ts;
	int r = clock_gettime(id, &ts);

	assert(r == 0); /* the three clocks below exist on every kernel that we run on */
	(void)r;
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

uint64_t clock_monotonic_ns(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

uint64_t clock_realtime_ns(void)
{
	return read_clock(CLOCK_REALTIME);
}

uint64_t clock_boottime_ns(void)
{
	return read_clock(CLOCK_BOOTTIME);
}

/* Digits at *p as a number; -1: none, or too great. */
static int take_number(const char **p, uint64_t *ret)
{
	uint64_t v = 0;
	const char *s = *p;

	for (; *s >= '0' && *s <= '9'; s++)
		if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, (uint64_t)(*s - '0'), &v))
			return -1;
	if (s == *p)
		return -1;
	*p = s;
	*ret = v;
	return 0;
}

/* The unit whose name is all the letters at *p, or NULL. */
static const struct unit *take_unit(const char **p)
{
	size_t n = strspn(*p, "abcdefghijklmnopqrstuvwxyz");

	for (size_t i = 0; i < N_UNITS; i++)
		if (strlen(units[i].name) == n && memcmp(units[i].name, *p, n) == 0) {
			*p += n;
			return &units[i];
		}
	return NULL;
}

int duration_parse(const char *text, uint64_t *ret_ns)
{
	const struct unit *last = NULL, *unit;
	uint64_t sum = 0, v;
	const char *p = text;

	if (strcmp(text, "0") == 0) {
		*ret_ns = 0;
		return 0;
	}
	do {
		if (take_number(&p, &v) < 0)
			return -EINVAL;
		unit = take_unit(&p);
		/* each unit once, the greater first: "1s1h" is more likely a slip than a wish */
		if (!unit || (last && unit <= last))
			return -EINVAL;
		if (__builtin_mul_overflow(v, unit->ns, &v) || __builtin_add_overflow(sum, v, &sum))
			return -EINVAL;
		last = unit;
	} while (*p);
	*ret_ns = sum;
	return 0;
}

char *duration_format(uint64_t ns, char *buf, size_t size)
{
	size_t at = 0;

	assert(size >= 32); /* 5124095h34m33s709ms551us615ns and its zero fit */
	if (ns == 0)
		(void)snprintf(buf, size, "0s");
	for (size_t i = 0; i < N_UNITS && ns; i++) {
		if (ns >= units[i].ns)
			at += (size_t)snprintf(buf + at, size - at, "%llu%s", (unsigned long long)(ns / units[i].ns),
					       units[i].name);
		ns %= units[i].ns;
	}
	return buf;
}

char *time_format(uint64_t realtime_ns, char *buf, size_t size)
{
	time_t seconds = (time_t)(realtime_ns / NS_PER_S);
	struct tm tm;
	size_t n;

	assert(size >= 32);
	(void)gmtime_r(&seconds, &tm); /* 64 bits of nanoseconds end in 2554: within its range */
	n = strftime(buf, size, "%Y-%m-%dT%H:%M:%S", &tm);
	(void)snprintf(buf + n, size - n, ".%03uZ", (unsigned)(realtime_ns % NS_PER_S / NS_PER_MS));
	return buf;
}
