/* SPDX-License-Identifier: MIT */
/* Flows and figures, read from the lines and the per-CPU counters while packets change them. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include "../base/addr.h"
#include "../base/cleanup.h"
#include "../base/clock.h"
#include "../base/json.h"
#include "inspect_private.h"

const char *inspect_line_state_name(uint64_t word)
{
	static const char *const names[] = {
#define X(NAME, name, text) [SY_##NAME] = (name),
		SY_LINE_STATES(X)
#undef X
	};
	uint64_t state = word & SY_STATE_MASK;

	if ((word & SY_F_RESET) && state >= SY_SYN && state <= SY_CLOSING)
		return "reset";
	if (state == SY_CLIENT_CLOSED || state == SY_BACKEND_CLOSED)
		return "half-closed";
	return state < SY_N_LINE_STATES ? names[state] : "unknown";
}

static struct sy_line *line_at(const struct inspect *i, uint64_t index)
{
	return &i->maps->groups[index / SY_LINES_PER_GROUP].line[index % SY_LINES_PER_GROUP];
}

static uint64_t n_lines(const struct inspect *i)
{
	return (uint64_t)i->maps->config->n_groups * SY_LINES_PER_GROUP;
}

static bool is_live_forward(uint64_t word)
{
	uint64_t state = word & SY_STATE_MASK;

	return state >= SY_SYN && state <= SY_CLOSING;
}

/* A copy of a forward line of a live flow: word, line, word again; its mate has to carry the same id. */
static bool read_flow(const struct inspect *i, uint64_t index, struct sy_line *ret, uint32_t *ret_mate_seen)
{
	const struct sy_line *line = line_at(i, index), *mate;

	for (unsigned tries = 0; tries < 8; tries++) {
		uint64_t word = __atomic_load_n(&line->word, __ATOMIC_ACQUIRE), again;

		if (!is_live_forward(word))
			return false;
		memcpy(ret, line, sizeof(*ret));
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		again = __atomic_load_n(&line->word, __ATOMIC_ACQUIRE);
		if (again >> SY_ID_SHIFT != word >> SY_ID_SHIFT || !is_live_forward(again))
			continue;
		ret->word = again;
		if (ret->mate >= n_lines(i))
			return false;
		mate = line_at(i, ret->mate);
		*ret_mate_seen = mate->seen;
		return __atomic_load_n(&mate->word, __ATOMIC_ACQUIRE) >> SY_ID_SHIFT == again >> SY_ID_SHIFT;
	}
	return false;
}

bool inspect_jiffies(const struct inspect *i, uint32_t *ret)
{
	const uint32_t zero = 0;
	struct sy_sweep sweep;
	uint64_t now_ns = clock_boottime_ns(), since_ns;

	if (bpf_map_lookup_elem(i->maps->fd_sweep, &zero, &sweep) || !sweep.boottime_ns)
		return false;
	since_ns = now_ns > sweep.boottime_ns ? now_ns - sweep.boottime_ns : 0;
	*ret = (uint32_t)(sweep.jiffies + since_ns / NS_PER_MS * i->maps->config->hz / 1000);
	return true;
}

bool inspect_fits(const char *filter, __be32 addr, __be16 port)
{
	struct endpoint e;
	struct addr a;

	if (!filter)
		return true;
	if (addr_parse(filter, &a) == 0)
		return a.family == AF_INET && a.v4.s_addr == addr;
	return endpoint_parse(filter, &e) == 0 && e.addr.family == AF_INET && e.addr.v4.s_addr == addr &&
	       e.port == ntohs(port);
}

static bool fits(const struct inspect *i, const struct inspect_flow_filter *f, const struct sy_line *line)
{
	if (f->service >= 0 &&
	    (line->backend >= SY_MAX_BACKENDS || i->maps->backends[line->backend].service != f->service ||
	     SY_WORD_GEN(i->maps->backends[line->backend].word) != line->backend_gen))
		return false;
	return inspect_fits(f->backend, line->new_daddr, line->new_dport) &&
	       inspect_fits(f->client, line->saddr, line->sport);
}

static double idle_s(const struct inspect *i, uint32_t now, uint32_t seen, uint32_t mate_seen)
{
	uint32_t idle = now - seen, mate_idle = now - mate_seen;

	if (mate_idle < idle)
		idle = mate_idle;
	/* a packet may have come since the clock was read */
	return idle > UINT32_MAX / 2 ? 0 : (double)((uint64_t)idle * 1000 / i->maps->config->hz) / 1000;
}

static void add_endpoint(cJSON *o, const char *key, __be32 addr, __be16 port)
{
	char text[32];

	inspect_endpoint(addr, port, text, sizeof(text));
	(void)cJSON_AddStringToObject(o, key, text);
}

cJSON *inspect_flows(struct inspect *i, const struct inspect_flow_filter *f)
{
	cJSON *out = cJSON_CreateArray();
	uint64_t n = 0, end = n_lines(i);
	uint32_t now = 0, mate_seen;
	bool has_now = inspect_jiffies(i, &now);

	for (uint64_t index = 0; out && index < end && (!f->limit || n < f->limit); index++) {
		struct sy_line line;
		cJSON *o;

		if (!read_flow(i, index, &line, &mate_seen) || !fits(i, f, &line))
			continue;
		o = cJSON_CreateObject();
		add_endpoint(o, "client", line.saddr, line.sport);
		add_endpoint(o, "listen", line.daddr, line.dport);
		add_endpoint(o, "backend", line.new_daddr, line.new_dport);
		add_endpoint(o, "snat", line.new_saddr, line.new_sport);
		(void)cJSON_AddStringToObject(o, "state", inspect_line_state_name(line.word));
		(void)json_add_double(o, "idle_s", has_now ? idle_s(i, now, line.seen, mate_seen) : 0);
		(void)cJSON_AddItemToArray(out, o);
		n++;
	}
	return out;
}

cJSON *inspect_flow_counts(struct inspect *i)
{
	uint64_t established = 0, half_open = 0, end = n_lines(i);
	cJSON *out = cJSON_CreateObject();

	for (uint64_t index = 0; index < end; index++) {
		uint64_t word = __atomic_load_n(&line_at(i, index)->word, __ATOMIC_RELAXED),
			 state = word & SY_STATE_MASK;

		/* one that was reset lingers to answer with resets: as the counters of backends have it, it is over */
		if (word & SY_F_RESET)
			continue;
		half_open += state == SY_SYN;
		established += state >= SY_ESTABLISHED && state <= SY_BACKEND_CLOSED;
	}
	(void)json_add_u64(out, "established", established);
	(void)json_add_u64(out, "half_open", half_open);
	(void)json_add_u64(out, "capacity", i->maps->config->flows);
	return out;
}

static uint64_t sum_cpus(const struct inspect *i, int fd, uint32_t index)
{
	_cleanup_free_ uint64_t *values = calloc(i->maps->config->n_cpus, sizeof(*values));
	uint64_t sum = 0;

	if (!values || bpf_map_lookup_elem(fd, &index, values))
		return 0;
	for (uint32_t cpu = 0; cpu < i->maps->config->n_cpus; cpu++)
		sum += values[cpu];
	return sum;
}

cJSON *inspect_stats(struct inspect *i)
{
	cJSON *out = cJSON_CreateObject(), *verdicts = cJSON_AddObjectToObject(out, "verdicts"),
	      *counts = cJSON_AddObjectToObject(out, "counts");

#define X(NAME, name, ...) (void)json_add_u64(verdicts, name, sum_cpus(i, i->maps->fd_verdicts, SY_V_##NAME));
	SY_VERDICTS(X)
#undef X
#define X(NAME, name, ...) (void)json_add_u64(counts, name, sum_cpus(i, i->maps->fd_counts, SY_C_##NAME));
	SY_COUNTERS(X)
#undef X
	return out;
}
