// SPDX-License-Identifier: MIT
/* Lists that change all the time: instances come, go and come back, twice in a list, with bad addresses, in any order,
 * under one agent and the next. After each of them the pinned maps have to say what the list says, and every instance
 * has to be the backend that it was. */
#include "pinned.h"
#include "unit.h"

#define NOW    1700000000000000000ULL
#define SECOND 1000000000ULL
#define N_ALL  60 /* instances there are; every twelfth has a bad address */
#define N_MOST 80 /* in a list, duplicates included */

static struct load *load;
static struct maps *maps;
static struct publish *publish;
static uint32_t service;

static char at[N_ALL][32];
static uint32_t id_of[N_ALL]; /* what it was when last listed, 0: never yet */

static bool is_bad(size_t k)
{
	return k % 12 == 11;
}

static void begin(void)
{
	load = pinned_load();
	maps = load_maps(load);
	publish = publish_new(maps);
	assert_non_null(publish);
	assert_int_equal(pinned_service(publish, "orders", "10.9.0.1:80", 0, &service), 0);
}

static void end(void)
{
	publish_free(publish);
	load_close(load);
}

struct made {
	struct pinned_instance list[N_MOST];
	size_t n;
	double weight[N_ALL]; /* of the winner; -1: not listed */
};

/* A run of the instances, turned and with holes, some of them twice: the later one weighs less. */
static void make_list(struct made *m, uint64_t *seed)
{
	size_t first = unit_random(seed) % N_ALL, n = unit_random(seed) % (N_ALL + 1),
	       step = unit_random(seed) & 1 ? 1 : 7;

	m->n = 0;
	for (size_t k = 0; k < N_ALL; k++)
		m->weight[k] = -1;
	for (size_t i = 0; i < n; i++) {
		size_t k = (first + i * step) % N_ALL;

		if (unit_random(seed) % 8 == 0)
			continue;
		m->weight[k] = 2 + (double)(unit_random(seed) % 3);
		m->list[m->n++] = (struct pinned_instance){.at = at[k], .weight = m->weight[k]};
		if (unit_random(seed) % 8 == 0 && m->n < N_MOST && !is_bad(k))
			m->list[m->n++] = (struct pinned_instance){.at = at[k], .weight = 1};
		if (m->n >= N_MOST - 1)
			break;
	}
}

static void check_backend(const struct made *m, size_t k)
{
	uint32_t id = pinned_find(maps, service, at[k]);
	const struct sy_backend *b = &maps->backends[id];
	bool listed = m->weight[k] >= 0;
	double weight;

	if (id_of[k] && id)
		assert_int_equal(id, id_of[k]);
	id_of[k] = id ? id : id_of[k];
	if (!listed) {
		assert_true(!id || !(b->flags & (SY_B_LISTED | SY_B_MEMBER)));
		return;
	}
	assert_int_not_equal(id, 0);
	memcpy(&weight, &b->weight, sizeof(weight));
	assert_true(weight == m->weight[k]);
	assert_int_equal(b->flags, SY_B_LISTED | SY_B_MEMBER);
	assert_int_equal(SY_WORD_STATE(b->word), SY_UP);
}

static void check(const struct made *m)
{
	uint64_t word = maps->services[service].table;
	const struct sy_member *member =
		(const void *)&maps->tables->w[(size_t)SY_TABLE_OFF(word) * SY_REGION_ALIGN / 4];
	size_t n = 0;

	for (size_t k = 0; k < N_ALL; k++) {
		if (is_bad(k))
			continue;
		check_backend(m, k);
		/* at[] ascends, as tables do */
		if (m->weight[k] >= 0)
			assert_int_equal(member[n++].backend, id_of[k]);
	}
	assert_int_equal(SY_TABLE_LEN(word), n);
	assert_int_equal(maps->services[service].n_backends, m->n);
}

static void lists_that_change(void **state)
{
	struct publish_stats stats;
	uint64_t seed = 1, digest;
	struct made m;

	(void)state;
	begin();
	for (unsigned round = 0; round < 600; round++) {
		make_list(&m, &seed);
		assert_int_equal(pinned_publish(publish, service, m.list, m.n, NOW + round * SECOND, &stats), 0);
		check(&m);
		digest = pinned_digest(maps);
		if (round % 40 == 39) {
			end();
			begin();
		}
		assert_int_equal(pinned_publish(publish, service, m.list, m.n, NOW + round * SECOND, &stats), 0);
		assert_int_equal(pinned_digest(maps), digest);
	}
	end();
	pinned_remove();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE("600 lists in any order, over 15 agents: each instance is the backend it was", lists_that_change),
	};

	for (unsigned k = 0; k < N_ALL; k++)
		(void)snprintf(at[k], sizeof(at[k]), is_bad(k) ? "host-%02u:80" : "10.0.%u.1:80", k);
	pinned_enter_namespace();
	return cmocka_run_group_tests_name("publish, lists that change", tests, NULL, NULL);
}
