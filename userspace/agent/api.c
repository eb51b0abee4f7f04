/* SPDX-License-Identifier: MIT */
#include "api.h"
#include <errno.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../base/json.h"
#include "../base/log.h"
#include "../dataplane/inspect.h"
#include "status.h"

DEFINE_CLEANUP(struct inspect *, inspect_close)

static struct inspect *look(const struct api *api, int *ret_code, char *why, size_t why_size)
{
	struct inspect *i = inspect_over(api->pipeline->maps);

	if (!i) {
		*ret_code = 500;
		(void)snprintf(why, why_size, "cannot read the maps: %s", strerror(errno));
	}
	return i;
}

/* The service that text names. 0, or -errno with code and why set. */
static int service_of(struct inspect *i, const char *text, uint32_t *ret, int *ret_code, char *why, size_t why_size)
{
	int r;

	if (!text || !*text) {
		*ret_code = 400;
		(void)snprintf(why, why_size, "no service is named");
		return -EINVAL;
	}
	*why = 0;
	r = inspect_find_service(i, text, ret, why, why_size);
	if (r < 0) {
		*ret_code = r == -ENOENT ? 404 : 409;
		if (!*why)
			(void)snprintf(why, why_size, "no service %.128s", text);
	}
	return r;
}

static const char *query_get(struct evkeyvalq *q, const char *key)
{
	const char *value = evhttp_find_header(q, key);

	return value && *value ? value : NULL;
}

static cJSON *get_status(void *ctx, const cJSON *body, const char *query, int *ret_code, char *why, size_t why_size)
{
	const struct api *api = ctx;

	(void)body;
	(void)query;
	*ret_code = 500;
	(void)snprintf(why, why_size, "out of memory");
	return status_make(api->pipeline);
}

static cJSON *get_services(void *ctx, const cJSON *body, const char *query, int *ret_code, char *why, size_t why_size)
{
	_cleanup_(inspect_closep) struct inspect *i = look(ctx, ret_code, why, why_size);

	(void)body;
	(void)query;
	return i ? inspect_services(i) : NULL;
}

/* The pages that take ?service=, and flows its other filters too. */
static cJSON *get_by_service(const struct api *api, const char *query, int *ret_code, char *why, size_t why_size,
			     cJSON *(*make)(struct inspect *i, int64_t service, struct evkeyvalq *q), bool must_name)
{
	_cleanup_(inspect_closep) struct inspect *i = look(api, ret_code, why, why_size);
	struct evkeyvalq q = {0};
	cJSON *json = NULL;
	int64_t service = -1;
	const char *text;
	uint32_t id;

	if (!i)
		return NULL;
	if (evhttp_parse_query_str(query, &q) < 0) {
		*ret_code = 400;
		(void)snprintf(why, why_size, "the query cannot be parsed");
		return NULL;
	}
	text = query_get(&q, "limit");
	if (text && (strspn(text, "0123456789") != strlen(text) || strlen(text) > 18)) {
		*ret_code = 400;
		(void)snprintf(why, why_size, "limit=%.32s is not a whole number", text);
		evhttp_clear_headers(&q);
		return NULL;
	}
	text = query_get(&q, "service");
	if (!text && !must_name) {
		json = make(i, service, &q);
	} else if (!service_of(i, text, &id, ret_code, why, why_size)) {
		service = id;
		json = make(i, service, &q);
	}
	evhttp_clear_headers(&q);
	return json;
}

static cJSON *make_backends(struct inspect *i, int64_t service, struct evkeyvalq *q)
{
	(void)q;
	return inspect_backends(i, service);
}

static cJSON *make_table(struct inspect *i, int64_t service, struct evkeyvalq *q)
{
	(void)q;
	return inspect_table(i, (uint32_t)service);
}

static cJSON *make_flows(struct inspect *i, int64_t service, struct evkeyvalq *q)
{
	const char *limit = query_get(q, "limit");
	struct inspect_flow_filter f = {
		.service = service,
		.backend = query_get(q, "backend"),
		.client = query_get(q, "client"),
		.limit = limit ? strtoull(limit, NULL, 10) : 0,
	};

	return inspect_flows(i, &f);
}

static cJSON *get_backends(void *ctx, const cJSON *body, const char *query, int *ret_code, char *why, size_t why_size)
{
	(void)body;
	return get_by_service(ctx, query, ret_code, why, why_size, make_backends, false);
}

static cJSON *get_table(void *ctx, const cJSON *body, const char *query, int *ret_code, char *why, size_t why_size)
{
	(void)body;
	return get_by_service(ctx, query, ret_code, why, why_size, make_table, true);
}

static cJSON *get_flows(void *ctx, const cJSON *body, const char *query, int *ret_code, char *why, size_t why_size)
{
	(void)body;
	return get_by_service(ctx, query, ret_code, why, why_size, make_flows, false);
}

static const char *const verbs[] = {
	[OVERRIDE_NONE] = "enabled", [OVERRIDE_DRAIN] = "drained", [OVERRIDE_EVICT] = "evicted"};

static cJSON * override(struct api *api, const cJSON *body, enum override o, int *ret_code, char *why, size_t why_size)
{
	_cleanup_(inspect_closep) struct inspect *i = look(api, ret_code, why, why_size);
	const char *text = json_string(body, "service"), *address = json_string(body, "address");
	_cleanup_free_ char *name = NULL;
	struct service *s;
	struct endpoint e;
	cJSON *json;
	uint32_t id;
	int r;

	if (!i || service_of(i, text, &id, ret_code, why, why_size) < 0)
		return NULL;
	*ret_code = 400;
	(void)snprintf(why, why_size, "\"%.64s\" is not an ADDRESS:PORT", address ? address : "");
	if (!address || endpoint_parse(address, &e) < 0)
		return NULL;
	s = pipeline_find_service(api->pipeline, id);
	name = inspect_service_name(i, id);
	r = s ? service_override(s, &e, o) : -ENOENT;
	if (r < 0) {
		*ret_code = r == -ENOENT ? 404 : 500;
		(void)snprintf(why, why_size, r == -ENOENT ? "no backend %.64s in %.256s" : "out of memory", address,
			       name ? name : text);
		return NULL;
	}
	log_info("operator", "%s: %s is %s", name ? name : text, address, verbs[o]);
	json = cJSON_CreateObject();
	(void)cJSON_AddBoolToObject(json, "ok", true);
	(void)cJSON_AddStringToObject(json, "service", name ? name : text);
	(void)cJSON_AddStringToObject(json, "address", address);
	return json;
}

static cJSON *post_drain(void *ctx, const cJSON *body, const char *query, int *ret_code, char *why, size_t why_size)
{
	(void)query;
	return override(ctx, body, OVERRIDE_DRAIN, ret_code, why, why_size);
}

static cJSON *post_evict(void *ctx, const cJSON *body, const char *query, int *ret_code, char *why, size_t why_size)
{
	(void)query;
	return override(ctx, body, OVERRIDE_EVICT, ret_code, why, why_size);
}

static cJSON *post_enable(void *ctx, const cJSON *body, const char *query, int *ret_code, char *why, size_t why_size)
{
	(void)query;
	return override(ctx, body, OVERRIDE_NONE, ret_code, why, why_size);
}

static cJSON *post_reload(void *ctx, const cJSON *body, const char *query, int *ret_code, char *why, size_t why_size)
{
	const struct api *api = ctx;
	cJSON *json;

	(void)body;
	(void)query;
	*ret_code = 409;
	if (api->reload(api->reload_ctx, why, why_size) < 0)
		return NULL;
	json = cJSON_CreateObject();
	(void)cJSON_AddBoolToObject(json, "ok", true);
	return json;
}

const struct control_route api_routes[] = {
	{"GET", "/api/status", get_status},	{"GET", "/api/services", get_services},
	{"GET", "/api/backends", get_backends}, {"GET", "/api/table", get_table},
	{"GET", "/api/flows", get_flows},	{"POST", "/api/drain", post_drain},
	{"POST", "/api/evict", post_evict},	{"POST", "/api/enable", post_enable},
	{"POST", "/api/reload", post_reload},	{0},
};
