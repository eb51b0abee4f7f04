// SPDX-License-Identifier: MIT
#include "nacos_msg.h"

#include <errno.h>
#include <string.h>
#include "../base/cleanup.h"
#include "../model/service_info.h"
#include "nacos_payload.pb-c.h"

static const struct {
	const char *name;
	enum nacos_msg_type type;
} types[] = {
	{"ServerCheckResponse", NACOS_MSG_SERVER_CHECK_RESPONSE},
	{"SubscribeServiceResponse", NACOS_MSG_SUBSCRIBE_RESPONSE},
	{"QueryServiceResponse", NACOS_MSG_QUERY_RESPONSE},
	{"HealthCheckResponse", NACOS_MSG_HEALTH_RESPONSE},
	{"ErrorResponse", NACOS_MSG_ERROR_RESPONSE},
	{"NotifySubscriberRequest", NACOS_MSG_NOTIFY},
	{"ClientDetectionRequest", NACOS_MSG_DETECTION},
	{"ConnectResetRequest", NACOS_MSG_RESET},
	{"SetupAckRequest", NACOS_MSG_SETUP_ACK},
};

static enum nacos_msg_type type_find(const char *name)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
		if (!strcmp(types[i].name, name))
			return types[i].type;
	return NACOS_MSG_OTHER;
}

static void payload_free(Nacos__Payload *p)
{
	nacos__payload__free_unpacked(p, NULL);
}
DEFINE_CLEANUP(Nacos__Payload *, payload_free)

int nacos_msg_parse(const uint8_t *data, size_t size, struct nacos_msg *ret, const char **ret_why)
{
	_cleanup_(payload_freep) Nacos__Payload *payload = nacos__payload__unpack(NULL, size, data);
	_cleanup_json_ cJSON *body = NULL;
	char *type_name;

	if (!payload) {
		*ret_why = "not a Payload";
		return -EBADMSG;
	}
	if (!payload->metadata || !payload->metadata->type[0]) {
		*ret_why = "Payload without a type";
		return -EBADMSG;
	}
	if (payload->body)
		body = json_parse((const char *)payload->body->value.data, payload->body->value.len);
	if (!cJSON_IsObject(body)) {
		*ret_why = "Payload whose body is not a JSON object";
		return -EBADMSG;
	}
	type_name = strdup(payload->metadata->type);
	if (!type_name) {
		*ret_why = "out of memory";
		return -ENOMEM;
	}
	*ret = (struct nacos_msg){.type = type_find(type_name), .type_name = type_name, .body = TAKE_PTR(body)};
	return 0;
}

void nacos_msg_done(struct nacos_msg *m)
{
	free(m->type_name);
	cJSON_Delete(m->body);
	*m = (struct nacos_msg){0};
}

static const char *text(const struct nacos_msg *m, const char *key)
{
	const char *s = json_string(m->body, key);

	return s ? s : "";
}

const char *nacos_msg_request_id(const struct nacos_msg *m)
{
	return text(m, "requestId");
}

const char *nacos_msg_reset_host(const struct nacos_msg *m)
{
	return text(m, "serverIp");
}

/* A string in Java's class, a number from other servers. */
uint16_t nacos_msg_reset_port(const struct nacos_msg *m)
{
	const char *s = text(m, "serverPort");
	char *end;
	double number;
	long port;

	if (json_number(m->body, "serverPort", &number))
		return number >= 1 && number <= UINT16_MAX ? (uint16_t)number : 0;
	port = strtol(s, &end, 10);
	return *s && !*end && port >= 1 && port <= UINT16_MAX ? (uint16_t)port : 0;
}

int nacos_msg_error(const struct nacos_msg *m, const char **ret_why)
{
	double result, code;

	if (!json_number(m->body, "resultCode", &result)) {
		*ret_why = "answer without a result code";
		return EBADMSG;
	}
	if (result == NACOS_RESULT_OK)
		return 0;
	*ret_why = text(m, "message");
	if (!**ret_why)
		*ret_why = "the server gave no reason";
	if (json_number(m->body, "errorCode", &code) && code >= 1 && code <= INT32_MAX)
		return (int)code;
	return result >= 1 && result <= INT32_MAX ? (int)result : EBADMSG;
}

bool nacos_msg_negotiates(const struct nacos_msg *m)
{
	return json_bool(m->body, "supportAbilityNegotiation", false);
}

int nacos_msg_snapshot(const struct nacos_msg *m, struct snapshot **ret, const char **ret_why)
{
	return service_info_parse(cJSON_GetObjectItemCaseSensitive(m->body, "serviceInfo"), ret, ret_why);
}

void nacos_bytes_done(struct nacos_bytes *b)
{
	free(b->data);
	*b = (struct nacos_bytes){0};
}

int nacos_msg_pack(const char *type, const cJSON *body, struct nacos_bytes *ret)
{
	_cleanup_free_ char *json = cJSON_PrintUnformatted(body);
	Nacos__Metadata metadata = NACOS__METADATA__INIT;
	Nacos__Any any = NACOS__ANY__INIT;
	Nacos__Payload payload = NACOS__PAYLOAD__INIT;
	uint8_t *data;
	size_t size;

	if (!json)
		return -ENOMEM;
	metadata.type = (char *)type;
	any.value.data = (uint8_t *)json;
	any.value.len = strlen(json);
	payload.metadata = &metadata;
	payload.body = &any;
	size = nacos__payload__get_packed_size(&payload);
	data = malloc(size);
	if (!data)
		return -ENOMEM;
	nacos__payload__pack(&payload, data);
	*ret = (struct nacos_bytes){data, size};
	return 0;
}

/* What every request has. NULL: no memory. */
static cJSON *request_new(const char *module)
{
	cJSON *body = cJSON_CreateObject();

	if (cJSON_AddObjectToObject(body, "headers") && cJSON_AddStringToObject(body, "module", module))
		return body;
	cJSON_Delete(body);
	return NULL;
}

int nacos_msg_server_check(struct nacos_bytes *ret)
{
	_cleanup_json_ cJSON *body = request_new("internal");

	return body ? nacos_msg_pack("ServerCheckRequest", body, ret) : -ENOMEM;
}

int nacos_msg_health_check(struct nacos_bytes *ret)
{
	_cleanup_json_ cJSON *body = request_new("internal");

	return body ? nacos_msg_pack("HealthCheckRequest", body, ret) : -ENOMEM;
}

int nacos_msg_setup(const char *ns, const char *client_version, struct nacos_bytes *ret)
{
	_cleanup_json_ cJSON *body = request_new("internal");
	cJSON *labels = cJSON_AddObjectToObject(body, "labels");

	if (!cJSON_AddStringToObject(body, "clientVersion", client_version) ||
	    !cJSON_AddStringToObject(body, "tenant", ns) || !cJSON_AddObjectToObject(body, "abilityTable") ||
	    !cJSON_AddStringToObject(labels, "source", "sdk") || !cJSON_AddStringToObject(labels, "module", "naming"))
		return -ENOMEM;
	return nacos_msg_pack("ConnectionSetupRequest", body, ret);
}

static cJSON *service_request_new(const char *ns, const char *group, const char *name)
{
	_cleanup_json_ cJSON *body = request_new("naming");

	if (!cJSON_AddStringToObject(body, "namespace", ns) || !cJSON_AddStringToObject(body, "groupName", group) ||
	    !cJSON_AddStringToObject(body, "serviceName", name))
		return NULL;
	return TAKE_PTR(body);
}

/* clusters stays empty: the server keeps one filter per connection and service, and the last one sent wins for all. */
int nacos_msg_subscribe(const char *ns, const char *group, const char *name, bool subscribe, struct nacos_bytes *ret)
{
	_cleanup_json_ cJSON *body = service_request_new(ns, group, name);

	if (!cJSON_AddBoolToObject(body, "subscribe", subscribe) || !cJSON_AddStringToObject(body, "clusters", ""))
		return -ENOMEM;
	return nacos_msg_pack("SubscribeServiceRequest", body, ret);
}

int nacos_msg_query(const char *ns, const char *group, const char *name, struct nacos_bytes *ret)
{
	_cleanup_json_ cJSON *body = service_request_new(ns, group, name);

	if (!cJSON_AddStringToObject(body, "cluster", "") || !cJSON_AddBoolToObject(body, "healthyOnly", false) ||
	    !cJSON_AddNumberToObject(body, "udpPort", 0))
		return -ENOMEM;
	return nacos_msg_pack("ServiceQueryRequest", body, ret);
}

int nacos_msg_answer(const struct nacos_msg *request, struct nacos_bytes *ret)
{
	_cleanup_json_ cJSON *body = NULL;
	const char *type;

	switch (request->type) {
	case NACOS_MSG_NOTIFY:
		type = "NotifySubscriberResponse";
		break;
	case NACOS_MSG_DETECTION:
		type = "ClientDetectionResponse";
		break;
	case NACOS_MSG_RESET:
		type = "ConnectResetResponse";
		break;
	default:
		return -EINVAL;
	}
	body = cJSON_CreateObject();
	if (!cJSON_AddNumberToObject(body, "resultCode", NACOS_RESULT_OK) ||
	    !cJSON_AddNumberToObject(body, "errorCode", 0) || !cJSON_AddTrueToObject(body, "success") ||
	    !cJSON_AddStringToObject(body, "requestId", nacos_msg_request_id(request)))
		return -ENOMEM;
	return nacos_msg_pack(type, body, ret);
}
