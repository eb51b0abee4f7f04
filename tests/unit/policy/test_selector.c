// SPDX-License-Identifier: MIT
#include "unit.h"
#include "policy/selector.h"
#include "policy/table.h"
#include <errno.h>

/* What a test says of an entry; the rest is the default: good address, enabled, healthy, weight 1, cluster DEFAULT. */
struct entry {
	const char *at; /* "ADDR:PORT", or a bad address starting with '!' */
	double weight;
	bool unhealthy, disabled, bad_weight;
	const char *cluster, *id;
};

static const char *text(struct snapshot *s, const char *t)
{
	const char *p = snapshot_text(s, t, strlen(t));

	assert_non_null(p);
	return p;
}

static void add(struct snapshot *s, const struct entry *e)
{
	struct instance *i = snapshot_append(s);

	assert_non_null(i);
	i->address_text = text(s, e->at + (*e->at == '!'));
	if (*e->at == '!')
		i->reject = SY_R_BAD_ADDRESS;
	else
		assert_int_equal(endpoint_parse(e->at, &i->endpoint), 0);
	if (e->bad_weight && !i->reject)
		i->reject = SY_R_BAD_WEIGHT;
	i->weight = e->weight;
	i->healthy = !e->unhealthy;
	i->enabled = !e->disabled;
	i->cluster = text(s, e->cluster ? e->cluster : "DEFAULT");
	i->instance_id = text(s, e->id ? e->id : "");
}

static struct snapshot *list(const struct entry *e, size_t n)
{
	struct snapshot *s = snapshot_new("DEFAULT_GROUP", "svc");

	assert_non_null(s);
	for (size_t i = 0; i < n; i++)
		add(s, &e[i]);
	return s;
}

#define E(address, w, ...)                                                                                             \
	{                                                                                                              \
		.at = (address), .weight = (w), ##__VA_ARGS__                                                          \
	}
#define LIST(...)                                                                                                      \
	list((const struct entry[]){__VA_ARGS__}, sizeof((const struct entry[]){__VA_ARGS__}) / sizeof(struct entry))

static const struct selector_rules plain = {.cluster_fallback_all = true, .family_v4 = true, .family_v6 = true};

static struct selection run(const struct snapshot *s, const struct selector_rules *rules)
{
	struct selection sel;
	size_t n_eligible = 0;

	assert_int_equal(selector_run(s, rules, &sel), 0);
	assert_int_equal(sel.n_candidates, s->n_instances);
	/* what holds of any selection */
	for (size_t i = 0; i < sel.n_candidates; i++) {
		const struct candidate *c = &sel.candidates[i];

		n_eligible += c->eligible;
		assert_int_equal(c->eligible, c->state == SY_UP);
		assert_int_equal(c->eligible, c->reason == SY_R_NONE);
		assert_true(!c->eligible || c->weight > 0);
	}
	assert_int_equal(sel.n_eligible, n_eligible);
	return sel;
}

static void assert_candidate(const struct selection *sel, size_t i, const char *address, enum sy_state state,
			     enum sy_reason reason)
{
	assert_true(i < sel->n_candidates);
	assert_string_equal(sel->candidates[i].instance->address_text, address);
	assert_int_equal(sel->candidates[i].state, state);
	assert_int_equal(sel->candidates[i].reason, reason);
}

static enum override word_of_operator(const void *ctx, const struct endpoint *e)
{
	(void)e;
	return *(const enum override *)ctx;
}

/* The truth table over all combinations, against the rows of selector.c written as a list of questions. */
struct expected {
	enum sy_state state;
	enum sy_reason reason;
};

static struct expected expected_of(const struct entry *e, const struct selector_rules *rules, enum override word)
{
	enum sy_state registry = rules->registry_reset ? SY_EVICTED : SY_DRAINING;
	bool served = strchr(e->at, '[') ? rules->family_v6 : rules->family_v4;

	if (*e->at == '!')
		return (struct expected){SY_EVICTED, SY_R_BAD_ADDRESS};
	if (word == OVERRIDE_EVICT)
		return (struct expected){SY_EVICTED, SY_R_OPERATOR};
	if (word == OVERRIDE_DRAIN)
		return (struct expected){SY_DRAINING, SY_R_OPERATOR};
	if (e->disabled)
		return (struct expected){registry, SY_R_DISABLED};
	if (e->unhealthy)
		return (struct expected){registry, SY_R_UNHEALTHY};
	if (e->bad_weight)
		return (struct expected){SY_DRAINING, SY_R_BAD_WEIGHT};
	if (e->weight == 0)
		return (struct expected){SY_DRAINING, SY_R_WEIGHT_0};
	if (!served)
		return (struct expected){SY_DRAINING, SY_R_OTHER_FAMILY};
	if (rules->cluster && strcmp(e->cluster, rules->cluster) != 0 && !rules->cluster_fallback_all)
		return (struct expected){SY_DRAINING, SY_R_OTHER_CLUSTER};
	return (struct expected){SY_UP, SY_R_NONE};
}

static void truth_table(void **state)
{
	static const char *const addresses[] = {"!svc.example:80", "10.0.0.1:80", "[fd00::1]:80"};

	(void)state;
	for (unsigned bits = 0; bits < 1U << 10; bits++)
		for (size_t a = 0; a < 3; a++)
			for (int w = OVERRIDE_NONE; w <= OVERRIDE_EVICT; w++) {
				enum override word = (enum override)w;
				struct selector_rules rules = {.cluster = bits & 1 ? "A" : NULL,
							       .cluster_fallback_all = bits & 2,
							       .family_v4 = bits & 4,
							       .family_v6 = bits & 8,
							       .registry_reset = bits & 16,
							       .override = word_of_operator,
							       .override_ctx = &word};
				struct entry e = {.at = addresses[a],
						  .disabled = bits & 32,
						  .unhealthy = bits & 64,
						  .bad_weight = bits & 128,
						  .weight = bits & 256 ? 0.25 : 0,
						  .cluster = bits & 512 ? "A" : "B"};
				struct expected want = expected_of(&e, &rules, word);
				struct snapshot *s = list(&e, 1);
				struct selection sel = run(s, &rules);

				assert_candidate(&sel, 0, e.at + (*e.at == '!'), want.state, want.reason);
				assert_int_equal(sel.n_bad, *e.at == '!' || e.bad_weight);
				assert_int_equal(sel.cluster_fell_back,
						 sel.n_eligible == 1 && rules.cluster && *e.cluster != 'A');
				selection_done(&sel);
				snapshot_free(s);
			}
}

static void weight_0_takes_nothing(void **state)
{
	struct snapshot *s = LIST(E("10.0.0.1:80", 0), E("10.0.0.2:80", 1));
	struct selection sel = run(s, &plain);

	(void)state;
	assert_int_equal(sel.n_eligible, 1);
	assert_candidate(&sel, 0, "10.0.0.1:80", SY_DRAINING, SY_R_WEIGHT_0);
	assert_candidate(&sel, 1, "10.0.0.2:80", SY_UP, SY_R_NONE);
	selection_done(&sel);
	snapshot_free(s);
}

static void all_weights_0_is_empty(void **state)
{
	struct snapshot *s = LIST(E("10.0.0.1:80", 0), E("10.0.0.2:80", 0));
	struct selection sel = run(s, &plain);

	(void)state;
	assert_int_equal(sel.n_eligible, 0);
	assert_false(sel.cluster_fell_back);
	selection_done(&sel);
	snapshot_free(s);
}

static void one_bad_weight_costs_itself(void **state)
{
	struct snapshot *s = LIST(E("10.0.0.1:80", 1), E("10.0.0.2:80", 1, .bad_weight = true), E("10.0.0.3:80", 2),
				  E("!svc.example:80", 1));
	struct selection sel = run(s, &plain);

	(void)state;
	assert_int_equal(sel.n_eligible, 2);
	assert_int_equal(sel.n_bad, 2);
	assert_candidate(&sel, 1, "10.0.0.2:80", SY_DRAINING, SY_R_BAD_WEIGHT);
	assert_candidate(&sel, 3, "svc.example:80", SY_EVICTED, SY_R_BAD_ADDRESS);
	selection_done(&sel);
	snapshot_free(s);
}

static void empty_list(void **state)
{
	struct snapshot *s = list(NULL, 0);
	struct selection sel = run(s, &plain);

	(void)state;
	assert_int_equal(sel.n_candidates, 0);
	assert_int_equal(sel.n_eligible, 0);
	selection_done(&sel);
	snapshot_free(s);
}

static void sorted_by_address_and_port(void **state)
{
	struct snapshot *s = LIST(E("!z:1", 1), E("[fd00::1]:1", 1), E("10.0.0.10:80", 1), E("!a:1", 1),
				  E("10.0.0.9:443", 1), E("10.0.0.9:80", 1));
	static const char *const order[] = {"10.0.0.9:80", "10.0.0.9:443", "10.0.0.10:80", "[fd00::1]:1", "a:1", "z:1"};
	struct selection sel = run(s, &plain);

	(void)state;
	for (size_t i = 0; i < 6; i++)
		assert_string_equal(sel.candidates[i].instance->address_text, order[i]);
	selection_done(&sel);
	snapshot_free(s);
}

/* few addresses, so that all of bad ones, duplicates and common prefixes come up */
static void draw_address(char *at, size_t size, uint64_t *seed)
{
	unsigned a = (unsigned)(unit_random(seed) % 4), b = (unsigned)(unit_random(seed) % 3),
		 port = 1 + (unsigned)(unit_random(seed) % 400);

	switch (unit_random(seed) % 8) {
	case 0:
		(void)snprintf(at, size, "!host-%u:%u", a, port);
		break;
	case 1:
		(void)snprintf(at, size, "[fd%02u::%u:%u]:%u", a, b, a, port);
		break;
	default:
		(void)snprintf(at, size, "%u.%u.%u.%u:%u", 1 + 60 * a, 90 * b, a, 100 * b, port);
	}
}

static void assert_in_order(const struct instance *a, const struct instance *b)
{
	assert_ptr_not_equal(a, b);
	if (a->reject == SY_R_BAD_ADDRESS) {
		assert_int_equal(b->reject, SY_R_BAD_ADDRESS);
		assert_true(strcmp(a->address_text, b->address_text) <= 0);
	} else if (!b->reject) {
		int r = endpoint_compare(&a->endpoint, &b->endpoint);

		assert_true(r < 0 || (r == 0 && (a->weight > b->weight || (a->weight == b->weight && a < b))));
	}
}

/* equals stay in the registry's order */
static void random_lists_are_sorted(void **state)
{
	uint64_t seed = 1;

	(void)state;
	for (int round = 0; round < 2000; round++) {
		size_t n = unit_random(&seed) % 300, n_bad = 0;
		struct snapshot *s = list(NULL, 0);
		struct selection sel;

		for (size_t i = 0; i < n; i++) {
			char at[64];

			draw_address(at, sizeof(at), &seed);
			n_bad += *at == '!';
			add(s, &(struct entry){.at = at, .weight = 1 + (double)(unit_random(&seed) % 2)});
		}
		sel = run(s, &plain);
		for (size_t i = 1; i < n; i++)
			assert_in_order(sel.candidates[i - 1].instance, sel.candidates[i].instance);
		assert_int_equal(sel.n_bad, n_bad);
		assert_int_equal(sel.n_eligible, n - n_bad - sel.n_duplicates);
		selection_done(&sel);
		snapshot_free(s);
	}
}

static const struct entry two_clusters[] = {E("10.0.0.1:80", 1, .cluster = "A"), E("10.0.0.2:80", 1, .cluster = "B"),
					    E("10.0.0.3:80", 1, .cluster = "A")};

static void preferred_cluster_alone(void **state)
{
	struct selector_rules rules = plain;
	struct snapshot *s = list(two_clusters, 3);
	struct selection sel;

	(void)state;
	rules.cluster = "A";
	sel = run(s, &rules);
	assert_int_equal(sel.n_eligible, 2);
	assert_false(sel.cluster_fell_back);
	assert_candidate(&sel, 1, "10.0.0.2:80", SY_DRAINING, SY_R_OTHER_CLUSTER);
	selection_done(&sel);
	snapshot_free(s);
}

static void fallback_all(void **state)
{
	struct selector_rules rules = plain;
	struct snapshot *s = list(two_clusters, 3);
	struct selection sel;

	(void)state;
	rules.cluster = "C";
	sel = run(s, &rules);
	assert_int_equal(sel.n_eligible, 3);
	assert_true(sel.cluster_fell_back);
	selection_done(&sel);
	snapshot_free(s);
}

static void fallback_none(void **state)
{
	struct selector_rules rules = plain;
	struct snapshot *s = list(two_clusters, 3);
	struct selection sel;

	(void)state;
	rules.cluster = "C";
	rules.cluster_fallback_all = false;
	sel = run(s, &rules);
	assert_int_equal(sel.n_eligible, 0);
	assert_false(sel.cluster_fell_back);
	for (size_t i = 0; i < 3; i++)
		assert_candidate(&sel, i, two_clusters[i].at, SY_DRAINING, SY_R_OTHER_CLUSTER);
	selection_done(&sel);
	snapshot_free(s);
}

static void unusable_preferred_falls_back(void **state)
{
	struct selector_rules rules = plain;
	struct snapshot *s = LIST(E("10.0.0.1:80", 1, .unhealthy = true, .cluster = "A"),
				  E("10.0.0.2:80", 1, .cluster = "B"), E("10.0.0.3:80", 0, .cluster = "A"));
	struct selection sel;

	(void)state;
	rules.cluster = "A";
	sel = run(s, &rules);
	assert_int_equal(sel.n_eligible, 1);
	assert_true(sel.cluster_fell_back);
	assert_candidate(&sel, 0, "10.0.0.1:80", SY_DRAINING, SY_R_UNHEALTHY);
	assert_candidate(&sel, 1, "10.0.0.2:80", SY_UP, SY_R_NONE);
	selection_done(&sel);
	snapshot_free(s);
}

static enum override drain_first(const void *ctx, const struct endpoint *e)
{
	struct endpoint first;

	(void)ctx;
	assert_int_equal(endpoint_parse("10.0.0.1:80", &first), 0);
	return endpoint_compare(&first, e) == 0 ? OVERRIDE_DRAIN : OVERRIDE_NONE;
}

static void operator_can_empty_the_preferred_cluster(void **state)
{
	struct selector_rules rules = plain;
	struct snapshot *s = LIST(E("10.0.0.1:80", 1, .cluster = "A"), E("10.0.0.2:80", 1, .cluster = "B"));
	struct selection sel;

	(void)state;
	rules.cluster = "A";
	rules.override = drain_first;
	sel = run(s, &rules);
	assert_candidate(&sel, 0, "10.0.0.1:80", SY_DRAINING, SY_R_OPERATOR);
	assert_candidate(&sel, 1, "10.0.0.2:80", SY_UP, SY_R_NONE);
	assert_true(sel.cluster_fell_back);
	selection_done(&sel);
	snapshot_free(s);
}

/* better and worse, in both orders of the list: the winner is the same */
static void assert_wins(const struct selector_rules *rules, struct entry better, struct entry worse,
			enum sy_state state)
{
	for (int swap = 0; swap < 2; swap++) {
		struct entry both[] = {swap ? worse : better, swap ? better : worse};
		struct snapshot *s = list(both, 2);
		struct selection sel = run(s, rules);

		assert_ptr_equal(sel.candidates[0].instance, &s->instances[swap]);
		assert_int_equal(sel.candidates[0].state, state);
		assert_candidate(&sel, 1, worse.at, SY_EVICTED, SY_R_DUPLICATE);
		assert_int_equal(sel.n_duplicates, 1);
		selection_done(&sel);
		snapshot_free(s);
	}
}

static void duplicates(void **state)
{
	struct selector_rules rules = plain;
	const char *at = "10.0.0.1:80";

	(void)state;
	assert_wins(&rules, (struct entry)E(at, 100), (struct entry)E(at, 1, .id = "z"), SY_UP);
	assert_wins(&rules, (struct entry)E(at, 1), (struct entry)E(at, 100, .unhealthy = true), SY_UP);
	assert_wins(&rules, (struct entry)E(at, 1), (struct entry)E(at, 100, .disabled = true), SY_UP);
	assert_wins(&rules, (struct entry)E(at, 1), (struct entry)E(at, 100, .bad_weight = true), SY_UP);
	assert_wins(&rules, (struct entry)E(at, 1, .id = "b"), (struct entry)E(at, 1, .id = "a"), SY_UP);
	assert_wins(&rules, (struct entry)E(at, 1, .cluster = "B"), (struct entry)E(at, 1, .cluster = "A"), SY_UP);
	assert_wins(&rules, (struct entry)E(at, 0, .id = "b"), (struct entry)E(at, 0, .id = "a"), SY_DRAINING);
	rules.cluster = "A";
	assert_wins(&rules, (struct entry)E(at, 1, .cluster = "A"), (struct entry)E(at, 100, .cluster = "B"), SY_UP);
}

static void three_duplicates(void **state)
{
	struct snapshot *s = LIST(E("10.0.0.1:80", 1, .id = "a"), E("10.0.0.2:80", 1), E("10.0.0.1:80", 1, .id = "c"),
				  E("10.0.0.1:80", 1, .id = "b"), E("10.0.0.1:81", 1));
	struct selection sel = run(s, &plain);

	(void)state;
	assert_int_equal(sel.n_eligible, 3);
	assert_int_equal(sel.n_duplicates, 2);
	assert_string_equal(sel.candidates[0].instance->instance_id, "c");
	assert_candidate(&sel, 1, "10.0.0.1:80", SY_EVICTED, SY_R_DUPLICATE);
	assert_candidate(&sel, 2, "10.0.0.1:80", SY_EVICTED, SY_R_DUPLICATE);
	assert_candidate(&sel, 3, "10.0.0.1:81", SY_UP, SY_R_NONE);
	selection_done(&sel);
	snapshot_free(s);
}

static void bad_addresses_are_no_duplicates(void **state)
{
	struct snapshot *s = LIST(E("!svc.example:80", 1), E("!svc.example:80", 1));
	struct selection sel = run(s, &plain);

	(void)state;
	assert_int_equal(sel.n_duplicates, 0);
	assert_int_equal(sel.n_bad, 2);
	selection_done(&sel);
	snapshot_free(s);
}

/* ---- the registry's order means nothing, up to the bounds ---- */

#define MANY 400

static size_t table_of(const struct snapshot *s, uint32_t *bounds, struct endpoint *members)
{
	struct selector_rules rules = plain;
	struct selection sel;
	double weights[MANY];
	size_t n = 0;

	rules.cluster = "A";
	sel = run(s, &rules);
	for (size_t i = 0; i < sel.n_candidates; i++) {
		if (!sel.candidates[i].eligible)
			continue;
		members[n] = sel.candidates[i].instance->endpoint;
		weights[n++] = sel.candidates[i].weight;
	}
	selection_done(&sel);
	assert_int_equal(table_bounds(weights, n, bounds), 0);
	return n;
}

static void shuffle(struct snapshot *s, uint64_t *seed)
{
	for (size_t i = s->n_instances - 1; i > 0; i--) {
		size_t j = unit_random(seed) % (i + 1);
		struct instance t = s->instances[i];

		s->instances[i] = s->instances[j];
		s->instances[j] = t;
	}
}

static struct snapshot *random_list(uint64_t *seed, size_t n)
{
	struct snapshot *s = list(NULL, 0);
	char at[ADDR_TEXT_LEN], id[32];

	for (size_t i = 0; i < n; i++) {
		uint64_t r = unit_random(seed);
		struct entry e = {.at = at,
				  .id = id,
				  .weight = (double)(r % 5),
				  .unhealthy = r >> 8 & 1,
				  .bad_weight = (r >> 16 & 7) == 0,
				  .cluster = r >> 24 & 1 ? "A" : "B"};

		(void)snprintf(at, sizeof(at), "10.0.%u.%u:80", (unsigned)(r >> 32 & 3), (unsigned)(r >> 40 & 63));
		(void)snprintf(id, sizeof(id), "%zu", i);
		add(s, &e);
	}
	return s;
}

static void order_means_nothing(void **state)
{
	static uint32_t bounds[MANY], again[MANY];
	static struct endpoint members[MANY], members_again[MANY];
	uint64_t seed = 6;

	(void)state;
	for (int round = 0; round < 50; round++) {
		struct snapshot *s = random_list(&seed, MANY);
		size_t n = table_of(s, bounds, members);

		for (int k = 0; k < 5; k++) {
			shuffle(s, &seed);
			assert_int_equal(table_of(s, again, members_again), n);
			assert_memory_equal(bounds, again, n * sizeof(*bounds));
			for (size_t i = 0; i < n; i++)
				assert_int_equal(endpoint_compare(&members[i], &members_again[i]), 0);
		}
		snapshot_free(s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE("every combination gives the state and reason of the truth table", truth_table),
		CASE("weight 0 is listed, draining, and takes nothing", weight_0_takes_nothing),
		CASE("every weight 0 is an empty set", all_weights_0_is_empty),
		CASE("a bad weight or address costs that instance its place and nobody else's",
		     one_bad_weight_costs_itself),
		CASE("an empty list is an empty selection", empty_list),
		CASE("candidates are sorted by address and port, bad addresses last", sorted_by_address_and_port),
		CASE("2,000 random lists come sorted by address, port and merit", random_lists_are_sorted),
		CASE("with a preferred cluster the others take nothing", preferred_cluster_alone),
		CASE("nobody in the preferred cluster: all, when so configured", fallback_all),
		CASE("nobody in the preferred cluster: none, when so configured", fallback_none),
		CASE("a preferred cluster of which nobody is usable counts as empty", unusable_preferred_falls_back),
		CASE("draining the last of the preferred cluster brings the others in",
		     operator_can_empty_the_preferred_cluster),
		CASE("of duplicates the eligible, then heavier, then greater id wins in any order", duplicates),
		CASE("of three duplicates two lose", three_duplicates),
		CASE("two bad addresses are no duplicates", bad_addresses_are_no_duplicates),
		CASE("the same instances in any order give the same table", order_means_nothing),
	};

	return cmocka_run_group_tests_name("selector", tests, NULL, NULL);
}
