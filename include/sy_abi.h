/* SPDX-License-Identifier: (GPL-2.0 OR MIT) */
/* What the kernel programs, the agent and the CLI share: every record in a pinned map, with its units, byte order,
 * writer and limits. Compiled by clang for BPF and by gcc alone with -Wpadded -Werror: no hidden padding.
 *
 * Byte order: __be16 and __be32 are network order, all else is host order. Times are jiffies truncated to 32 bits
 * ("jiffies") unless the name ends in _ns. A change of any record's shape raises SY_LAYOUT_VERSION. */
#pragma once
#include <linux/types.h>
#include "sy_verdict.h"
#include "sy_reason.h"
#include "sy_counter.h"

#define SY_LAYOUT_VERSION 1

/* ---- limits ---- */
#define SY_MAX_SERVICES 16384
#define SY_MAX_BACKENDS 262144 /* all services together; id 0 is never given out */
#define SY_MAX_ENDPOINTS 262144 /* distinct address:port; id 0 is never given out */
#define SY_MAX_MEMBERS 16384 /* of one table */
#define SY_MAX_LISTENERS 65536
#define SY_MAX_IFACES 256 /* interfaces known to the programs; slot 0 means none */
#define SY_MAX_POOLS 16 /* source address sets */
#define SY_MAX_POOL_ADDRS 16
#define SY_MAX_POOL_PORTS 65536
#define SY_NH_CACHE 8192 /* next hops looked up by a CPU, per CPU; a power of two */
#define SY_MIN_FLOWS 128
#define SY_MAX_FLOWS 4194304

/* ---- names in the pin folder: one per map, MAP(name) in bpf/maps.bpf.h; links are in PIN_DIR/links ---- */
#define SY_PIN_LINKS "links"

/* ---- flow table ----
 * A flow is two lines: forward (client -> listener) and return (backend -> source address). The table is an array of
 * groups of four lines; line index = group * 4 + place. See ARCHITECTURE.md, "Flow table", for the protocol.
 *
 * word: bits 63..8 flow id (never used twice), bits 7..0 state byte:
 *   bits 3..0 enum sy_line_state, bit 4 RESET, bit 5 REAPING, bits 7..6 strikes (draining and silent backends); in
 *   CLOSING bit 6 says that the backend closed first.
 * The word is changed by 64-bit compare-and-swap only. 0 is FREE. */
#define SY_LINES_PER_GROUP 4
#define SY_LINES_PER_FLOW 6 /* two lines, table kept a third full */
#define SY_ID_SHIFT 8
#define SY_STATE_MASK 0x0fULL
#define SY_F_RESET 0x10ULL
#define SY_F_REAPING 0x20ULL
#define SY_F_BACKEND_FIRST 0x40ULL
#define SY_STRIKE_SHIFT 6
#define SY_STRIKE_MASK 0xc0ULL

/* X(NAME, "name", "one line for people") */
#define SY_LINE_STATES(X)                                                                                              \
	X(FREE, "free", "nothing there")                                                                               \
	X(BUSY, "busy", "being written or taken: absent for readers")                                                  \
	X(NEW, "new", "published for the claimers' look only: absent for packets")                                     \
	X(SYN, "syn", "handshake under way")                                                                           \
	X(ESTABLISHED, "established", "handshake completed")                                                           \
	X(CLIENT_CLOSED, "client-closed", "half-closed: the client has sent FIN")                                      \
	X(BACKEND_CLOSED, "backend-closed", "half-closed: the backend has sent FIN")                                   \
	X(CLOSING, "closing", "both sides have sent FIN")                                                              \
	X(USED, "used", "return line: live if its mate is")                                                            \
	X(USED_ESTABLISHED, "used-established", "return line: a hint that the flow is established")                    \
	X(TIMEWAIT, "timewait", "return line: source port kept back for 60 s")

enum sy_line_state {
#define X(NAME, name, text) SY_##NAME,
	SY_LINE_STATES(X)
#undef X
	SY_N_LINE_STATES
};

struct sy_line {
	__u64 word;
	__be32 saddr; /* key: the packet's own 5-tuple */
	__be32 daddr;
	__be16 sport;
	__be16 dport;
	__u8 proto;
	__u8 zero[3];
	__be32 new_saddr; /* rewrite */
	__be32 new_daddr;
	__be16 new_sport;
	__be16 new_dport;
	__u32 mate; /* line index of the other half */
	__u32 seen; /* jiffies of the last packet of this direction, stored at most once a second */
	__u32 seq; /* TCP sequence of that packet; stored together with seen as one 64-bit word */
	__u32 backend;
	__u32 backend_gen;
	/* forward line: backend's ISN, {isn 32, set 1, id tag 31}; return line: next hop to the client, SY_NH */
	__u64 aux;
};

struct sy_group {
	struct sy_line line[SY_LINES_PER_GROUP];
};

#define SY_ISN_SET (1ULL << 32)
/* id: word >> SY_ID_SHIFT; the issuing CPU, in its high bits, is mixed in */
#define SY_ISN_TAG(id) ((((id) ^ ((id) >> 24)) & 0x7fffffffULL) << 33)

/* Next hop in one word, so that it is read and written whole: bytes 0..5 MAC in wire order, byte 6 interface slot
 * (0: none, look it up), byte 7 low bits of the epoch it was looked up in. */
#define SY_NH_SLOT(nh) ((__u32)((nh) >> 48) & 0xff)
#define SY_NH_EPOCH(nh) ((__u32)((nh) >> 56) & 0xff)

/* ---- sweep: one element, not memory-mapped (it holds the timer); written by the sweeper ---- */
struct sy_sweep {
	__u64 timer[2]; /* struct bpf_timer */
	__u32 cursor; /* next line to visit */
	__u32 last_beat; /* config.beat when last looked at */
	__u64 visits; /* timer ticks */
	__u64 rounds; /* whole passes over the table */
	__u64 jiffies; /* at the last tick ... */
	__u64 boottime_ns; /* ... and the same moment in CLOCK_BOOTTIME */
	__u32 last_visit; /* jiffies; the next round begins a second after it at the earliest */
	__u32 armed; /* times a program armed the timer */
	__u64 suspect_word; /* a BUSY or NEW line seen on an earlier round: freed if it is still the same 5 s later */
	__u32 suspect_index;
	__u32 suspect_since; /* jiffies */
};
#define SY_SWEEP_LINES 1024 /* a tick, a power of two as the next */
#define SY_SWEEP_LINES_PLAIN 256
#define SY_SWEEP_PERIOD_NS 1000000
#define SY_TIMEWAIT_S 60

/* ---- backends: memory-mapped; written by the agent, read by every packet ----
 * word: bits 63..32 generation, bits 15..8 enum sy_reason, bits 7..0 enum sy_state. One store evicts. */
#define SY_STATES(X)                                                                                                   \
	X(UP, "up", "takes new flows")                                                                                 \
	X(DRAINING, "draining", "no new flows, those it has go on")                                                    \
	X(EVICTED, "evicted", "no new flows, those it had are reset")

enum sy_state {
#define X(NAME, name, text) SY_##NAME,
	SY_STATES(X)
#undef X
	SY_N_STATES
};
#define SY_BACKEND_WORD(gen, state, reason) (((__u64)(gen) << 32) | ((__u64)(reason) << 8) | (state))
#define SY_WORD_GEN(w) ((__u32)((w) >> 32))
#define SY_WORD_STATE(w) ((__u32)(w) & 0xff)
#define SY_WORD_REASON(w) ((__u32)((w) >> 8) & 0xff)

struct sy_backend {
	__u64 word; /* the agent's word */
	__be32 addr[4]; /* IPv4 in addr[3], addr[2] = htonl(0xffff), the rest 0 */
	__be16 port;
	__u8 flags; /* SY_B_* */
	__u8 family; /* AF_INET or AF_INET6; 0: bad address, never reached */
	__u32 service;
	__u32 endpoint;
	__u32 pool; /* source addresses to use towards it */
	__u64 nh; /* next hop, SY_NH; valid while its epoch byte is config.epoch's */
	__u64 weight; /* IEEE 754 double as bits: the registry's weight */
	__u64 since_ns; /* CLOCK_REALTIME of the last change of state */
};
#define SY_B_LISTED 1 /* the registry lists it (else it is kept as gone) */
#define SY_B_MEMBER 2 /* it is in the published table */

/* loads: memory-mapped; written by the programs. Beside backends, since its lines bounce between CPUs. */
struct sy_load {
	__u64 active; /* flows established or half-closed, exact; id is given out again only at 0 */
	__u64 word; /* reserved: the program's own mark, in the shape of sy_backend.word */
	__u32 cursor; /* source port walk of last resort */
	__u32 fails; /* passive health, reserved: refusals or unanswered SYNs in a row */
	__u64 syns; /* reserved */
	__u64 synacks; /* reserved */
	__u64 refused; /* RST in answer to SYN */
	__u64 reserved[2];
};

/* endpoints: memory-mapped; address:port shared by the backends of several services */
struct sy_endpoint {
	__u32 agent; /* bits 15..8 reason, bits 7..0 state */
	__u32 program;
};

/* counters: memory-mapped, index = cpu * SY_MAX_BACKENDS + backend; each CPU writes its own */
struct sy_backend_count {
	__u64 packets; /* both directions */
	__u64 bytes; /* both directions, IP length */
	__u64 connections; /* picks that completed the handshake */
	__u64 picks; /* new flows */
};

/* ---- services: memory-mapped; written by the agent ----
 * table word: bits 19..0 region offset in units of 64 bytes, bits 35..20 number of members, bits 40..36 guide_bits, bits 63..41
 * version. guide_bits is the least with 2^guide_bits >= 2n, so that a pick needs one look at the guide and mostly one bound.
 * Region: struct sy_member member[n], __u16 guide[(1 << guide_bits) + 1]. guide[b] is the first member whose bound is
 * >= b << (32 - guide_bits). The pick for r is the first member whose bound is >= r. */
#define SY_TABLE_BYTES (16U << 20)
#define SY_TABLE_WORDS (SY_TABLE_BYTES / 4)
#define SY_REGION_ALIGN 64
#define SY_TABLE_OFF(w) ((__u32)(w) & 0xfffff)
#define SY_TABLE_LEN(w) ((__u32)((w) >> 20) & 0xffff)
#define SY_TABLE_BITS(w) ((__u32)((w) >> 36) & 0x1f)
#define SY_TABLE_VER(w) ((__u32)((w) >> 41))
#define SY_GUIDE_BITS(n) ((n) ? 32U - (__u32)__builtin_clz(2U * (__u32)(n) - 1U) : 0U)
#define SY_TABLE_WORD(off, len, ver)                                                                                   \
	((__u64)(off) | ((__u64)(len) << 20) | ((__u64)SY_GUIDE_BITS(len) << 36) | ((__u64)(ver) << 41))

struct sy_member {
	__u32 bound;
	__u32 backend;
};

struct sy_table_area {
	__u32 w[SY_TABLE_WORDS];
};

enum sy_mode { SY_MODE_FULL_NAT = 0 };
enum sy_algorithm { SY_ALG_WEIGHTED_RANDOM = 0 };
enum sy_on_empty { SY_EMPTY_RESET = 0, SY_EMPTY_DROP, SY_EMPTY_PASS };
enum sy_source { SY_SOURCE_NONE = 0, SY_SOURCE_LIVE, SY_SOURCE_DISK, SY_SOURCE_HELD };
enum sy_timeout { SY_T_SYN = 0, SY_T_ESTABLISHED, SY_T_HALF_CLOSED, SY_T_CLOSING, SY_T_RESET, SY_N_TIMEOUTS };

struct sy_service {
	__u64 table; /* table word: the one switch */
	__u8 used; /* 1: this id is a service */
	__u8 mode;
	__u8 algorithm;
	__u8 on_empty;
	__u32 timeout[SY_N_TIMEOUTS]; /* jiffies */
	__u64 generation; /* publications so far */
	__u64 total_weight; /* double as bits: sum of the members' weights */
	__u64 since_ns; /* CLOCK_REALTIME of the last change of content or source */
	__u32 source; /* enum sy_source */
	__u32 n_backends; /* listed */
	__u64 gone_connections; /* of backends whose ids were given back */
	__u64 gone_packets;
	__u64 gone_bytes;
	__u64 apply_ns; /* last change: from event received to map written */
	__u64 reserved[4];
};

/* service_info, backend_info: hash by id, text for people; written by the agent */
#define SY_NAME_LEN 512
struct sy_service_info {
	char registry[64];
	char ns[128]; /* namespace, "" for a file registry */
	char group[128];
	char name[SY_NAME_LEN];
};
struct sy_backend_info {
	char address[64]; /* ADDR:PORT as printed; as listed when it is a bad address */
	char cluster[64];
};

/* listeners4: hash */
struct sy_listener_key {
	__be32 addr;
	__be16 port;
	__u8 proto;
	__u8 zero;
};
struct sy_listener {
	__u32 service;
	__u32 flags;
};
/* vips4: hash by __be32 listener address: the gate for what is not ours; value is the number of listeners on it */

/* ---- source addresses: memory-mapped; written by the agent ---- */
struct sy_pool {
	__u32 n_addrs;
	__u32 n_ports;
	__be32 addr[SY_MAX_POOL_ADDRS];
	__u16 port[SY_MAX_POOL_PORTS]; /* host order, the n_ports that may be given out, ascending */
	__u64 member[SY_MAX_POOL_PORTS / 64]; /* the same as a bitmap by port */
};

/* ---- interfaces: memory-mapped; written by the agent; index is the slot: one of (ifindex + 0..3) & 255 but 0, so that
 * programs find it by ifindex with at most four looks ---- */
struct sy_iface {
	__u8 mac[6]; /* with flags one aligned word, which programs read whole */
	__u16 flags; /* SY_IF_* */
	__u32 ifindex; /* 0: slot is free */
	__u32 mtu;
	__u32 reserved[2]; /* array elements are a multiple of 8 bytes apart */
};
#define SY_IF_XDP_XMIT 1 /* a frame can be sent out of it from XDP */
#define SY_IF_REDIRECT 2 /* XDP_TX is not to be used there (veth): redirect instead */

/* nh_cache: per-CPU array, direct-mapped by destination address; written by the programs */
struct sy_nh {
	__be32 daddr; /* 0: empty */
	__u32 epoch;
	__u32 stamp; /* jiffies */
	__u32 ifindex;
	__u8 dmac[6];
	__u8 smac[6];
	__u32 flags; /* SY_IF_* of the interface, SY_NH_RESOLVED */
};
#define SY_NH_RESOLVED 0x100 /* dmac is known (else only TC can send: it has the kernel resolve it) */

/* ---- config: one element, memory-mapped ---- */
struct sy_config {
	__u32 layout; /* SY_LAYOUT_VERSION */
	__u32 n_groups; /* of the flow table, a power of two */
	__u32 hz; /* jiffies a second */
	__u32 n_cpus; /* possible CPUs */
	__u32 secret[8]; /* flow hash; made once, kept over adoption since it places the lines */
	__u32 flows; /* capacity in connections, as configured */
	__u32 epoch; /* raised by the agent when routes, neighbours or links change */
	__u32 beat; /* raised by the agent several times a second */
	__u32 beat_jiffies; /* when the sweeper last saw beat change */
	__u32 default_timeout[SY_N_TIMEOUTS]; /* jiffies; for flows whose backend is gone */
	__u32 min_timeout; /* jiffies: least of all services', so that the sweeper can skip fresh lines early */
};

/* cpu_state: per-CPU array of one */
struct sy_cpu {
	__u64 ids; /* flow ids given out by this CPU */
	__u32 port_walk;
	__u32 event_stamp; /* jiffies of the last event */
};

/* verdicts, counts: per-CPU arrays of __u64, by enum sy_verdict and enum sy_counter */

/* events: ring buffer */
struct sy_event {
	__u64 boottime_ns;
	__u32 kind; /* enum sy_event_kind */
	__u32 service;
	__u32 backend;
	__be32 client;
};

/* ---- load-time constants, in the skeleton's rodata ---- */
struct sy_const {
	__u32 group_mask; /* number of groups - 1 */
	__u32 hz;
	__u32 n_cpus;
	__u32 have_loop; /* the kernel has bpf_loop */
	__u32 secret[8];
};

/* Faults put in on purpose and delays at the race points, for the stress test of the flow table: 0 in a loaded agent, so the
 * verifier removes them. */
struct sy_test {
	__u32 mutant; /* enum sy_mutant */
	__u32 delay;
};
enum sy_mutant {
	MUTANT_NONE = 0,
	MUTANT_NO_SECOND_LOOK,
	MUTANT_LIVE_BEFORE_LOOK, /* the forward line is live before its second look, and withdrawn by a plain store */
	MUTANT_LATE_MATE, /* the return line's mate is written after the forward line is live */
};

#define SY_ASSERT_SIZE(T, n) _Static_assert(sizeof(struct T) == (n), #T)
SY_ASSERT_SIZE(sy_line, 64);
SY_ASSERT_SIZE(sy_group, 256);
SY_ASSERT_SIZE(sy_backend, 64);
SY_ASSERT_SIZE(sy_load, 64);
SY_ASSERT_SIZE(sy_backend_count, 32);
SY_ASSERT_SIZE(sy_service, 128);
SY_ASSERT_SIZE(sy_nh, 32);
SY_ASSERT_SIZE(sy_iface, 24);
