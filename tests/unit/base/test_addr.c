// SPDX-License-Identifier: MIT
#include "unit.h"
#include "base/addr.h"
#include <errno.h>

static const struct endpoint nothing = {.port = 4242};

static void good_endpoints(void **state)
{
	static const char *const cases[][2] = {
		{"10.0.0.1:80", "10.0.0.1:80"},
		{"255.255.255.255:65535", "255.255.255.255:65535"},
		{"10.0.0.1:00080", "10.0.0.1:80"},
		{"[fd00::1]:80", "[fd00::1]:80"},
		{"[FD00:0::0001]:1", "[fd00::1]:1"},
		{"[::]:443", "[::]:443"},
		{"[2001:db8:1111:2222:3333:4444:5555:6666]:65535", "[2001:db8:1111:2222:3333:4444:5555:6666]:65535"},
		{"[::ffff:10.0.0.1]:80", "10.0.0.1:80"}, /* one address, one identity */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct endpoint e = nothing;
		char buf[ADDR_TEXT_LEN];

		assert_int_equal(endpoint_parse(cases[i][0], &e), 0);
		assert_string_equal(endpoint_format(&e, buf), cases[i][1]);
	}
}

static void bad_endpoints(void **state)
{
	static const char *const cases[] = {
		"",
		":",
		"10.0.0.1",
		"10.0.0.1:",
		"10.0.0.1:0",
		"10.0.0.1:65536",
		"10.0.0.1:-1",
		"10.0.0.1:+80",
		"10.0.0.1: 80",
		"10.0.0.1:80 ",
		"10.0.0.1:80x",
		"10.0.0.1:000080",
		":80",
		"10.0.0:80",
		"10.0.0.256:80",
		"10.0.0.01:80",
		"0x0a.0.0.1:80",
		"167772161:80",
		"host:80",
		"fd00::1:80",
		"[fd00::1]",
		"[fd00::1]80",
		"[fd00::1:80",
		"fd00::1]:80",
		"[fe80::1%lo]:1",
		"[10.0.0.1]:80",
		"[]:80",
		"[[fd00::1]]:80",
		"10.0.0.1:80:80",
		"[fd00::1]:80.5",
		"[0000000000000000000000000000000000000000000000000000000000000000000001]:80",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct endpoint e = nothing;

		if (endpoint_parse(cases[i], &e) != -EINVAL)
			fail_msg("\"%s\" was taken", cases[i]);
		assert_memory_equal(&e, &nothing, sizeof(e));
	}
}

static void addresses(void **state)
{
	static const char *const good[][2] = {{"10.0.0.1", "10.0.0.1"},
					      {"fd00::1", "fd00::1"},
					      {"[fd00::1]", "fd00::1"},
					      {"::ffff:10.0.0.1", "10.0.0.1"}};
	static const char *const bad[] = {
		"", "[", "]", "[]", "10.0.0.1 ", "1.2.3", "fd00::1%eth0", "svc.example", "[10.0.0.1]"};
	struct addr a = {0};
	char buf[ADDR_TEXT_LEN];

	(void)state;
	assert_string_equal(addr_format(&a, buf), "none");
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(addr_parse(good[i][0], &a), 0);
		assert_string_equal(addr_format(&a, buf), good[i][1]);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(addr_parse(bad[i], &a), -EINVAL);
	assert_string_equal(addr_format(&a, buf), "10.0.0.1");
}

static void order(void **state)
{
	static const char *const ascending[] = {"9.255.255.255:65535", "10.0.0.1:80", "10.0.0.1:443", "10.0.0.1:40000",
						"10.0.0.2:1",	       "200.0.0.1:1", "[::1]:80",     "[fd00::1]:1",
						"[fd00::1]:2",	       "[fd00::2]:1"};
	size_t n = sizeof(ascending) / sizeof(ascending[0]);

	(void)state;
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < n; j++) {
			struct endpoint a, b;
			int r;

			assert_int_equal(endpoint_parse(ascending[i], &a), 0);
			assert_int_equal(endpoint_parse(ascending[j], &b), 0);
			r = endpoint_compare(&a, &b);
			assert_true(i < j ? r < 0 : i > j ? r > 0 : r == 0);
		}
}

static void usable(void **state)
{
	static const struct {
		const char *text;
		bool usable;
	} cases[] = {
		{"10.0.0.1", true},
		{"1.0.0.0", true},
		{"126.255.255.255", true},
		{"128.0.0.1", true},
		{"169.254.1.1", true},
		{"223.255.255.255", true},
		{"0.0.0.0", false},
		{"0.1.2.3", false},
		{"127.0.0.1", false},
		{"127.255.255.255", false},
		{"224.0.0.0", false},
		{"239.1.1.1", false},
		{"240.0.0.1", false},
		{"255.255.255.255", false},
		{"fd00::1", true},
		{"2001:db8::1", true},
		{"::", false},
		{"::1", false},
		{"ff02::1", false},
		{"fe80::1", false},
		{"febf::1", false},
		{"fec0::1", true},
	};
	const struct addr none = {0};

	(void)state;
	assert_false(addr_is_usable(&none));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct addr a;

		assert_int_equal(addr_parse(cases[i].text, &a), 0);
		if (addr_is_usable(&a) != cases[i].usable)
			fail_msg("%s", cases[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE("addresses with ports are read and printed in one form", good_endpoints),
		CASE("anything else is refused and leaves the output untouched", bad_endpoints),
		CASE("addresses alone are read with and without brackets", addresses),
		CASE("IPv4 is before IPv6, then by bytes, then by port as a number", order),
		CASE("what no backend can have is not usable", usable),
	};

	return cmocka_run_group_tests_name("addr", tests, NULL, NULL);
}
