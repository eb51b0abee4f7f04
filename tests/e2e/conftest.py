# SPDX-License-Identifier: MIT
"""Fixtures: a lab per hook (and number of arms) for a whole file, an agent per test."""
import itertools
import os
import subprocess
import sys

import pytest

sys.path.insert(0, os.path.dirname(__file__))

from agent import Agent  # noqa: E402
from lab import BPFFS, PREFIX, Lab, clean_after_crashes  # noqa: E402

HOOKS = ["tc", "native"]
serial = itertools.count(1)  # labs of one run may overlap


@pytest.fixture(scope="session", autouse=True)
def machine():
    if os.geteuid() != 0:
        pytest.skip("root is needed for network namespaces")
    if subprocess.run(["mountpoint", "-q", BPFFS]).returncode:
        subprocess.run(["mount", "-t", "bpf", "bpf", BPFFS], check=True)
    clean_after_crashes()


def made_lab(hook, arms):
    lab = Lab(f"{PREFIX}{os.getpid()}-{next(serial)}", arms=arms, xdp=hook == "native")
    try:
        lab.hook = hook
        lab.serve_all()
        yield lab
    finally:
        lab.close()


@pytest.fixture(scope="module", params=HOOKS)
def lab(request, machine):
    """One arm: clients and backends behind one interface of the balancer."""
    yield from made_lab(request.param, 1)


@pytest.fixture(scope="module", params=[*HOOKS, *(f"{h}-two-armed" for h in HOOKS)])
def any_lab(request, machine):
    """Also two arms: clients behind one interface, backends behind another."""
    hook, _, two = request.param.partition("-")
    yield from made_lab(hook, 2 if two else 1)


@pytest.fixture(scope="module")
def machine_lab(machine):
    """For what does not depend on the hook."""
    yield from made_lab("tc", 1)


@pytest.fixture
def make_agent(tmp_path):
    """make_agent(lab, …): configured, not started; ended and detached after the test, its log shown if that failed."""
    made = []

    def make(lab, **config):
        agent = Agent(lab, lab.hook, tmp_path, **config)
        made.append(agent)
        return agent

    yield make
    for agent in made:
        agent.close()
        print(f"---- log of the agent\n{agent.log()[-6000:]}")


@pytest.fixture
def start_agent(make_agent):
    """start_agent(lab, {"b1": 1, …}, …): running, with those weights in the table of the service web."""

    def start(lab, weights, **config):
        agent = make_agent(lab, **config)
        agent.weigh(**weights)
        agent.start()
        agent.wait_table(**weights)
        return agent

    return start
