# SPDX-License-Identifier: MIT
"""Fixtures: a running server for a whole file. The measured delays are printed after the tests."""
import os
import shutil
import sys

import pytest

sys.path.insert(0, os.path.dirname(__file__))

from realm import DELAYS, Realm  # noqa: E402


@pytest.fixture(scope="module", params=["2.5.0", "3.1.0"])
def realm(request):
    if os.geteuid() != 0:
        pytest.skip("root is needed for network namespaces")
    for program in ("javac", "mvn", "curl"):
        if not shutil.which(program):
            pytest.skip(f"{program} is needed for a real Nacos server: tools/install-packages nacos")
    realm = Realm(request.param, f"syn{os.getpid()}-{request.param[0]}")
    try:
        realm.up()
        yield realm
    finally:
        realm.close()


def pytest_terminal_summary(terminalreporter):
    terminalreporter.section("publisher's call to what is seen here (the server itself waits 500 ms before it pushes)")
    for line in DELAYS:
        terminalreporter.write_line(line)
