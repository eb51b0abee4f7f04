/* SPDX-License-Identifier: MIT */
/* Nacos ServiceInfo JSON to a snapshot: the shape of pushes, of the open API, of state files and of the file registry.
 * Source of the shape: com.alibaba.nacos.api.naming.pojo.ServiceInfo and Instance. Defaults of missing or null fields:
 * weight 1.0, healthy true, enabled true, clusterName DEFAULT, groupName DEFAULT_GROUP (or the part of name before "@@"). */
#pragma once
#include <cjson/cJSON.h>
#include "instance.h"

/* 0 and an owned snapshot in *ret; -EINVAL: not a ServiceInfo (no name, hosts missing or null or not a list), with *ret
 * untouched and *ret_why (if given) a static sentence; -ENOMEM. A bad host costs itself only: see struct instance.reject. */
int service_info_parse(const cJSON *json, struct snapshot **ret, const char **ret_why);
