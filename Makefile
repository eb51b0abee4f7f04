# Steelyard: one Makefile, not recursive. `make help` lists the targets.
CC ?= gcc
CLANG ?= clang
BPFTOOL ?= $(shell command -v bpftool || echo /usr/sbin/bpftool)
PKG_CONFIG ?= pkg-config
PREFIX ?= /usr/local
DESTDIR ?=
V ?= 0
WERROR ?= 1
FUZZ_SECONDS ?= 30
REGISTRY ?= file
B := build
Q := $(if $(filter 1,$(V)),,@)
say = $(if $(filter 1,$(V)),@true,@printf '  %-8s %s\n' "$(1)" "$(2)")

PACKAGES := libbpf libelf zlib libcjson libnghttp2 libprotobuf-c libevent yaml-0.1 libmnl libcap-ng libcurl
WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wundef -Wformat=2
WARN += $(if $(filter 1,$(WERROR)),-Werror)
CPPFLAGS += -D_GNU_SOURCE -Iinclude -Iuserspace -I$(B)/gen $(shell $(PKG_CONFIG) --cflags $(PACKAGES) 2>/dev/null)
CPPFLAGS += -DSY_VERSION='"$(shell cat VERSION)"'
CFLAGS ?= -O2 -g
CFLAGS += -std=gnu17 $(WARN) -fno-omit-frame-pointer
LDLIBS += $(shell $(PKG_CONFIG) --libs $(PACKAGES) 2>/dev/null) -lm
SAN := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined -std=gnu17 $(WARN) -fno-omit-frame-pointer

BPF_CFLAGS := -O2 -g -target bpf -mcpu=v3 -Wall -Wextra -Werror -Wno-unused-parameter -Iinclude -I/usr/include/$(shell uname -m)-linux-gnu
# maps first: libbpf 1.1's linker misplaces maps that an object names before the one that defines them
BPF_SRC := bpf/maps.bpf.c $(filter-out bpf/maps.bpf.c,$(wildcard bpf/*.bpf.c))
BPF_OBJ := $(BPF_SRC:bpf/%.bpf.c=$(B)/bpf/%.o)
SKEL := $(B)/gen/steelyard.skel.h

LIB_SRC := $(wildcard userspace/base/*.c userspace/net/*.c userspace/model/*.c userspace/registry/*.c userspace/policy/*.c \
	userspace/health/*.c userspace/dataplane/*.c userspace/control/*.c)
AGENT_SRC := $(wildcard userspace/agent/*.c)
CLI_SRC := $(wildcard userspace/cli/*.c)
PROTO := $(wildcard userspace/registry/*.proto)
PROTO_C := $(PROTO:userspace/registry/%.proto=$(B)/gen/%.pb-c.c)
GEN := $(SKEL) $(PROTO_C)

# everything but main files goes into the library, so that tests can reach the agent's and the CLI's parts too
LIB_OBJ := $(LIB_SRC:%.c=$(B)/obj/%.o) $(PROTO_C:$(B)/gen/%.c=$(B)/obj/gen/%.o) \
	$(patsubst %.c,$(B)/obj/%.o,$(filter-out %/main.c,$(AGENT_SRC) $(CLI_SRC)))
SAN_OBJ := $(LIB_OBJ:$(B)/obj/%=$(B)/san/%)

UNIT_SRC := $(wildcard tests/unit/*/test_*.c)
UNIT_BIN := $(UNIT_SRC:tests/unit/%.c=$(B)/unit/%)
BPFTEST_SRC := $(wildcard tests/bpf/test_*.c)
BPFTEST_BIN := $(BPFTEST_SRC:tests/bpf/%.c=$(B)/bpftest/%)
TESTLIB_SRC := $(wildcard tests/lib/*.c)
TESTLIB_OBJ := $(TESTLIB_SRC:%.c=$(B)/obj/%.o)
TOOL_SRC := $(wildcard tests/e2e/*.c)
TOOL_BIN := $(TOOL_SRC:tests/e2e/%.c=$(B)/e2e/%)
NACOS_SRC := $(wildcard tests/nacos/*.c)
NACOS_BIN := $(NACOS_SRC:tests/nacos/%.c=$(B)/nacos/%)
BENCH_SRC := $(wildcard tests/bench/bench_*.c)
BENCH_BIN := $(BENCH_SRC:tests/bench/%.c=$(B)/bench/%)
TESTBPF_SRC := $(wildcard tests/bpf/*.bpf.c tests/bench/*.bpf.c)
TESTBPF_SKEL := $(patsubst %.bpf.c,$(B)/gen/%.skel.h,$(notdir $(TESTBPF_SRC)))

.DEFAULT_GOAL := all
.PHONY: all help setup demo check check-unit check-bpf check-e2e check-nacos bench fuzz lint install deb clean tests
.SECONDARY:
.DELETE_ON_ERROR:

all: $(B)/steelyardd $(B)/steelyard ## build the agent and the CLI (needs no root)

help: ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## */\1\t/p' Makefile | awk -F'\t' '{printf "  make %-12s %s\n", $$1, $$2}'

setup: ## install the Debian packages that are missing (apt, as root)
	$(Q)tools/install-packages build

# ---- kernel side ----
$(B)/bpf/%.o: bpf/%.bpf.c
	$(call say,CLANG,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(BPF_CFLAGS) -MMD -MP -c $< -o $@

$(B)/steelyard.bpf.o: $(BPF_OBJ)
	$(call say,BPFLINK,$@)
	$(Q)$(BPFTOOL) gen object $@ $^

$(SKEL): $(B)/steelyard.bpf.o
	$(call say,SKEL,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(BPFTOOL) gen skeleton $< name steelyard_bpf > $@

# test-only programs: each object alone, or linked with ours when its name starts with a word that says so
$(B)/bpf/test/%.o: tests/bpf/%.bpf.c
	$(call say,CLANG,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(BPF_CFLAGS) -Ibpf -MMD -MP -c $< -o $@
$(B)/bpf/test/%.o: tests/bench/%.bpf.c
	$(call say,CLANG,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(BPF_CFLAGS) -Ibpf -MMD -MP -c $< -o $@
# with_NAME.bpf.c: calls into the product's own objects, so it is linked with them
$(B)/bpf/test/with_%.linked.o: $(BPF_OBJ) $(B)/bpf/test/with_%.o
	$(call say,BPFLINK,$@)
	$(Q)$(BPFTOOL) gen object $@ $^
$(filter $(B)/gen/with_%,$(TESTBPF_SKEL)): $(B)/gen/with_%.skel.h: $(B)/bpf/test/with_%.linked.o
	$(call say,SKEL,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(BPFTOOL) gen skeleton $< name with_$* > $@
$(filter-out $(B)/gen/with_%,$(TESTBPF_SKEL)): $(B)/gen/%.skel.h: $(B)/bpf/test/%.o
	$(call say,SKEL,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(BPFTOOL) gen skeleton $< name $* > $@

# ---- user space ----
$(B)/gen/%.pb-c.c: userspace/registry/%.proto
	$(call say,PROTOC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)protoc-c --proto_path=$(<D) --c_out=$(@D) $(<F)

$(B)/obj/gen/%.o: $(B)/gen/%.c
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -w -c $< -o $@
$(B)/san/gen/%.o: $(B)/gen/%.c
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(SAN) -w -c $< -o $@

$(B)/obj/%.o: %.c | $(GEN)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@
$(B)/san/%.o: %.c | $(GEN)
	$(call say,CC-SAN,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(SAN) -MMD -MP -c $< -o $@

$(B)/libsteelyard.a: $(LIB_OBJ)
	$(call say,AR,$@)
	$(Q)rm -f $@ && ar rcs $@ $^
$(B)/libsteelyard-san.a: $(SAN_OBJ)
	$(call say,AR,$@)
	$(Q)rm -f $@ && ar rcs $@ $^

$(B)/steelyardd: $(B)/obj/userspace/agent/main.o $(B)/libsteelyard.a
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)
$(B)/steelyard: $(B)/obj/userspace/cli/main.o $(B)/libsteelyard.a
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

# ---- tests ----
$(B)/unit/%: tests/unit/%.c $(B)/libsteelyard-san.a
	$(call say,UNIT,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) -Itests/lib -DTEST_DATA='"$(CURDIR)/tests/unit/data"' $(SAN) -MMD -MP -o $@ $< $(B)/libsteelyard-san.a -lcmocka $(LDLIBS)
$(B)/bpftest/%: tests/bpf/%.c $(TESTLIB_OBJ) $(B)/libsteelyard.a | $(TESTBPF_SKEL)
	$(call say,BPFTEST,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) -Itests/lib $(CFLAGS) -MMD -MP -o $@ $< $(TESTLIB_OBJ) $(B)/libsteelyard.a -lcmocka $(LDLIBS)
$(B)/bench/%: tests/bench/%.c $(TESTLIB_OBJ) $(B)/libsteelyard.a | $(TESTBPF_SKEL)
	$(call say,BENCH,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) -Itests/lib $(CFLAGS) -MMD -MP -o $@ $< $(TESTLIB_OBJ) $(B)/libsteelyard.a -lcmocka $(LDLIBS)
$(B)/nacos/%: tests/nacos/%.c $(B)/libsteelyard.a
	$(call say,NACOS,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -o $@ $< $(B)/libsteelyard.a $(LDLIBS)
$(B)/e2e/%: tests/e2e/%.c
	$(call say,E2E,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -D_GNU_SOURCE $(CFLAGS) -o $@ $<

tests: $(UNIT_BIN) $(BPFTEST_BIN) $(TOOL_BIN) $(NACOS_BIN) ## build the tests

demo: ## as root: the whole path in network namespaces, with real connections (REGISTRY=nacos: a real Nacos server)
	$(Q)tools/install-packages build $(if $(filter nacos,$(REGISTRY)),nacos)
	$(Q)$(MAKE) --no-print-directory all $(TOOL_BIN)
	$(Q)tools/demo $(REGISTRY)

check: ## as root: every test
	$(Q)tools/install-packages build test nacos
	$(Q)$(MAKE) --no-print-directory all tests
	$(Q)tools/check unit bpf e2e nacos
check-unit: ## pure C under ASan and UBSan
	$(Q)$(MAKE) --no-print-directory $(UNIT_BIN)
	$(Q)tools/check unit
check-bpf: ## BPF_PROG_TEST_RUN: packets in, packets out; the flow table under two CPUs (root)
	$(Q)$(MAKE) --no-print-directory all $(BPFTEST_BIN)
	$(Q)tools/check bpf
check-e2e: ## network namespaces with real sockets (root)
	$(Q)$(MAKE) --no-print-directory all $(TOOL_BIN)
	$(Q)tools/check e2e
check-nacos: ## a real Nacos server (root, Java, Maven)
	$(Q)$(MAKE) --no-print-directory all $(NACOS_BIN)
	$(Q)tools/check nacos
bench: ## as root: ns per packet and ratios to floor programs in the same run
	$(Q)$(MAKE) --no-print-directory all $(BENCH_BIN) $(TOOL_BIN)
	$(Q)tools/bench
lint: ## layers, sizes, style of the ABI header
	$(Q)tools/lint

install: all ## DESTDIR= PREFIX=
	install -D -m 755 $(B)/steelyardd $(DESTDIR)$(PREFIX)/sbin/steelyardd
	install -D -m 755 $(B)/steelyard $(DESTDIR)$(PREFIX)/bin/steelyard
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/man/man8 userspace/agent/steelyardd.8 userspace/cli/steelyard.8
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/man/man5 userspace/agent/steelyard.yaml.5
	install -D -m 644 tools/completion.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/steelyard

clean: ## remove build/
	rm -rf $(B)

-include $(shell find $(B) -name '*.d' 2>/dev/null)
