// SPDX-License-Identifier: MIT
#include "field.h"
#include <errno.h>
#include <stdlib.h>
#include "../base/json.h"
#include "units.h"

bool field_u64(const cJSON *item, uint64_t *ret)
{
	unsigned long long n;
	char *end;

	if (cJSON_IsNumber(item) && item->valuedouble >= 0 && item->valuedouble < 0x1p64) {
		*ret = (uint64_t)item->valuedouble;
		return true;
	}
	if (!cJSON_IsRaw(item) || !item->valuestring || *item->valuestring < '0' || *item->valuestring > '9')
		return false;
	errno = 0;
	n = strtoull(item->valuestring, &end, 10);
	if (*end || errno)
		return false;
	*ret = n;
	return true;
}

bool field_number(const cJSON *object, const char *key, double *ret)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
	char *end;

	if (cJSON_IsRaw(item) && item->valuestring) {
		double value = strtod(item->valuestring, &end);

		if (end == item->valuestring || *end)
			return false;
		*ret = value;
		return true;
	}
	return json_number(object, key, ret);
}

const char *field_text(const cJSON *object, const char *key)
{
	const char *text = json_string(object, key);

	return text ? text : "";
}

void field_cell_text(struct print_table *t, enum print_style style, const cJSON *object, const char *key)
{
	print_cell(t, style, "%s", field_text(object, key));
}

void field_cell_count(struct print_table *t, const cJSON *object, const char *key)
{
	char buf[UNITS_LEN];
	uint64_t n;
	bool known = field_u64(cJSON_GetObjectItemCaseSensitive(object, key), &n);

	print_cell(t, PRINT_PLAIN, "%s", known ? units_count(buf, n) : "");
}

void field_cell_id(struct print_table *t, const cJSON *object, const char *key)
{
	uint64_t n;

	if (field_u64(cJSON_GetObjectItemCaseSensitive(object, key), &n))
		print_cell(t, PRINT_PLAIN, "%llu", (unsigned long long)n);
	else
		print_cell(t, PRINT_PLAIN, "%s", "");
}

void field_cell_bytes(struct print_table *t, const cJSON *object, const char *key)
{
	char buf[UNITS_LEN];
	uint64_t n;
	bool known = field_u64(cJSON_GetObjectItemCaseSensitive(object, key), &n);

	print_cell(t, PRINT_PLAIN, "%s", known ? units_bytes(buf, n) : "");
}

static void cell(struct print_table *t, const cJSON *object, const char *key,
		 char *(*format)(char buf[static UNITS_LEN], double value))
{
	char buf[UNITS_LEN];
	double value;

	print_cell(t, PRINT_PLAIN, "%s", field_number(object, key, &value) ? format(buf, value) : "");
}

void field_cell_seconds(struct print_table *t, const cJSON *object, const char *key)
{
	cell(t, object, key, units_seconds);
}

void field_cell_microseconds(struct print_table *t, const cJSON *object, const char *key)
{
	cell(t, object, key, units_microseconds);
}

void field_cell_percent(struct print_table *t, const cJSON *object, const char *key)
{
	cell(t, object, key, units_percent);
}

void field_cell_weight(struct print_table *t, const cJSON *object, const char *key)
{
	cell(t, object, key, units_weight);
}
