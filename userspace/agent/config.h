/* SPDX-License-Identifier: MIT */
/* The agent's configuration: YAML file or command line to one struct, checked. See the man page steelyard.yaml(5). */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "../base/addr.h"
#include "../base/log.h"
#include "../registry/nacos.h"
#include "sy_abi.h"

enum config_attach { CONFIG_ATTACH_AUTO, CONFIG_ATTACH_NATIVE, CONFIG_ATTACH_TC };
enum config_foreign_xdp { CONFIG_FOREIGN_TC, CONFIG_FOREIGN_STOP };
enum config_registry_kind { CONFIG_REGISTRY_NACOS, CONFIG_REGISTRY_FILE };

struct config_interface {
	char *name;
	enum config_attach attach;
	enum config_foreign_xdp foreign_xdp;
};

struct config_registry {
	char *name;
	enum config_registry_kind kind;
	struct nacos_server *servers; /* nacos */
	size_t n_servers;
	char *ns; /* nacos: namespace, "public" */
	char *path; /* file */
};

struct config_service {
	char *name;
	char *group;
	size_t registry; /* index into registries */
	struct endpoint *listen; /* TCP, IPv4 */
	size_t n_listen;
	enum sy_mode mode;
	enum sy_algorithm algorithm;
	char *cluster; /* NULL: all alike */
	bool cluster_fallback_all;
	bool on_evict_registry_reset;
	bool on_evict_probe_reset;
	uint64_t drain_deadline_ns; /* 0: none */
	enum sy_on_empty on_empty;
	uint64_t hold_ns;
	uint64_t timeout_ns[SY_N_TIMEOUTS];
};

struct config {
	struct config_interface *interfaces;
	size_t n_interfaces;
	struct config_registry *registries;
	size_t n_registries;
	struct config_service *services;
	size_t n_services;
	struct addr *snat_addresses; /* empty: preferred source of the route to each backend */
	size_t n_snat_addresses;
	uint16_t snat_port_first, snat_port_last; /* 0, 0: not given, the default of 1024-65535 */
	char *state_dir, *pin_dir, *control_socket;
	enum log_level log_level;
	bool log_json;
	uint32_t flows;
};

/* Errors: one line each, "FILE:LINE: services[2].listen[0]: what is wrong, what is allowed", newline-separated in *ret_errors
 * (owned; NULL on success). The first schema error alone, or all semantic errors. 0, -EINVAL, or -errno of reading. */
int config_load(const char *path, struct config **ret, char **ret_errors);

/* The command line without a file. */
struct config_arguments {
	const char *const *interfaces;
	size_t n_interfaces;
	const char *nacos; /* HOST:PORT, or NULL */
	const char *file; /* folder, or NULL */
	const char *const *services; /* NAME=ADDR:PORT */
	size_t n_services;
};
int config_from_arguments(const struct config_arguments *a, struct config **ret, char **ret_errors);
void config_free(struct config *c); /* NULL is fine */
/* Names of restart-only keys that differ, comma-separated into buf; 0 when none, else -EPERM. */
int config_restart_only(const struct config *running, const struct config *wanted, char *buf, size_t size);
