/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "agent/config.h"
#include "base/clock.h"

/* the least that is right, on three lines, for texts to be put behind */
#define HEAD "interfaces: [{name: eth0}]\nregistries: [{name: lab, kind: file, path: /d}]\n"
#define ONE  "services:\n  - name: a\n    listen: [\"10.0.0.1:80\"]\n"

static char folder[] = "/tmp/steelyard-config-XXXXXX";

static int set_up(void **state)
{
	(void)state;
	/* errors begin with the name that was given: a relative one keeps expectations short */
	return mkdtemp(folder) && !chdir(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	(void)unlink("c");
	return chdir("/") || rmdir(folder);
}

static int load(const char *text, struct config **ret, char **ret_errors)
{
	FILE *f = fopen("c", "we");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
	return config_load("c", ret, ret_errors);
}

static void expect_errors(const char *text, const char *expected)
{
	struct config *c = NULL;
	char *errors = NULL;

	assert_int_equal(load(text, &c, &errors), -EINVAL);
	assert_null(c);
	assert_non_null(errors);
	assert_string_equal(errors, expected);
	free(errors);
}

static struct config *expect_config(const char *text)
{
	struct config *c = NULL;
	char *errors = NULL;
	int r = load(text, &c, &errors);

	if (r)
		print_error("%s\n", errors ? errors : strerror(-r));
	assert_int_equal(r, 0);
	assert_null(errors);
	return c;
}

struct error_case {
	const char *name, *text, *errors;
};

static const struct error_case schema_cases[] = {
	{"an unknown key is told with the nearest known one", "interfases: []\n",
	 "c:1: interfases: unknown key, did you mean \"interfaces\"? allowed: interfaces, registries, snat_addresses, "
	 "snat_ports, state_dir, pin_dir, control_socket, log, flows, defaults, services, http_listen, seed, policies"},
	{"an unknown key that is like none is told with those allowed", HEAD "log: {colour: red}\n",
	 "c:3: log.colour: unknown key, allowed: level, format"},
	{"an unknown key of a service has its place and line", HEAD ONE "    timeouts:\n      sin: 1s\n",
	 "c:7: services[0].timeouts.sin: unknown key, did you mean \"syn\"? allowed: syn, established, half_closed, "
	 "closing, "
	 "reset"},
	{"the first schema error stands alone, whatever else is wrong", HEAD "seed: x\nflows: 1\nlog: [1]\nlag: 2\n",
	 "c:5: log: a list is of the wrong type, allowed: keys with values"},
	{"a key given twice is refused", HEAD "flows: 1000\nflows: 1000\n",
	 "c:4: flows: key given twice, first on line 3, allowed: once"},
	{"a text where a list belongs is refused", HEAD "services: none\n",
	 "c:3: services: \"none\" is of the wrong type, allowed: a list of entries with keys"},
	{"a list where a value belongs is refused", HEAD "pin_dir: [/a]\n",
	 "c:3: pin_dir: a list is of the wrong type, allowed: one value"},
	{"keys where a list belongs are refused", HEAD "snat_addresses: {a: b}\n",
	 "c:3: snat_addresses: keys with values are of the wrong type, allowed: a list of values"},
	{"an entry that has no keys is refused", "interfaces: [eth0]\n",
	 "c:1: interfaces[0]: \"eth0\" is of the wrong type, allowed: keys with values"},
	{"a list inside a list of values is refused", HEAD "services: [{name: a, listen: [[x]]}]\n",
	 "c:3: services[0].listen[0]: a list is of the wrong type, allowed: one value"},
	{"a number that is none is refused", HEAD "flows: many\n",
	 "c:3: flows: \"many\" is of the wrong type, allowed: a whole number"},
	{"a document that is no mapping is refused", "- a\n",
	 "c:1: a list is of the wrong type, allowed: keys with values"},
	{"a text that is not YAML is refused with its line", HEAD "log: {level: info\nflows: 7\n",
	 "c:4: not valid YAML: did not find expected ',' or '}'"},
	{"a second document is refused", HEAD "---\nflows: 1000\n", "c:4: a second YAML document, allowed: one"},
	{"a text with a NUL in it is refused, not cut there",
	 HEAD "services: [{name: \"a\\0b\", listen: [\"10.0.0.1:80\"]}]\n",
	 "c:3: a NUL character in a text, allowed: printable text"},
	{"control characters cannot break the line of an error", "\"a\\nb\": 1\n",
	 "c:1: a?b: unknown key, allowed: interfaces, registries, snat_addresses, snat_ports, state_dir, pin_dir, "
	 "control_socket, log, flows, defaults, services, http_listen, seed, policies"},
};

#define LATER "is not supported yet by this version, allowed: "

static const struct error_case semantic_cases[] = {
	{"an empty file lacks interfaces and registries", "",
	 "c: interfaces: missing, allowed: at least one entry with a name\n"
	 "c: registries: missing, allowed: at least one entry with a name and a kind"},
	{"all semantic errors come at once, by line",
	 HEAD "flows: 1\nservices:\n  - name: a\n    listen: [\"x\"]\n    mode: y\n",
	 "c:3: flows: 1 is out of range, allowed: 128 to 4194304\n"
	 "c:6: services[0].listen[0]: \"x\" is not a listener, allowed: ADDR:PORT or ADDR:PORT/tcp, port 1 to 65535\n"
	 "c:7: services[0].mode: \"y\" is not known, allowed: full-nat"},
	{"keys whose feature does not work yet are refused by name",
	 HEAD ONE
	 "    port: 80\n    slow_start: 0s\n    check: {kind: tcp}\n    passive: {fall: 3}\n    allow: [\"::/0\"]\n"
	 "http_listen: \"\"\nseed: \"0x1\"\npolicies: []\n",
	 "c:6: services[0].port: port " LATER "leave it out\n"
	 "c:7: services[0].slow_start: slow_start " LATER "leave it out\n"
	 "c:8: services[0].check: check " LATER "leave it out\n"
	 "c:9: services[0].passive: passive " LATER "leave it out\n"
	 "c:10: services[0].allow: allow " LATER "leave it out\n"
	 "c:11: http_listen: http_listen " LATER "leave it out\n"
	 "c:12: seed: seed " LATER "leave it out\n"
	 "c:13: policies: policies " LATER "leave it out"},
	{"values whose feature does not work yet are refused by name",
	 "interfaces: [{name: eth0, attach: generic}]\n"
	 "registries: [{name: m, kind: nacos, servers: [\"h:1\"], api: http}]\n"
	 "defaults: {mode: dsr}\n" ONE "    algorithm: custom:mine\n",
	 "c:1: interfaces[0].attach: \"generic\" " LATER "auto, native, tc\n"
	 "c:2: registries[0].api: \"http\" " LATER "auto, grpc\n"
	 "c:3: defaults.mode: \"dsr\" " LATER "full-nat\n"
	 "c:7: services[0].algorithm: \"custom:mine\" " LATER "weighted-random"},
	{"a Nacos registry's login and TLS are refused by name",
	 "interfaces: [{name: eth0}]\nregistries:\n  - name: m\n    kind: nacos\n    servers: [\"h:1\"]\n    username: "
	 "u\n"
	 "    password_file: /p\n    tls: {ca: /c}\n    context_path: /n\n",
	 "c:6: registries[0].username: username " LATER "leave it out\n"
	 "c:7: registries[0].password_file: password_file " LATER "leave it out\n"
	 "c:8: registries[0].tls: tls " LATER "leave it out\n"
	 "c:9: registries[0].context_path: context_path " LATER "leave it out"},
	{"IPv6 and UDP listeners are refused by name",
	 HEAD "services: [{name: a, listen: [\"[fd00::1]:80\", \"10.0.0.1:80/udp\"]}]\n",
	 "c:3: services[0].listen[0]: [fd00::1]:80: IPv6 " LATER "IPv4\n"
	 "c:3: services[0].listen[1]: 10.0.0.1:80/udp: /udp is not supported yet by this version, allowed: /tcp"},
	{"listeners that nobody can reach are refused",
	 HEAD "services: [{name: a, listen: [\"127.0.0.1:80\", \"10.0.0.1:0\", \"10.0.0.1:70000\", \"10.0.0.1\", "
	      "\"10.0.0.1:1/x\"]}]\n",
	 "c:3: services[0].listen[0]: 127.0.0.1:80 cannot be reached by clients, allowed: a unicast address that is "
	 "not "
	 "loopback\n"
	 "c:3: services[0].listen[1]: \"10.0.0.1:0\" is not a listener, allowed: ADDR:PORT or ADDR:PORT/tcp, port 1 to "
	 "65535\n"
	 "c:3: services[0].listen[2]: \"10.0.0.1:70000\" is not a listener, allowed: ADDR:PORT or ADDR:PORT/tcp, port "
	 "1 to "
	 "65535\n"
	 "c:3: services[0].listen[3]: \"10.0.0.1\" is not a listener, allowed: ADDR:PORT or ADDR:PORT/tcp, port 1 to "
	 "65535\n"
	 "c:3: services[0].listen[4]: \"10.0.0.1:1/x\" is not a listener, allowed: ADDR:PORT or ADDR:PORT/tcp, port 1 "
	 "to "
	 "65535"},
	{"one listener of two services is refused, however it is written",
	 HEAD ONE "  - name: b\n    listen: [\"10.0.0.1:80/tcp\"]\n",
	 "c:7: services[1].listen[0]: 10.0.0.1:80 is given twice, first at services[0].listen[0], allowed: once"},
	{"names that must differ and do not are refused",
	 "interfaces: [{name: e}, {name: e}]\nregistries:\n - {name: r, kind: file, path: a}\n - {name: r, kind: file, "
	 "path: b}\n"
	 "services: [{name: a, listen: [\"10.0.0.1:1\"]}, {name: a, listen: [\"10.0.0.1:2\"]}]\n"
	 "snat_addresses: [\"10.0.0.9\", \"10.0.0.9\"]\n",
	 "c:1: interfaces[1].name: e is given twice, first at interfaces[0].name, allowed: once\n"
	 "c:4: registries[1].name: r is given twice, first at registries[0].name, allowed: once\n"
	 "c:5: services[1].name: r/DEFAULT_GROUP@@a is given twice, first at services[0].name, allowed: once\n"
	 "c:6: snat_addresses[1]: 10.0.0.9 is given twice, first at snat_addresses[0], allowed: once"},
	{"what a service needs is missed by name", HEAD "services: [{group: g}, {name: , listen: []}]\n",
	 "c:3: services[0].name: missing, allowed: the service's name in the registry\n"
	 "c:3: services[0].listen: missing, allowed: at least one ADDR:PORT\n"
	 "c:3: services[1].name: missing, allowed: the service's name in the registry\n"
	 "c:3: services[1].listen: missing, allowed: at least one ADDR:PORT"},
	{"an unknown registry is told with those there are", HEAD ONE "    registry: main\n",
	 "c:6: services[0].registry: no registry is named \"main\", allowed: lab"},
	{"what a registry needs by its kind is missed by name",
	 "interfaces: [{name: e}]\nregistries:\n  - {name: a, kind: nacos, path: /x}\n  - {name: b, kind: file, "
	 "servers: [h]}\n"
	 "  - {name: c/d, kind: etcd}\n  - {}\n",
	 "c:3: registries[0].servers: missing, allowed: at least one HOST:PORT\n"
	 "c:3: registries[0].path: path means nothing here, allowed: only with kind file\n"
	 "c:4: registries[1].path: missing, allowed: the folder of the *.json files\n"
	 "c:4: registries[1].servers: servers means nothing here, allowed: only with kind nacos\n"
	 "c:5: registries[2].name: \"c/d\" has a blank, / or @ in it, allowed: other characters\n"
	 "c:5: registries[2].kind: \"etcd\" is not known, allowed: nacos, file\n"
	 "c:6: registries[3].name: missing, allowed: a name for services to refer to\n"
	 "c:6: registries[3].kind: missing, allowed: nacos, file"},
	{"wrong words are told with the right ones",
	 "interfaces: [{name: e, attach: xdp, foreign_xdp: go}]\nregistries: [{name: a, kind: file, path: /x}]\n"
	 "log: {level: loud, format: xml}\ndefaults: {on_empty: no, cluster_fallback: some, on_evict: {registry: "
	 "cut}}\n",
	 "c:1: interfaces[0].attach: \"xdp\" is not known, allowed: auto, native, tc\n"
	 "c:1: interfaces[0].foreign_xdp: \"go\" is not known, allowed: tc, stop\n"
	 "c:3: log.level: \"loud\" is not known, allowed: debug, info, warning, error\n"
	 "c:3: log.format: \"xml\" is not known, allowed: text, json\n"
	 "c:4: defaults.on_empty: \"no\" is not known, allowed: reset, drop, pass\n"
	 "c:4: defaults.cluster_fallback: \"some\" is not known, allowed: all, none\n"
	 "c:4: defaults.on_evict.registry: \"cut\" is not known, allowed: drain, reset"},
	{"wrong durations are told with what is right",
	 HEAD "defaults:\n  hold_empty: 5\n  drain_deadline: soon\n  timeouts: {syn: 100ms, closing: 1000h}\n",
	 "c:4: defaults.hold_empty: \"5\" is not a duration, allowed: a number with a unit, such as 250ms, 15s, 2h4m\n"
	 "c:5: defaults.drain_deadline: \"soon\" is not a duration, allowed: a number with a unit, such as 250ms, 15s, "
	 "2h4m\n"
	 "c:6: defaults.timeouts.syn: 100ms is out of range, allowed: 1s to 168h\n"
	 "c:6: defaults.timeouts.closing: 1000h is out of range, allowed: 1s to 168h"},
	{"wrong addresses, ports and paths are told with what is right",
	 HEAD "snat_addresses: [x, \"fd00::1\", 224.0.0.1]\nsnat_ports: 2000-1000\nflows: 99999999\npin_dir: here\n",
	 "c:3: snat_addresses[0]: \"x\" is not an address, allowed: IPv4 such as 10.0.0.100\n"
	 "c:3: snat_addresses[1]: fd00::1: IPv6 " LATER "IPv4\n"
	 "c:3: snat_addresses[2]: 224.0.0.1 cannot be used on a network, allowed: a unicast address that is not "
	 "loopback\n"
	 "c:4: snat_ports: \"2000-1000\" is not a range of ports, allowed: FIRST-LAST within 1-65535\n"
	 "c:5: flows: 99999999 is out of range, allowed: 128 to 4194304\n"
	 "c:6: pin_dir: \"here\" is not an absolute path, allowed: one that begins with /"},
	{"names too long for the maps are refused",
	 HEAD "services: [{name: a@@b, group: "
	      "ggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggg"
	      "ggggggggggggggggggggggggggggggggggggggggggggggggggg, listen: [\"10.0.0.1:1\"]}]\n",
	 "c:3: services[0].group: 134 bytes are too long, allowed: up to 127\n"
	 "c:3: services[0].name: \"a@@b\" has @@ in it, allowed: the name alone, with group: beside it"},
	{"a group that would read as another service is refused",
	 HEAD "services: [{name: c, group: a@@b, listen: [\"10.0.0.1:1\"]}]\n",
	 "c:3: services[0].group: \"a@@b\" has @@ in it, allowed: the group alone, with name: beside it"},
};

/* Every row is tried, so that one broken message does not hide the next. */
static void run_cases(const struct error_case *cases, size_t n)
{
	size_t n_wrong = 0;

	for (size_t i = 0; i < n; i++) {
		struct config *c = NULL;
		char *errors = NULL;
		int r = load(cases[i].text, &c, &errors);

		if (r != -EINVAL || !errors || strcmp(errors, cases[i].errors)) {
			print_error("%s:\n  wanted: %s\n  got:    %s\n", cases[i].name, cases[i].errors,
				    errors ? errors : "no error");
			n_wrong++;
		}
		config_free(c);
		free(errors);
	}
	assert_int_equal(n_wrong, 0);
}

static void the_first_schema_error_is_told_alone(void **state)
{
	(void)state;
	run_cases(schema_cases, sizeof(schema_cases) / sizeof(*schema_cases));
}

static void all_semantic_errors_are_told_at_once(void **state)
{
	(void)state;
	run_cases(semantic_cases, sizeof(semantic_cases) / sizeof(*semantic_cases));
}

static void a_file_that_cannot_be_read_says_so(void **state)
{
	struct config *c = NULL;
	char *errors = NULL;

	(void)state;
	assert_int_equal(config_load("none", &c, &errors), -ENOENT);
	assert_string_equal(errors, "none: cannot be read: No such file or directory");
	free(errors);
}

static void what_is_left_out_has_the_documented_defaults(void **state)
{
	struct config *c = expect_config(HEAD ONE);
	const struct config_service *s = &c->services[0];

	(void)state;
	assert_int_equal(c->interfaces[0].attach, CONFIG_ATTACH_AUTO);
	assert_int_equal(c->interfaces[0].foreign_xdp, CONFIG_FOREIGN_TC);
	assert_int_equal(c->flows, 262144);
	assert_int_equal(c->n_snat_addresses, 0);
	assert_int_equal(c->snat_port_first, 0);
	assert_int_equal(c->snat_port_last, 0);
	assert_string_equal(c->state_dir, "/var/lib/steelyard");
	assert_string_equal(c->pin_dir, "/sys/fs/bpf/steelyard");
	assert_string_equal(c->control_socket, "/run/steelyard/control.sock");
	assert_int_equal(c->log_level, LOG_LEVEL_INFO);
	assert_false(c->log_json);
	assert_string_equal(s->group, "DEFAULT_GROUP");
	assert_int_equal(s->registry, 0);
	assert_int_equal(s->mode, SY_MODE_FULL_NAT);
	assert_int_equal(s->algorithm, SY_ALG_WEIGHTED_RANDOM);
	assert_null(s->cluster);
	assert_true(s->cluster_fallback_all);
	assert_false(s->on_evict_registry_reset);
	assert_true(s->on_evict_probe_reset);
	assert_int_equal(s->drain_deadline_ns, 0);
	assert_int_equal(s->on_empty, SY_EMPTY_RESET);
	assert_int_equal(s->hold_ns, 15 * NS_PER_S);
	assert_int_equal(s->timeout_ns[SY_T_SYN], 60 * NS_PER_S);
	assert_int_equal(s->timeout_ns[SY_T_ESTABLISHED], 7440 * NS_PER_S);
	assert_int_equal(s->timeout_ns[SY_T_HALF_CLOSED], 300 * NS_PER_S);
	assert_int_equal(s->timeout_ns[SY_T_CLOSING], 30 * NS_PER_S);
	assert_int_equal(s->timeout_ns[SY_T_RESET], 10 * NS_PER_S);
	config_free(c);
}

static void every_working_key_arrives(void **state)
{
	struct config *c = expect_config(
		"interfaces: [{name: a, attach: native, foreign_xdp: stop}, {name: b, attach: tc}]\n"
		"registries:\n  - {name: m, kind: nacos, api: grpc, servers: [\"h:8848\", \"10.0.0.1:1/grpc=2\"], "
		"namespace: n}\n"
		"  - {name: f, kind: file, path: /d}\n"
		"snat_addresses: [10.0.0.7]\nsnat_ports: 2000-3000\nstate_dir: /s\npin_dir: /p\ncontrol_socket: /c\n"
		"log: {level: debug, format: json}\nflows: 4096\n"
		"services:\n  - name: x\n    group: g\n    registry: f\n    listen: [\"10.0.0.1:80\", "
		"\"10.0.0.1:81/tcp\"]\n"
		"    cluster: BJ\n    cluster_fallback: none\n    on_evict: {registry: reset, probe: drain}\n"
		"    drain_deadline: 1m\n    on_empty: drop\n    hold_empty: 0s\n"
		"    timeouts: {syn: 1s, established: 2s, half_closed: 3s, closing: 4s, reset: 5s}\n");
	const struct config_service *s = &c->services[0];

	(void)state;
	assert_int_equal(c->interfaces[0].attach, CONFIG_ATTACH_NATIVE);
	assert_int_equal(c->interfaces[0].foreign_xdp, CONFIG_FOREIGN_STOP);
	assert_int_equal(c->interfaces[1].attach, CONFIG_ATTACH_TC);
	assert_int_equal(c->registries[0].n_servers, 2);
	assert_string_equal(c->registries[0].servers[0].host, "h");
	assert_int_equal(c->registries[0].servers[0].grpc_port, 9848);
	assert_int_equal(c->registries[0].servers[1].grpc_port, 2);
	assert_string_equal(c->registries[0].ns, "n");
	assert_string_equal(c->registries[1].path, "/d");
	assert_int_equal(c->n_snat_addresses, 1);
	assert_int_equal(c->snat_addresses[0].v4.s_addr, inet_addr("10.0.0.7"));
	assert_int_equal(c->snat_port_first, 2000);
	assert_int_equal(c->snat_port_last, 3000);
	assert_string_equal(c->control_socket, "/c");
	assert_int_equal(c->log_level, LOG_LEVEL_DEBUG);
	assert_true(c->log_json);
	assert_int_equal(c->flows, 4096);
	assert_string_equal(s->group, "g");
	assert_int_equal(s->registry, 1);
	assert_int_equal(s->n_listen, 2);
	assert_int_equal(s->listen[1].port, 81);
	assert_string_equal(s->cluster, "BJ");
	assert_false(s->cluster_fallback_all);
	assert_true(s->on_evict_registry_reset);
	assert_false(s->on_evict_probe_reset);
	assert_int_equal(s->drain_deadline_ns, 60 * NS_PER_S);
	assert_int_equal(s->on_empty, SY_EMPTY_DROP);
	assert_int_equal(s->hold_ns, 0);
	for (uint64_t i = 0; i < SY_N_TIMEOUTS; i++)
		assert_int_equal(s->timeout_ns[i], (i + 1) * NS_PER_S);
	config_free(c);
}

static void a_service_starts_from_the_defaults_and_overrides_them(void **state)
{
	struct config *c =
		expect_config(HEAD "defaults: {cluster: A, hold_empty: 1s, group: g, timeouts: {syn: 9s}}\n" ONE
				   "  - name: b\n    listen: [\"10.0.0.1:81\"]\n    cluster: \"\"\n    group: h\n"
				   "    timeouts: {reset: 3s}\n");

	(void)state;
	assert_string_equal(c->services[0].cluster, "A");
	assert_string_equal(c->services[0].group, "g");
	assert_int_equal(c->services[0].hold_ns, NS_PER_S);
	assert_null(c->services[1].cluster);
	assert_string_equal(c->services[1].group, "h");
	assert_int_equal(c->services[1].timeout_ns[SY_T_SYN], 9 * NS_PER_S);
	assert_int_equal(c->services[1].timeout_ns[SY_T_RESET], 3 * NS_PER_S);
	assert_int_equal(c->services[0].timeout_ns[SY_T_RESET], 10 * NS_PER_S);
	config_free(c);
}

static void one_name_in_two_groups_or_registries_is_two_services(void **state)
{
	struct config *c = expect_config(
		"interfaces: [{name: e}]\nregistries: [{name: r, kind: file, path: a}, {name: s, kind: file, path: "
		"b}]\n"
		"services: [{name: a, listen: [\"10.0.0.1:1\"]}, {name: a, group: g, listen: [\"10.0.0.1:2\"]},\n"
		"           {name: a, registry: s, listen: [\"10.0.0.1:3\"]}]\n");

	(void)state;
	assert_int_equal(c->n_services, 3);
	config_free(c);
}

static void no_services_is_a_configuration(void **state)
{
	struct config *c = expect_config(HEAD "services:\n");

	(void)state;
	assert_int_equal(c->n_services, 0);
	config_free(c);
}

static void all_services_that_the_maps_hold_are_read_and_no_more(void **state)
{
	enum { N = 16384 };
	size_t size = (size_t)N * 64 + 256, used;
	char *text = malloc(size);
	struct config *c;

	(void)state;
	assert_non_null(text);
	used = (size_t)snprintf(text, size, HEAD "services:\n");
	for (unsigned i = 0; i < N; i++)
		used += (size_t)snprintf(text + used, size - used, " - {name: s%u, listen: [\"10.0.%u.%u:80\"]}\n", i,
					 i >> 8, (i & 255));
	c = expect_config(text);
	assert_int_equal(c->n_services, N);
	config_free(c);
	(void)snprintf(text + used, size - used, " - {name: s7, listen: [\"10.0.1.1:80\"]}\n");
	expect_errors(text, "c:3: services: 16385 services are too many, allowed: up to 16384");
	free(text);
}

static int from_arguments(const struct config_arguments *a, struct config **ret, char **ret_errors)
{
	*ret = NULL;
	*ret_errors = NULL;
	return config_from_arguments(a, ret, ret_errors);
}

static void the_command_line_makes_the_same_configuration(void **state)
{
	const char *interfaces[] = {"eth0", "eth1"}, *services[] = {"orders=10.0.0.1:80", "g@@pay=10.0.0.1:81/tcp"};
	struct config_arguments a = {
		.interfaces = interfaces, .n_interfaces = 2, .nacos = "h:8848", .services = services, .n_services = 2};
	struct config *c;
	char *errors;

	(void)state;
	assert_int_equal(from_arguments(&a, &c, &errors), 0);
	assert_string_equal(c->interfaces[1].name, "eth1");
	assert_int_equal(c->registries[0].kind, CONFIG_REGISTRY_NACOS);
	assert_string_equal(c->registries[0].ns, "public");
	assert_string_equal(c->services[0].name, "orders");
	assert_string_equal(c->services[0].group, "DEFAULT_GROUP");
	assert_int_equal(c->services[0].hold_ns, 15 * NS_PER_S);
	assert_string_equal(c->services[1].name, "pay");
	assert_string_equal(c->services[1].group, "g");
	assert_int_equal(c->services[1].listen[0].port, 81);
	config_free(c);
	a.nacos = NULL;
	a.file = "services.d";
	assert_int_equal(from_arguments(&a, &c, &errors), 0);
	assert_int_equal(c->registries[0].kind, CONFIG_REGISTRY_FILE);
	assert_string_equal(c->registries[0].path, "services.d");
	config_free(c);
}

static void the_command_line_is_checked_like_a_file(void **state)
{
	const char *interfaces[] = {"a-name-that-is-too-long"}, *services[] = {"a=10.0.0.1:80", "b=10.0.0.1:80", "=1"};
	struct config_arguments a = {
		.interfaces = interfaces, .n_interfaces = 1, .file = "d", .services = services, .n_services = 3};
	struct config *c;
	char *errors;

	(void)state;
	assert_int_equal(from_arguments(&a, &c, &errors), -EINVAL);
	assert_string_equal(
		errors,
		"command line: interfaces[0].name: 23 bytes are too long, allowed: up to 15\n"
		"command line: services[2].name: empty, allowed: 1 to 511 bytes\n"
		"command line: services[2].listen[0]: \"1\" is not a listener, allowed: ADDR:PORT or ADDR:PORT/tcp, "
		"port 1 to 65535\n"
		"command line: services[1].listen[0]: 10.0.0.1:80 is given twice, first at services[0].listen[0], "
		"allowed: once");
	free(errors);
}

static void restart_only_keys_that_differ_are_named(void **state)
{
	struct config *a = expect_config(HEAD),
		      *b = expect_config(HEAD "flows: 1000\npin_dir: /p\nlog: {level: debug}\n");
	char names[128];

	(void)state;
	assert_int_equal(config_restart_only(a, b, names, sizeof(names)), -EPERM);
	assert_string_equal(names, "pin_dir, flows");
	assert_int_equal(config_restart_only(a, a, names, sizeof(names)), 0);
	assert_string_equal(names, "");
	config_free(a);
	config_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_schema_error_is_told_alone),
		cmocka_unit_test(all_semantic_errors_are_told_at_once),
		cmocka_unit_test(a_file_that_cannot_be_read_says_so),
		cmocka_unit_test(what_is_left_out_has_the_documented_defaults),
		cmocka_unit_test(every_working_key_arrives),
		cmocka_unit_test(a_service_starts_from_the_defaults_and_overrides_them),
		cmocka_unit_test(one_name_in_two_groups_or_registries_is_two_services),
		cmocka_unit_test(no_services_is_a_configuration),
		cmocka_unit_test(all_services_that_the_maps_hold_are_read_and_no_more),
		cmocka_unit_test(the_command_line_makes_the_same_configuration),
		cmocka_unit_test(the_command_line_is_checked_like_a_file),
		cmocka_unit_test(restart_only_keys_that_differ_are_named),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
