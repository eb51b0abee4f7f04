/* SPDX-License-Identifier: MIT */
#include "hz.h"
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <time.h>
#include "../base/cleanup.h"
#include "../base/clock.h"

#define MEASURE_NS (200 * NS_PER_MS)
#define EDGE_TRIES 1000000 /* a run takes about a microsecond, the longest jiffy 10 ms */

uint32_t hz_from(uint64_t n_jiffies, uint64_t ns)
{
	static const uint32_t built[] = {100, 250, 300, 1000, 24, 48, 64, 128, 200, 256, 500, 512, 1024, 1200};
	double hz = ns ? (double)n_jiffies * (double)NS_PER_S / (double)ns : 0;

	for (size_t i = 0; i < sizeof(built) / sizeof(built[0]); i++)
		if (hz > built[i] * 0.98 && hz < built[i] * 1.02)
			return built[i];
	return hz < 1 ? 1 : (uint32_t)(hz + 0.5);
}

/* jiffies, the low 32 bits of them as the program's return value */
static int read_jiffies(int prog_fd, uint32_t *ret)
{
	char packet[64] = {0};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = packet, .data_size_in = sizeof(packet));

	if (bpf_prog_test_run_opts(prog_fd, &opts))
		return -errno;
	*ret = opts.retval;
	return 0;
}

/* The moment at which jiffies moves on. */
static int find_edge(int prog_fd, uint32_t *ret_jiffies, uint64_t *ret_ns)
{
	uint32_t first, now;
	int err = read_jiffies(prog_fd, &first);

	for (unsigned i = 0; !err && i < EDGE_TRIES; i++) {
		err = read_jiffies(prog_fd, &now);
		if (err || now == first)
			continue;
		*ret_ns = clock_monotonic_ns();
		*ret_jiffies = now;
		return 0;
	}
	return err ? err : -ETIME;
}

int hz_measure(uint32_t *ret_hz)
{
	const struct bpf_insn program[] = {
		{.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_jiffies64},
		{.code = BPF_JMP | BPF_EXIT},
	};
	const struct timespec pause = {.tv_nsec = MEASURE_NS};
	_cleanup_close_ int fd = bpf_prog_load(BPF_PROG_TYPE_SCHED_CLS, "steelyard_hz", "GPL", program, 2, NULL);
	uint64_t from_ns, to_ns;
	uint32_t from, to;
	int err;

	if (fd < 0)
		return -errno;
	err = find_edge(fd, &from, &from_ns);
	if (err)
		return err;
	(void)nanosleep(&pause, NULL);
	err = find_edge(fd, &to, &to_ns);
	if (err)
		return err;
	*ret_hz = hz_from(to - from, to_ns - from_ns);
	return 0;
}
