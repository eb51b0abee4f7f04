/* SPDX-License-Identifier: MIT */
/* Nacos's gRPC messages: a Payload (protobuf) that wraps a JSON body whose shape the Java class name in it tells.
 * Pure: bytes in, bytes out. Source of names and codes: alibaba/nacos, com.alibaba.nacos.api.remote and
 * api.naming.remote. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "../base/json.h"
#include "../model/instance.h"

#define NACOS_PATH_REQUEST "/Request/request"
#define NACOS_PATH_STREAM  "/BiRequestStream/requestBiStream"

#define NACOS_RESULT_OK	     200 /* ResponseCode.SUCCESS */
#define NACOS_ERROR_STARTING 300 /* NacosException.INVALID_SERVER_STATUS */
#define NACOS_ERROR_UNREGISTERED                                                                                       \
	301 /* NacosException.UN_REGISTER: the server does not know this connection (any more) */

/* The messages that mean something to us; everything else is NACOS_MSG_OTHER. */
enum nacos_msg_type {
	NACOS_MSG_OTHER,
	NACOS_MSG_SERVER_CHECK_RESPONSE,
	NACOS_MSG_SUBSCRIBE_RESPONSE,
	NACOS_MSG_QUERY_RESPONSE,
	NACOS_MSG_HEALTH_RESPONSE,
	NACOS_MSG_ERROR_RESPONSE,
	NACOS_MSG_NOTIFY,    /* NotifySubscriberRequest: a service's new list */
	NACOS_MSG_DETECTION, /* ClientDetectionRequest: are you there? */
	NACOS_MSG_RESET,     /* ConnectResetRequest: go away, perhaps to the server named */
	NACOS_MSG_SETUP_ACK, /* SetupAckRequest: never to be answered, the server ends the stream on it */
};

struct nacos_msg {
	enum nacos_msg_type type;
	char *type_name; /* as sent; owned */
	cJSON *body;	 /* an object; owned */
};

/* 0; -EBADMSG with *ret_why a sentence when it is not a Payload with a JSON object in it. */
int nacos_msg_parse(const uint8_t *data, size_t size, struct nacos_msg *ret, const char **ret_why);
void nacos_msg_done(struct nacos_msg *m);

/* Of requests: "" when absent. Of resets: where to go, "" when not said. Borrowed from m. */
const char *nacos_msg_request_id(const struct nacos_msg *m);
const char *nacos_msg_reset_host(const struct nacos_msg *m);
uint16_t nacos_msg_reset_port(const struct nacos_msg *m); /* 0 when not said */
/* Of responses: 0 when it says success, else its errorCode (or resultCode when it has none), always above 0, with
 * *ret_why the server's words, borrowed. */
int nacos_msg_error(const struct nacos_msg *m, const char **ret_why);
bool nacos_msg_negotiates(const struct nacos_msg *m); /* of a server check: a SetupAck will come */
/* Of a notify, subscribe or query: its serviceInfo. 0 and owned, or as service_info_parse(). */
int nacos_msg_snapshot(const struct nacos_msg *m, struct snapshot **ret, const char **ret_why);

/* Bytes for the wire, owned. */
struct nacos_bytes {
	uint8_t *data;
	size_t size;
};
void nacos_bytes_done(struct nacos_bytes *b);

/* Any body: type is the Java class name, body a JSON object. 0 or -ENOMEM. */
int nacos_msg_pack(const char *type, const cJSON *body, struct nacos_bytes *ret);
int nacos_msg_server_check(struct nacos_bytes *ret);
int nacos_msg_setup(const char *ns, const char *client_version, struct nacos_bytes *ret);
int nacos_msg_health_check(struct nacos_bytes *ret);
int nacos_msg_subscribe(const char *ns, const char *group, const char *name, bool subscribe, struct nacos_bytes *ret);
int nacos_msg_query(const char *ns, const char *group, const char *name, struct nacos_bytes *ret);
/* The answer to a request of the server. -EINVAL when none is due: setup ack, other. */
int nacos_msg_answer(const struct nacos_msg *request, struct nacos_bytes *ret);
