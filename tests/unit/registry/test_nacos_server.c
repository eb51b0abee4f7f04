// SPDX-License-Identifier: MIT
#include <errno.h>
#include "unit.h"
#include "registry/nacos.h"

static void taken(void **state)
{
	static const struct {
		const char *text, *host;
		uint16_t port, grpc_port;
	} rows[] = {
		{"10.0.0.5:8848", "10.0.0.5", 8848, 9848},
		{"10.0.0.5", "10.0.0.5", 8848, 9848},
		{"nacos-0.nacos.svc:80", "nacos-0.nacos.svc", 80, 1080},
		{"[fd00::1]:8849", "fd00::1", 8849, 9849},
		{"[fd00::1]", "fd00::1", 8848, 9848},
		{"a:8848/grpc=443", "a", 8848, 443},
		{"a/grpc=65535", "a", 8848, 65535},
		{"[::1]:1/grpc=2", "::1", 1, 2},
		{"a:64535", "a", 64535, 65535},
		{"a:65535/grpc=1", "a", 65535, 1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct nacos_server s = {0};
		const char *why = "";

		print_message("%s\n", rows[i].text);
		assert_int_equal(nacos_server_parse(rows[i].text, &s, &why), 0);
		assert_string_equal(s.host, rows[i].host);
		assert_int_equal(s.port, rows[i].port);
		assert_int_equal(s.grpc_port, rows[i].grpc_port);
		nacos_server_done(&s);
		assert_null(s.host);
	}
}

static void refused(void **state)
{
	static const char *const rows[] = {
		"",
		":8848",
		"a:",
		"a:0",
		"a:65536",
		"a:-1",
		"a:80x",
		"a:8848/nacos",
		"a/",
		"http://a:80",
		"fd00::1",
		"fd00::1:80",
		"[fd00::1",
		"[]",
		"[1.2.3.4]:8",
		"[::1]8848",
		"[::1]x:1",
		"a b",
		"-a",
		".a",
		"a:64536",
		"a/grpc=",
		"a/grpc=0",
		"a/grpc=70000",
		"a/http=1",
		"a:1:2",
		"a:99999999999999999999",
		"[fe80::1%eth0]:80",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct nacos_server s = {.port = 7};
		const char *why = NULL;

		print_message("\"%s\"\n", rows[i]);
		assert_int_equal(nacos_server_parse(rows[i], &s, &why), -EINVAL);
		assert_true(why && *why);
		assert_null(s.host);
		assert_int_equal(s.port, 7);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE("a server is a host with or without port, brackets and gRPC port", taken),
		CASE("what is not a server is refused with a reason and leaves the output alone", refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
