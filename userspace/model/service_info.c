// SPDX-License-Identifier: MIT
#include "service_info.h"
#include "../base/cleanup.h"
#include "../base/json.h"
#include "../base/utf8.h"
#include <errno.h>
#include <math.h>
#include <string.h>

#define DEFAULT_GROUP	"DEFAULT_GROUP"
#define DEFAULT_CLUSTER "DEFAULT"
#define SEPARATOR	"@@" /* between group and name: Constants.SERVICE_INFO_SPLITER */
#define TEXT_BYTES	63   /* of an address or a cluster; what struct sy_backend_info has room for */

DEFINE_CLEANUP(struct snapshot *, snapshot_free)

static const cJSON *find(const cJSON *object, const char *key)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);

	return cJSON_IsNull(item) ? NULL : item; /* Nacos takes null for absent everywhere */
}

/* healthy, enabled: absent is true. Anything but a plain true is taken as a no: traffic goes only where the registry
 * clearly wants it. */
static bool parse_mark(const cJSON *host, const char *key)
{
	const cJSON *item = find(host, key);

	return !item || cJSON_IsTrue(item);
}

/* false: not a weight. Servers push NaN and infinity as text, and any double that gRPC registered, negative ones too.
 */
static bool parse_weight(const cJSON *host, double *ret)
{
	const cJSON *item = find(host, "weight");
	double weight = item ? item->valuedouble : 1.0;

	if (item && !cJSON_IsNumber(item))
		return false;
	if (!isfinite(weight) || weight < 0)
		return false;
	*ret = weight + 0.0; /* -0.0 is 0 */
	return true;
}

static bool parse_port(const cJSON *host, uint16_t *ret)
{
	double port = 0;

	if (!json_number(host, "port", &port) || !(port >= 1 && port <= UINT16_MAX) || port != trunc(port))
		return false;
	*ret = (uint16_t)port;
	return true;
}

static bool parse_endpoint(const cJSON *host, struct endpoint *ret)
{
	const char *ip = json_string(host, "ip");

	return ip && addr_parse(ip, &ret->addr) == 0 && addr_is_usable(&ret->addr) && parse_port(host, &ret->port);
}

static void print_port(const cJSON *host, char *buf, size_t size)
{
	const cJSON *item = find(host, "port");
	uint16_t number;

	if (parse_port(host, &number))
		(void)snprintf(buf, size, "%u", number);
	else if (cJSON_IsNumber(item))
		(void)snprintf(buf, size, "%.15g", item->valuedouble);
	else
		(void)snprintf(buf, size, "%.*s", (int)size - 1, cJSON_IsString(item) ? item->valuestring : "?");
}

/* "ip:port" as listed, at most TEXT_BYTES, fit to be printed anywhere. NULL: no memory. */
static const char *address_text(const cJSON *host, struct snapshot *s)
{
	const char *ip = json_string(host, "ip");
	char port[TEXT_BYTES + 1], text[TEXT_BYTES + 1];
	bool bare_v6;

	print_port(host, port, sizeof(port));
	ip = ip ? ip : "?";
	bare_v6 = strchr(ip, ':') && *ip != '[';
	(void)snprintf(text, sizeof(text), bare_v6 ? "[%s]:%s" : "%s:%s", ip, port);
	for (char *c = text; *c; c++)
		if (*c < 0x20 || *c > 0x7e)
			*c = '?';
	return snapshot_text(s, text, strlen(text));
}

static const char *cluster_text(const cJSON *host, struct snapshot *s)
{
	const char *cluster = json_string(host, "clusterName");

	if (!cluster)
		cluster = DEFAULT_CLUSTER;
	return snapshot_text(s, cluster, utf8_cut(cluster, TEXT_BYTES));
}

static int parse_host(const cJSON *host, struct snapshot *s)
{
	struct instance *i = snapshot_append(s);
	const char *id = json_string(host, "instanceId");
	struct endpoint e = {0};

	if (!i)
		return -ENOMEM;
	i->address_text = address_text(host, s);
	i->cluster = cluster_text(host, s);
	i->instance_id = id ? snapshot_text(s, id, strlen(id)) : "";
	if (!i->address_text || !i->cluster || !i->instance_id)
		return -ENOMEM;
	i->healthy = parse_mark(host, "healthy");
	i->enabled = parse_mark(host, "enabled");
	if (!parse_weight(host, &i->weight))
		i->reject = SY_R_BAD_WEIGHT;
	if (parse_endpoint(host, &e))
		i->endpoint = e;
	else
		i->reject = SY_R_BAD_ADDRESS;
	return 0;
}

/* The open API and UDP pushes say "GROUP@@name" with groupName absent; gRPC says both apart. */
static struct snapshot *parse_names(const cJSON *json, const char **why)
{
	const char *name = json_string(json, "name");
	const char *group = json_string(json, "groupName");
	const char *separator = name ? strstr(name, SEPARATOR) : NULL;
	_cleanup_free_ char *inner = NULL;

	if (separator) {
		inner = strndup(name, (size_t)(separator - name));
		if (!inner)
			return NULL;
		name = separator + strlen(SEPARATOR);
	}
	if (!name || !*name) {
		*why = "it has no name";
		return NULL;
	}
	if (!group || !*group)
		group = inner && *inner ? inner : DEFAULT_GROUP;
	return snapshot_new(group, name);
}

static int parse(const cJSON *json, struct snapshot **ret, const char **why)
{
	_cleanup_(snapshot_freep) struct snapshot *s = NULL;
	const cJSON *hosts = find(json, "hosts");
	const cJSON *host;

	if (!cJSON_IsArray(hosts)) {
		*why = hosts ? "its hosts are not a list" : "it has no hosts";
		return -EINVAL;
	}
	s = parse_names(json, why);
	if (!s)
		return *why ? -EINVAL : -ENOMEM;
	s->protection = json_bool(json, "reachProtectionThreshold", false);
	for (host = hosts->child; host; host = host->next)
		if (parse_host(host, s) < 0)
			return -ENOMEM;
	*ret = TAKE_PTR(s);
	return 0;
}

int service_info_parse(const cJSON *json, struct snapshot **ret, const char **ret_why)
{
	const char *why = "it is not an object";
	int r = -EINVAL;

	if (cJSON_IsObject(json)) {
		why = NULL;
		r = parse(json, ret, &why);
	}
	if (r < 0 && ret_why)
		*ret_why = why ? why : "out of memory";
	return r;
}
