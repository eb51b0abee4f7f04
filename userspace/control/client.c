/* SPDX-License-Identifier: MIT */
/* The control socket's other side, for the CLI. */
#include "control.h"
#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../base/cleanup.h"
#include "../base/json.h"

DEFINE_CLEANUP(CURL *, curl_easy_cleanup)
DEFINE_CLEANUP(struct curl_slist *, curl_slist_free_all)

/* An agent that hangs must not hang who asks it. */
#define CALL_TIMEOUT_S 60L

struct answer {
	char *text; /* owned */
	size_t size;
};

static size_t on_body(char *data, size_t one, size_t n, void *arg)
{
	struct answer *a = arg;
	char *more = realloc(a->text, a->size + one * n);

	if (!more)
		return 0;
	memcpy(more + a->size, data, one * n);
	a->text = more;
	a->size += one * n;
	return one * n;
}

static int error_of(CURL *curl, CURLcode rc)
{
	long os = 0;

	switch (rc) {
	case CURLE_OK:
		return 0;
	case CURLE_OUT_OF_MEMORY:
	case CURLE_WRITE_ERROR:
		return -ENOMEM;
	case CURLE_COULDNT_CONNECT:
		(void)curl_easy_getinfo(curl, CURLINFO_OS_ERRNO, &os);
		return os > 0 ? -(int)os : -ECONNREFUSED;
	case CURLE_OPERATION_TIMEDOUT:
		return -ETIMEDOUT;
	default:
		return -EPROTO;
	}
}

static int perform(CURL *curl, const char *socket_path, const char *method, const char *path, const char *body,
		   struct answer *a)
{
	_cleanup_(curl_slist_free_allp) struct curl_slist *headers = NULL;
	_cleanup_free_ char *url = NULL;

	if (asprintf(&url, "http://localhost%s", path) < 0) {
		url = NULL;
		return -ENOMEM;
	}
	headers = curl_slist_append(NULL, "Content-Type: application/json");
	if (!headers)
		return -ENOMEM;
	(void)curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, socket_path);
	(void)curl_easy_setopt(curl, CURLOPT_URL, url);
	(void)curl_easy_setopt(curl, CURLOPT_PROXY, "");
	(void)curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	(void)curl_easy_setopt(curl, CURLOPT_TIMEOUT, CALL_TIMEOUT_S);
	(void)curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
	(void)curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method);
	if (!strcmp(method, "POST"))
		(void)curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body ? body : "");
	(void)curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
	(void)curl_easy_setopt(curl, CURLOPT_WRITEDATA, a);
	return error_of(curl, curl_easy_perform(curl));
}

int control_call(const char *socket_path, const char *method, const char *path, const cJSON *body, cJSON **ret,
		 int *ret_code)
{
	_cleanup_(curl_easy_cleanupp) CURL *curl = curl_easy_init();
	_cleanup_free_ char *text = body ? cJSON_PrintUnformatted(body) : NULL;
	struct answer a = {0};
	long code = 0;
	cJSON *json;
	int r;

	if (!curl || (body && !text))
		return -ENOMEM;
	r = perform(curl, socket_path, method, path, text, &a);
	json = !r && a.text ? json_parse(a.text, a.size) : NULL;
	free(a.text);
	if (r < 0)
		return r;
	if (!json)
		return -EPROTO;
	(void)curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &code);
	*ret = json;
	*ret_code = (int)code;
	return 0;
}
