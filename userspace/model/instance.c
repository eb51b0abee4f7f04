// SPDX-License-Identifier: MIT
#include "instance.h"
#include "../base/cleanup.h"
#include <string.h>

#define FIRST_BYTES 256
#define MOST_BYTES  65536

struct text_block {
	struct text_block *next; /* filled before this one */
	size_t used, size;
	char bytes[];
};

struct snapshot *snapshot_new(const char *group, const char *name)
{
	struct snapshot *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->group = strdup(group);
	s->name = strdup(name);
	if (!s->group || !s->name) {
		snapshot_free(s);
		return NULL;
	}
	return s;
}

void snapshot_free(struct snapshot *s)
{
	if (!s)
		return;
	for (struct text_block *b = s->texts, *next; b; b = next) {
		next = b->next;
		free(b);
	}
	free(s->instances);
	free(s->group);
	free(s->name);
	free(s);
}

DEFINE_CLEANUP(struct snapshot *, snapshot_free)

/* Room for one more. The array doubles when its length reaches a power of two, so that its size need not be kept. */
static int grow(struct snapshot *s)
{
	size_t n = s->n_instances;
	struct instance *p;

	if (n & (n - 1))
		return 0;
	p = reallocarray(s->instances, n ? n * 2 : 1, sizeof(*p));
	if (!p)
		return -1;
	s->instances = p;
	return 0;
}

struct instance *snapshot_append(struct snapshot *s)
{
	struct instance *i;

	if (grow(s) < 0)
		return NULL;
	i = &s->instances[s->n_instances];
	*i = (struct instance){.cluster = "", .instance_id = ""};
	s->n_instances++;
	return i;
}

/* A block that has room for size bytes; each is twice as great as the one before. */
static struct text_block *room_for(struct snapshot *s, size_t size)
{
	struct text_block *b = s->texts;
	size_t bytes = b ? 2 * b->size : FIRST_BYTES;

	if (b && b->size - b->used >= size)
		return b;
	bytes = bytes > MOST_BYTES ? MOST_BYTES : bytes;
	bytes = bytes < size ? size : bytes;
	b = malloc(sizeof(*b) + bytes);
	if (!b)
		return NULL;
	*b = (struct text_block){.next = s->texts, .size = bytes};
	s->texts = b;
	return b;
}

const char *snapshot_text(struct snapshot *s, const char *text, size_t size)
{
	struct text_block *b = room_for(s, size + 1);
	char *copy;

	if (!b)
		return NULL;
	copy = &b->bytes[b->used];
	memcpy(copy, text, size);
	copy[size] = '\0';
	b->used += size + 1;
	return copy;
}

/* NULL stays NULL. */
static int copy_text(struct snapshot *s, const char *from, const char **to)
{
	*to = from ? snapshot_text(s, from, strlen(from)) : NULL;
	return from && !*to ? -1 : 0;
}

static int append_copy(struct snapshot *s, const struct instance *from)
{
	struct instance *to = snapshot_append(s);

	if (!to)
		return -1;
	*to = *from;
	if (copy_text(s, from->address_text, &to->address_text) < 0 || copy_text(s, from->cluster, &to->cluster) < 0 ||
	    copy_text(s, from->instance_id, &to->instance_id) < 0)
		return -1;
	return 0;
}

struct snapshot *snapshot_copy(const struct snapshot *s)
{
	_cleanup_(snapshot_freep) struct snapshot *copy = snapshot_new(s->group, s->name);

	if (!copy)
		return NULL;
	copy->protection = s->protection;
	for (size_t i = 0; i < s->n_instances; i++)
		if (append_copy(copy, &s->instances[i]) < 0)
			return NULL;
	return TAKE_PTR(copy);
}

static int compare_text(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "");
}

/* Total order over all that counts as content; 0 means the same content. */
static int compare_content(const struct instance *a, const struct instance *b)
{
	int r;

	if (a->reject != b->reject)
		return a->reject < b->reject ? -1 : 1;
	if (a->reject == SY_R_BAD_ADDRESS)
		r = compare_text(a->address_text, b->address_text);
	else
		r = endpoint_compare(&a->endpoint, &b->endpoint);
	if (r)
		return r;
	if (a->reject != SY_R_BAD_WEIGHT && a->weight != b->weight)
		return a->weight < b->weight ? -1 : 1;
	if (a->healthy != b->healthy)
		return a->healthy ? 1 : -1;
	if (a->enabled != b->enabled)
		return a->enabled ? 1 : -1;
	return compare_text(a->cluster, b->cluster);
}

static int compare_pointed(const void *a, const void *b)
{
	return compare_content(*(const struct instance *const *)a, *(const struct instance *const *)b);
}

/* Owned array of pointers to n instances, sorted by content; NULL: no memory. */
static const struct instance **sorted(const struct instance *from, size_t n)
{
	const struct instance **p = calloc(n, sizeof(*p));

	if (!p)
		return NULL;
	for (size_t i = 0; i < n; i++)
		p[i] = &from[i];
	qsort(p, n, sizeof(*p), compare_pointed);
	return p;
}

static bool equal_in_any_order(const struct instance *a, const struct instance *b, size_t n)
{
	_cleanup_free_ const struct instance **in_a = sorted(a, n), **in_b = sorted(b, n);

	if (!in_a || !in_b)
		return false; /* taken for a change, which costs work and nothing else */
	for (size_t i = 0; i < n; i++)
		if (compare_content(in_a[i], in_b[i]))
			return false;
	return true;
}

bool snapshot_equal(const struct snapshot *a, const struct snapshot *b)
{
	const struct instance *in_a = a->instances, *in_b = b->instances;
	size_t n = a->n_instances;

	if (n != b->n_instances || a->protection != b->protection)
		return false;
	/* lists come in the order of last time: what is left between the first and the last difference is mostly little
	 */
	for (; n && !compare_content(in_a, in_b); n--) {
		in_a++;
		in_b++;
	}
	while (n && !compare_content(&in_a[n - 1], &in_b[n - 1]))
		n--;
	return !n || equal_in_any_order(in_a, in_b, n);
}
