// SPDX-License-Identifier: MIT
#include "decode.h"
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../base/json.h"
#include "sy_abi.h"

struct name {
	const char *name, *text;
	const char *does; /* verdicts only */
};

static const struct name verdicts[] = {
#define X(NAME, name, kind, text) [SY_V_##NAME] = {name, text, #kind},
	SY_VERDICTS(X)
#undef X
};
static const struct name reasons[] = {
#define X(NAME, name, text) [SY_R_##NAME] = {name, text, NULL},
	SY_REASONS(X)
#undef X
};
static const struct name counters[] = {
#define X(NAME, name, text) [SY_C_##NAME] = {name, text, NULL},
	SY_COUNTERS(X)
#undef X
};
static const struct name events[] = {
#define X(NAME, name, text) [SY_E_##NAME] = {name, text, NULL},
	SY_EVENTS(X)
#undef X
};
static const struct name states[] = {
#define X(NAME, name, text) [SY_##NAME] = {name, text, NULL},
	SY_STATES(X)
#undef X
};
static const struct name line_states[] = {
#define X(NAME, name, text) [SY_##NAME] = {name, text, NULL},
	SY_LINE_STATES(X)
#undef X
};

static const struct list {
	const char *kind;
	const struct name *names;
	size_t n;
} lists[] = {
#define LIST(kind, names)                                                                                              \
	{                                                                                                              \
		kind, names, sizeof(names) / sizeof *(names)                                                           \
	}
	LIST("verdict", verdicts),	 LIST("reason", reasons),   LIST("state", states),
	LIST("line-state", line_states), LIST("counter", counters), LIST("event", events),
#undef LIST
};

static const char *name_of(const struct name *names, size_t n, uint64_t number)
{
	return number < n ? names[number].name : "unknown";
}

/* "SENT" of the list as "sent". */
static bool add_does(cJSON *object, const char *does)
{
	char text[16] = "";

	for (size_t i = 0; does[i] && i + 1 < sizeof text; i++)
		text[i] = does[i] >= 'A' && does[i] <= 'Z' ? (char)(does[i] - 'A' + 'a') : does[i];
	return cJSON_AddStringToObject(object, "does", text) != NULL;
}

static cJSON *list_entry(const struct list *l, size_t number)
{
	_cleanup_json_ cJSON *entry = cJSON_CreateObject();
	const struct name *n = &l->names[number];

	if (!cJSON_AddStringToObject(entry, "kind", l->kind) || !json_add_u64(entry, "number", number) ||
	    !cJSON_AddStringToObject(entry, "name", n->name) || (n->does && !add_does(entry, n->does)) ||
	    !cJSON_AddStringToObject(entry, "text", n->text))
		return NULL;
	return TAKE_PTR(entry);
}

static int list_all(const struct list *l, cJSON **ret)
{
	_cleanup_json_ cJSON *all = cJSON_CreateArray();

	for (size_t i = 0; i < l->n; i++) {
		cJSON *entry = list_entry(l, i);

		if (!entry || !cJSON_AddItemToArray(all, entry))
			return -ENOMEM;
	}
	*ret = TAKE_PTR(all);
	return *ret ? 0 : -ENOMEM;
}

static int number_parse(const char *text, int base, uint64_t *ret)
{
	unsigned long long n;
	char *end;

	if (!*text || strchr("-+ \t", *text))
		return -EINVAL;
	errno = 0;
	n = strtoull(text, &end, base);
	if (*end || errno)
		return -EINVAL;
	*ret = n;
	return 0;
}

static int list_decode(const struct list *l, const char *value, cJSON **ret, char *why, size_t why_size)
{
	uint64_t number = l->n;
	bool is_number = number_parse(value, 0, &number) == 0;

	for (size_t i = 0; !is_number && i < l->n; i++)
		if (strcmp(l->names[i].name, value) == 0)
			number = i;
	if (number >= l->n) {
		(void)snprintf(why, why_size, "no %s %s in this version: 0 to %zu, `steelyard decode %s` lists them",
			       l->kind, value, l->n - 1, l->kind);
		return is_number ? -ENOENT : -EINVAL;
	}
	*ret = list_entry(l, (size_t)number);
	return *ret ? 0 : -ENOMEM;
}

/* ---- words: each adds its fields to an object; false: no memory ---- */

static bool backend_word(cJSON *o, uint64_t w)
{
	return json_add_u64(o, "generation", SY_WORD_GEN(w)) &&
	       cJSON_AddStringToObject(o, "state", name_of(states, 3, SY_WORD_STATE(w))) &&
	       cJSON_AddStringToObject(o, "reason", name_of(reasons, SY_N_REASONS, SY_WORD_REASON(w)));
}

static bool endpoint_word(cJSON *o, uint64_t w)
{
	return cJSON_AddStringToObject(o, "state", name_of(states, 3, SY_WORD_STATE(w))) &&
	       cJSON_AddStringToObject(o, "reason", name_of(reasons, SY_N_REASONS, SY_WORD_REASON(w)));
}

static bool table_word(cJSON *o, uint64_t w)
{
	return json_add_u64(o, "offset_bytes", (uint64_t)SY_TABLE_OFF(w) * SY_REGION_ALIGN) &&
	       json_add_u64(o, "members", SY_TABLE_LEN(w)) && json_add_u64(o, "version", SY_TABLE_VER(w));
}

static bool line_word(cJSON *o, uint64_t w)
{
	return json_add_u64(o, "flow", w >> SY_ID_SHIFT) &&
	       cJSON_AddStringToObject(o, "state", name_of(line_states, SY_N_LINE_STATES, w & SY_STATE_MASK)) &&
	       cJSON_AddBoolToObject(o, "reset", (w & SY_F_RESET) != 0) &&
	       cJSON_AddBoolToObject(o, "reaping", (w & SY_F_REAPING) != 0) &&
	       json_add_u64(o, "strikes", (w & SY_STRIKE_MASK) >> SY_STRIKE_SHIFT);
}

static bool next_hop(cJSON *o, uint64_t w)
{
	char mac[18];

	/* bytes in memory order, so the lowest is the first on the wire */
	(void)snprintf(mac, sizeof mac, "%02x:%02x:%02x:%02x:%02x:%02x", (unsigned)w & 0xff, (unsigned)(w >> 8) & 0xff,
		       (unsigned)(w >> 16) & 0xff, (unsigned)(w >> 24) & 0xff, (unsigned)(w >> 32) & 0xff,
		       (unsigned)(w >> 40) & 0xff);
	return cJSON_AddStringToObject(o, "mac", mac) && json_add_u64(o, "slot", SY_NH_SLOT(w)) &&
	       json_add_u64(o, "epoch", SY_NH_EPOCH(w));
}

static bool isn(cJSON *o, uint64_t w)
{
	return json_add_u64(o, "isn", w & 0xffffffff) && cJSON_AddBoolToObject(o, "set", (w & SY_ISN_SET) != 0) &&
	       json_add_u64(o, "flow_tag", w >> 33);
}

static bool backend_flags(cJSON *o, uint64_t w)
{
	return cJSON_AddBoolToObject(o, "listed", (w & SY_B_LISTED) != 0) &&
	       cJSON_AddBoolToObject(o, "member", (w & SY_B_MEMBER) != 0);
}

static bool iface_flags(cJSON *o, uint64_t w)
{
	return cJSON_AddBoolToObject(o, "xdp_xmit", (w & SY_IF_XDP_XMIT) != 0) &&
	       cJSON_AddBoolToObject(o, "redirect", (w & SY_IF_REDIRECT) != 0);
}

static const struct word {
	const char *kind;
	uint64_t max;
	bool (*add)(cJSON *o, uint64_t w);
} words[] = {
	{"backend-word", UINT64_MAX, backend_word}, {"endpoint-word", 0xffff, endpoint_word},
	{"table-word", UINT64_MAX, table_word},	    {"line-word", UINT64_MAX, line_word},
	{"next-hop", UINT64_MAX, next_hop},	    {"isn", UINT64_MAX, isn},
	{"backend-flags", 3, backend_flags},	    {"iface-flags", 3, iface_flags},
};
#define N_WORDS (sizeof words / sizeof *words)

static bool word_add(cJSON *parent, const struct word *k, uint64_t w)
{
	cJSON *o = cJSON_AddObjectToObject(parent, k->kind);

	return o && k->add(o, w);
}

/* All readings of a word for kind "word", else the one. */
static int word_decode(const char *kind, const char *value, cJSON **ret, char *why, size_t why_size)
{
	_cleanup_json_ cJSON *object = cJSON_CreateObject();
	bool every = strcmp(kind, "word") == 0;
	char text[24];
	uint64_t w;

	if (number_parse(value, 16, &w)) {
		(void)snprintf(why, why_size, "%s: not a hexadecimal number of up to 64 bits", value);
		return -EINVAL;
	}
	(void)snprintf(text, sizeof text, "0x%016llx", (unsigned long long)w);
	if (!cJSON_AddStringToObject(object, "word", text))
		return -ENOMEM;
	for (size_t i = 0; i < N_WORDS; i++) {
		if (every ? w > words[i].max : strcmp(words[i].kind, kind) != 0)
			continue;
		if (!word_add(object, &words[i], w))
			return -ENOMEM;
	}
	*ret = TAKE_PTR(object);
	return 0;
}

int decode_value(const char *kind, const char *value, cJSON **ret, char *why, size_t why_size)
{
	bool is_word = strcmp(kind, "word") == 0;

	why[0] = 0;
	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
		if (strcmp(lists[i].kind, kind) == 0)
			return value ? list_decode(&lists[i], value, ret, why, why_size) : list_all(&lists[i], ret);
	for (size_t i = 0; i < N_WORDS; i++)
		is_word |= strcmp(words[i].kind, kind) == 0;
	if (is_word && value)
		return word_decode(kind, value, ret, why, why_size);
	if (is_word)
		(void)snprintf(why, why_size, "%s needs a value in hexadecimal", kind);
	else
		(void)snprintf(why, why_size, "%s: not one of %s", kind, DECODE_KINDS);
	return -EINVAL;
}
