// SPDX-License-Identifier: MIT
#include "units.h"
#include <stdio.h>
#include <string.h>

char *units_count(char buf[static UNITS_LEN], uint64_t n)
{
	char digits[24];
	int len = snprintf(digits, sizeof digits, "%llu", (unsigned long long)n), used = 0;

	for (int i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			buf[used++] = ',';
		buf[used++] = digits[i];
	}
	buf[used] = 0;
	return buf;
}

char *units_bytes(char buf[static UNITS_LEN], uint64_t bytes)
{
	static const char *const names[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
	double value = (double)bytes;
	unsigned unit = 0;

	/* 999.5 would be printed as 1000 */
	while (value >= 999.5 && unit + 1 < sizeof names / sizeof *names) {
		value /= 1000;
		unit++;
	}
	(void)snprintf(buf, UNITS_LEN, "%.*f %s",
		       unit == 0 || value >= 99.95 ? 0
		       : value >= 9.995		   ? 1
						   : 2,
		       value, names[unit]);
	return buf;
}

char *units_percent(char buf[static UNITS_LEN], double part)
{
	double percent = part * 100;

	if (percent > 0 && percent < 0.005)
		(void)snprintf(buf, UNITS_LEN, "%.1e %%", percent);
	else
		(void)snprintf(buf, UNITS_LEN, "%.2f %%", percent);
	return buf;
}

char *units_seconds(char buf[static UNITS_LEN], double seconds)
{
	unsigned long long s = seconds > 0 && seconds < 1e15 ? (unsigned long long)seconds : 0;

	if (seconds > 0 && seconds < 9.95)
		(void)snprintf(buf, UNITS_LEN, "%.1f s", seconds);
	else if (s < 60)
		(void)snprintf(buf, UNITS_LEN, "%llu s", s);
	else if (s < 3600)
		(void)snprintf(buf, UNITS_LEN, "%llum %llus", s / 60, s % 60);
	else if (s < 86400)
		(void)snprintf(buf, UNITS_LEN, "%lluh %llum", s / 3600, s / 60 % 60);
	else
		(void)snprintf(buf, UNITS_LEN, "%llud %lluh", s / 86400, s / 3600 % 24);
	return buf;
}

char *units_microseconds(char buf[static UNITS_LEN], double us)
{
	if (us >= 999500)
		return units_seconds(buf, us / 1e6);
	if (us >= 999.5)
		(void)snprintf(buf, UNITS_LEN, "%.1f ms", us / 1000);
	else
		(void)snprintf(buf, UNITS_LEN, "%.0f us", us);
	return buf;
}

char *units_weight(char buf[static UNITS_LEN], double weight)
{
	(void)snprintf(buf, UNITS_LEN, "%.6g", weight);
	return buf;
}
