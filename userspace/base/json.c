// SPDX-License-Identifier: MIT
#include "json.h"
#include "utf8.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* cJSON recurses; its own limit keeps that off the stack's end. */
_Static_assert(CJSON_NESTING_LIMIT <= 1000, "nesting is bounded by cJSON");

/* cJSON prints numbers with %.15g and takes what is within 2^-52 of it for the same: only integers of up to 15 digits
 * are sure to come out exact, everything else goes in as text. */
#define EXACT_IN_CJSON 1000000000000000ULL

cJSON *json_parse(const char *text, size_t size)
{
	_cleanup_json_ cJSON *json = NULL;
	const char *end = NULL;

	/* cJSON neither checks its strings nor stops at a zero: both are kept out here, so that every string of a
	 * parsed value is UTF-8 and may be printed as JSON again */
	if (!text || size == 0 || memchr(text, '\0', size) || !utf8_valid(text, size))
		return NULL;
	json = cJSON_ParseWithLengthOpts(text, size, &end, false);
	if (!json)
		return NULL;
	for (; end < text + size; end++)
		if (!strchr(" \t\r\n", *end))
			return NULL;
	return TAKE_PTR(json);
}

const char *json_string(const cJSON *object, const char *key)
{
	return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
}

bool json_bool(const cJSON *object, const char *key, bool otherwise)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);

	return cJSON_IsBool(item) ? cJSON_IsTrue(item) : otherwise;
}

bool json_number(const cJSON *object, const char *key, double *ret)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);

	if (!cJSON_IsNumber(item))
		return false;
	*ret = item->valuedouble;
	return true;
}

cJSON *json_add_u64(cJSON *object, const char *key, uint64_t value)
{
	char text[24];

	if (value < EXACT_IN_CJSON)
		return cJSON_AddNumberToObject(object, key, (double)value);
	(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	return cJSON_AddRawToObject(object, key, text);
}

cJSON *json_add_double(cJSON *object, const char *key, double value)
{
	char text[32];

	if (!isfinite(value))
		return cJSON_AddNullToObject(object, key); /* JSON has no word for it */
	for (int digits = 15; digits <= 17; digits++) {
		(void)snprintf(text, sizeof(text), "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	return cJSON_AddRawToObject(object, key, text);
}
