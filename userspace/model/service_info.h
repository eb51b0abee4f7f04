/* SPDX-License-Identifier: MIT */
/* Nacos ServiceInfo JSON to a snapshot: the shape of pushes, of the open API, of state files and of the file registry.
 * Source of the shape: com.alibaba.nacos.api.naming.pojo.ServiceInfo and Instance. Missing or null fields have defaults:
 * weight 1.0, healthy true, enabled true, clusterName DEFAULT, groupName DEFAULT_GROUP (or what stands before the first
 * "@@" of name). Fields that are not named here or in instance.h are ignored. */
#pragma once
#include <cjson/cJSON.h>
#include "instance.h"

/* 0 and an owned snapshot in *ret; -EINVAL: not a ServiceInfo (no name, hosts missing or null or not a list); -ENOMEM.
 * On failure *ret is untouched and *ret_why (if given) is a static sentence. A bad host costs itself only: see
 * struct instance.reject. healthy and enabled count as false when they are anything but true, null or absent. The
 * cluster is cut at 63 bytes; address_text too, and what is not printable ASCII in it is '?'. */
int service_info_parse(const cJSON *json, struct snapshot **ret, const char **ret_why);
