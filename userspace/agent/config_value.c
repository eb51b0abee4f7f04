/* SPDX-License-Identifier: MIT */
#include "config_value.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../base/cleanup.h"
#include "../base/clock.h"

static bool word_matches(const struct config_word *w, const char *text)
{
	size_t n = strlen(w->name);

	return w->name[n - 1] == ':' ? !strncmp(w->name, text, n) : !strcmp(w->name, text);
}

void config_value_word(struct config_doc *d, const struct place *p, const struct config_word *words, int *ret)
{
	const char *text = config_doc_text(p), *trouble = "is not known";
	char allowed[256] = "";
	size_t used = 0;

	if (!text)
		return;
	for (const struct config_word *w = words; w->name; w++) {
		if (w->value != CONFIG_LATER && used < sizeof(allowed))
			used += (size_t)snprintf(allowed + used, sizeof(allowed) - used, "%s%s", used ? ", " : "",
						 w->name);
		if (!word_matches(w, text))
			continue;
		if (w->value != CONFIG_LATER) {
			*ret = w->value;
			return;
		}
		trouble = "is not supported yet by this version";
	}
	config_doc_error(d, p, "\"%.64s\" %s, allowed: %s", text, trouble, allowed);
}

void config_value_duration(struct config_doc *d, const struct place *p, uint64_t min_ns, uint64_t max_ns, uint64_t *ret)
{
	const char *text = config_doc_text(p);
	char least[32], most[32];
	uint64_t ns;

	if (!text)
		return;
	if (duration_parse(text, &ns) < 0) {
		config_doc_error(d, p,
				 "\"%.64s\" is not a duration, allowed: a number with a unit, such as 250ms, 15s, 2h4m",
				 text);
		return;
	}
	if (ns < min_ns || ns > max_ns) {
		config_doc_error(d, p, "%.64s is out of range, allowed: %s to %s", text,
				 duration_format(min_ns, least, sizeof(least)),
				 duration_format(max_ns, most, sizeof(most)));
		return;
	}
	*ret = ns;
}

/* Digits only, at most 18 of them. */
static bool number_parse(const char *text, uint64_t *ret)
{
	size_t n = strlen(text);

	if (!n || n > 18 || strspn(text, "0123456789") != n)
		return false;
	*ret = strtoull(text, NULL, 10);
	return true;
}

void config_value_number(struct config_doc *d, const struct place *p, uint64_t min, uint64_t max, uint64_t *ret)
{
	const char *text = config_doc_text(p);
	uint64_t n;

	if (!text)
		return;
	if (!number_parse(text, &n) || n < min || n > max)
		config_doc_error(d, p, "%.64s is out of range, allowed: %" PRIu64 " to %" PRIu64, text, min, max);
	else
		*ret = n;
}

void config_value_text(struct config_doc *d, const struct place *p, size_t max_len, bool empty_ok, char **ret)
{
	const char *text = config_doc_text(p);
	char *copy;

	if (!text)
		return;
	if (!*text && !empty_ok) {
		config_doc_error(d, p, "empty, allowed: 1 to %zu bytes", max_len);
		return;
	}
	if (strlen(text) > max_len) {
		config_doc_error(d, p, "%zu bytes are too long, allowed: up to %zu", strlen(text), max_len);
		return;
	}
	for (const char *c = text; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f) {
			config_doc_error(d, p, "a control character in it, allowed: printable text");
			return;
		}
	copy = strdup(text);
	if (!copy) {
		d->no_memory = true;
		return;
	}
	free(*ret);
	*ret = copy;
}

void config_value_path(struct config_doc *d, const struct place *p, size_t max_len, char **ret)
{
	const char *text = config_doc_text(p);

	if (text && *text != '/')
		config_doc_error(d, p, "\"%.128s\" is not an absolute path, allowed: one that begins with /", text);
	else
		config_value_text(d, p, max_len, false, ret);
}

void config_value_ports(struct config_doc *d, const struct place *p, uint16_t *ret_first, uint16_t *ret_last)
{
	const char *text = config_doc_text(p), *dash;
	char first[8] = "";
	uint64_t a, b;

	if (!text)
		return;
	dash = strchr(text, '-');
	if (dash && (size_t)(dash - text) < sizeof(first))
		memcpy(first, text, (size_t)(dash - text));
	if (!number_parse(dash ? first : text, &a) || !number_parse(dash ? dash + 1 : text, &b) || !a || a > b ||
	    b > UINT16_MAX) {
		config_doc_error(d, p, "\"%.64s\" is not a range of ports, allowed: FIRST-LAST within 1-65535", text);
		return;
	}
	*ret_first = (uint16_t)a;
	*ret_last = (uint16_t)b;
}

bool config_value_addr(struct config_doc *d, const struct place *p, struct addr *ret)
{
	const char *text = config_doc_text(p);
	struct addr a;

	if (!text || addr_parse(text, &a) < 0) {
		config_doc_error(d, p, "\"%.64s\" is not an address, allowed: IPv4 such as 10.0.0.100",
				 text ? text : "");
		return false;
	}
	if (a.family != AF_INET) {
		config_doc_error(d, p, "%.64s: IPv6 is not supported yet by this version, allowed: IPv4", text);
		return false;
	}
	if (!addr_is_usable(&a)) {
		config_doc_error(d, p,
				 "%.64s cannot be used on a network, allowed: a unicast address that is not loopback",
				 text);
		return false;
	}
	*ret = a;
	return true;
}

bool config_value_listener(struct config_doc *d, const struct place *p, struct endpoint *ret)
{
	const char *text = config_doc_text(p), *slash;
	char where[ADDR_TEXT_LEN] = "";
	struct endpoint e;

	if (!text)
		text = "";
	slash = strchr(text, '/');
	if (slash && !strcmp(slash, "/udp")) {
		config_doc_error(d, p, "%.64s: /udp is not supported yet by this version, allowed: /tcp", text);
		return false;
	}
	if (!slash)
		slash = text + strlen(text);
	if ((size_t)(slash - text) < sizeof(where))
		memcpy(where, text, (size_t)(slash - text));
	if ((*slash && strcmp(slash, "/tcp")) || endpoint_parse(where, &e) < 0) {
		config_doc_error(d, p,
				 "\"%.64s\" is not a listener, allowed: ADDR:PORT or ADDR:PORT/tcp, port 1 to 65535",
				 text);
		return false;
	}
	if (e.addr.family != AF_INET) {
		config_doc_error(d, p, "%.64s: IPv6 is not supported yet by this version, allowed: IPv4", text);
		return false;
	}
	if (!addr_is_usable(&e.addr)) {
		config_doc_error(d, p,
				 "%.64s cannot be reached by clients, allowed: a unicast address that is not loopback",
				 text);
		return false;
	}
	*ret = e;
	return true;
}

struct config_seen_entry {
	char *value; /* owned */
	struct place place;
	size_t order;
};

void config_seen_add(struct config_doc *d, struct config_seen *s, const struct place *p, const char *value)
{
	struct config_seen_entry *e = s->entries;

	/* grows at powers of two */
	if (!(s->n & (s->n - 1)))
		e = realloc(e, (s->n ? 2 * s->n : 1) * sizeof(*e));
	if (!e) {
		d->no_memory = true;
		return;
	}
	s->entries = e;
	e[s->n] = (struct config_seen_entry){.value = strdup(value), .place = *p, .order = s->n};
	if (e[s->n].value)
		s->n++;
	else
		d->no_memory = true;
}

static int seen_compare(const void *a, const void *b)
{
	const struct config_seen_entry *x = a, *y = b;
	int r = strcmp(x->value, y->value);

	return r ? r : (x->order > y->order) - (x->order < y->order);
}

void config_seen_done(struct config_doc *d, struct config_seen *s)
{
	size_t first = 0;

	if (s->n)
		qsort(s->entries, s->n, sizeof(*s->entries), seen_compare);
	for (size_t i = 1; i < s->n; i++) {
		if (strcmp(s->entries[i].value, s->entries[first].value))
			first = i;
		else
			config_doc_error(d, &s->entries[i].place, "%s is given twice, first at %s, allowed: once",
					 s->entries[i].value, s->entries[first].place.path);
	}
	for (size_t i = 0; i < s->n; i++)
		free(s->entries[i].value);
	free(s->entries);
	*s = (struct config_seen){0};
}
