/* SPDX-License-Identifier: MIT */
/* Fields of a report's JSON as cells of a table. A field that is missing or of another type is an empty cell. */
#pragma once
#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>
#include "print.h"

/* Exact for integers, which cJSON keeps as text when they are large. false: no number of 0 or more. */
bool field_u64(const cJSON *item, uint64_t *ret);
/* Of a field that is a number, or one kept as its text. false, *ret untouched: it is neither. */
bool field_number(const cJSON *object, const char *key, double *ret);
const char *field_text(const cJSON *object, const char *key); /* "" when it is no string */

void field_cell_text(struct print_table *t, enum print_style style, const cJSON *object, const char *key);
void field_cell_count(struct print_table *t, const cJSON *object, const char *key);
/* A number that is a name, not an amount: not grouped. */
void field_cell_id(struct print_table *t, const cJSON *object, const char *key);
void field_cell_bytes(struct print_table *t, const cJSON *object, const char *key);
void field_cell_seconds(struct print_table *t, const cJSON *object, const char *key);
void field_cell_microseconds(struct print_table *t, const cJSON *object, const char *key);
void field_cell_percent(struct print_table *t, const cJSON *object, const char *key);
void field_cell_weight(struct print_table *t, const cJSON *object, const char *key);
