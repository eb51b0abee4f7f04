# SPDX-License-Identifier: MIT
"""Fixtures: a running server for a whole file."""
import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(__file__))

from realm import Realm  # noqa: E402


@pytest.fixture(scope="module", params=["2.5.0", "3.1.0"])
def realm(request):
    if os.geteuid() != 0:
        pytest.skip("root is needed for network namespaces")
    realm = Realm(request.param, f"syn{os.getpid()}-{request.param[0]}")
    try:
        realm.up()
        yield realm
    finally:
        realm.close()
