// SPDX-License-Identifier: MIT
#include "listing.h"
#include <stdio.h>
#include <stdlib.h>

#define STEP 1237 /* a prime, and no factor of n: every instance comes once, and neighbours are far apart */

char *listing(const char *service, size_t n, unsigned salt, bool every)
{
	size_t size = 300 + n * 200, at;
	char *text = malloc(size);

	if (!text)
		return NULL;
	at = (size_t)snprintf(text, size, "{\"name\":\"%s\",\"groupName\":\"DEFAULT_GROUP\",\"hosts\":[", service);
	for (size_t k = 0; k < n; k++) {
		size_t i = k * STEP % n;
		unsigned extra = every || i == n / 2 ? salt : 0;

		at += (size_t)snprintf(
			text + at, size - at,
			"%s{\"ip\":\"10.3.%zu.%zu\",\"port\":8080,\"weight\":%u.5,\"healthy\":true,"
			"\"enabled\":true,\"ephemeral\":true,\"clusterName\":\"DEFAULT\",\"serviceName\":\"%s\","
			"\"metadata\":{}}",
			k ? "," : "", i >> 8, i & 255, 1 + ((unsigned)i + extra) % 9, service);
	}
	(void)snprintf(text + at, size - at, "]}");
	return text;
}
