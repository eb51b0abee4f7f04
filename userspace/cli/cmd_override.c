// SPDX-License-Identifier: MIT
/* drain, evict, enable: the operator's override of one backend, through the agent. */
#include <string.h>
#include <time.h>
#include "../base/addr.h"
#include "../base/clock.h"
#include "../base/json.h"
#include "cmd.h"
#include "field.h"
#include "units.h"

#define POLL_NS (100 * NS_PER_MS)

/* Flows of the backend that are not over: those that completed their handshake, exactly, and those that may still do
 * so. Several records can bear one address (an entry listed twice): all count. CLI_DONE or CLI_FAILED having said why.
 */
static int flows_left(const struct cli *c, struct inspect *i, uint32_t service, const char *address, uint64_t *ret)
{
	const struct inspect_flow_filter filter = {.service = service, .backend = address};
	_cleanup_json_ cJSON *backends = inspect_backends(i, service), *flows = NULL;
	uint64_t left = 0, active;
	const cJSON *item;

	if (cli_check(c, backends, "backends"))
		return CLI_FAILED;
	cJSON_ArrayForEach(item, backends)
		if (strcmp(field_text(item, "address"), address) == 0 &&
		    field_u64(cJSON_GetObjectItemCaseSensitive(item, "active"), &active))
			left += active;
	if (!left) { /* only then: it looks at the whole flow table */
		flows = inspect_flows(i, &filter);
		if (cli_check(c, flows, "flows"))
			return CLI_FAILED;
		cJSON_ArrayForEach(item, flows)
			left += strcmp(field_text(item, "state"), "syn") == 0;
	}
	*ret = left;
	return CLI_DONE;
}

static int wait_for_end(const struct cli *c, const char *address, cJSON *answer)
{
	_cleanup_inspect_ struct inspect *i = cli_inspect(c);
	uint64_t begin = clock_monotonic_ns(), left, waited;
	char text[32];
	uint32_t service;

	if (!i || cli_service(c, i, c->argument[0], &service))
		return CLI_FAILED;
	for (;;) {
		if (flows_left(c, i, service, address, &left))
			return CLI_FAILED;
		waited = clock_monotonic_ns() - begin;
		if (!left)
			break;
		if (c->deadline_ns && waited >= c->deadline_ns)
			return cli_fail(c, "%llu %s of %s not ended within %s; it goes on draining",
					(unsigned long long)left, left == 1 ? "flow" : "flows", address,
					duration_format(c->deadline_ns, text, sizeof text));
		(void)nanosleep(&(struct timespec){.tv_nsec = POLL_NS}, NULL);
	}
	(void)json_add_u64(answer, "active", 0);
	(void)json_add_double(answer, "waited_s", (double)(waited / NS_PER_MS) / 1000);
	return CLI_DONE;
}

static int override(struct cli *c, const char *path, const char *done)
{
	_cleanup_json_ cJSON *body = cJSON_CreateObject(), *answer = NULL;
	char address[ADDR_TEXT_LEN], text[UNITS_LEN];
	struct endpoint e;
	double waited = 0;

	if (endpoint_parse(c->argument[1], &e))
		return cli_usage(c, "%s: not an address and port (ADDR:PORT)", c->argument[1]);
	if (!cJSON_AddStringToObject(body, "service", c->argument[0]) ||
	    !cJSON_AddStringToObject(body, "address", endpoint_format(&e, address)))
		return cli_fail(c, "out of memory");
	if (cli_ask(c, "POST", path, body, &answer))
		return CLI_FAILED;
	if (c->wait && wait_for_end(c, address, answer))
		return CLI_FAILED;
	if (c->json)
		return cli_show(c, answer);
	print_text(&c->print, PRINT_PLAIN, "%s of %s: %s\n", address, c->argument[0], done);
	if (field_number(answer, "waited_s", &waited))
		print_text(&c->print, PRINT_PLAIN, "Its last flow has ended; waited %s.\n",
			   units_seconds(text, waited));
	return CLI_DONE;
}

int cmd_drain(struct cli *c)
{
	return override(c, "/api/drain", "draining, no new flows; those it has go on");
}

int cmd_evict(struct cli *c)
{
	return override(c, "/api/evict", "evicted, no new flows; those it had are reset");
}

int cmd_enable(struct cli *c)
{
	return override(c, "/api/enable", "back to what the registry says of it");
}
