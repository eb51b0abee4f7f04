/* SPDX-License-Identifier: MIT */
/* The commands, one cmd_*.c each or per small family. cmd_X runs a command and returns enum cli_exit; cmd_X_print
 * prints the JSON of one for people, for dump as well, and returns CLI_DONE or CLI_FAILED having said why. */
#pragma once
#include "cli.h"

int cmd_status(struct cli *c);
int cmd_services(struct cli *c);
int cmd_backends(struct cli *c);
int cmd_table(struct cli *c);
int cmd_flows(struct cli *c);
int cmd_stats(struct cli *c);
int cmd_dump(struct cli *c);
int cmd_drain(struct cli *c);
int cmd_evict(struct cli *c);
int cmd_enable(struct cli *c);
int cmd_reload(struct cli *c);
int cmd_detach(struct cli *c);
int cmd_preflight(struct cli *c);
int cmd_decode(struct cli *c);
int cmd_help(struct cli *c);
int cmd_version(struct cli *c);

int cmd_status_print(const struct cli *c, const cJSON *status);
int cmd_services_print(const struct cli *c, const cJSON *services);
/* Without the SERVICE column when all are of one service. */
int cmd_backends_print(const struct cli *c, const cJSON *backends, bool one_service);
int cmd_table_print(const struct cli *c, const cJSON *table);
int cmd_flows_print(const struct cli *c, const cJSON *flows);
int cmd_stats_print(const struct cli *c, const cJSON *stats);
int cmd_maps_print(const struct cli *c, const cJSON *maps);

/* status as the agent tells it, or when it is down as the pinned maps do: those of i, or of the pin folder when i is
 * NULL. CLI_DONE and an owned object, or CLI_FAILED having said why. */
int cmd_status_get(const struct cli *c, struct inspect *i, cJSON **ret);
