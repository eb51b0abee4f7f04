# SPDX-License-Identifier: MIT
"""What an outside checker holds against the contract: odd inputs, bad neighbours, and numbers that must agree."""
import json
import os
import signal
import socket
import subprocess
import time

import pytest

from agent import host
from lab import BUILD, wait_for


@pytest.fixture(scope="module")
def lab(machine_lab):
    return machine_lab


@pytest.fixture
def agent(lab, start_agent):
    return start_agent(lab, {"b1": 1, "b2": 1}, services={"web": {"listen": [f"{lab.vip}:80"], "hold_empty": "0s"}})


def test_a_flow_that_was_reset_is_established_no_more(agent, lab):
    s, name = lab.connect(lab.vip, 80, "echo")
    assert agent.cli("status")["flows"]["established"] == agent.service()["active"] == 1
    assert agent.cli("evict", "web", lab.address(name))["ok"] is True
    with pytest.raises(ConnectionError):
        s.sendall(b"x")
        s.recv(1)
    wait_for("shown as reset", lambda: [f["state"] for f in agent.flows()] == ["reset"])
    assert agent.cli("status")["flows"]["established"] == agent.service()["active"] == 0
    s.close()


def test_instances_without_a_path_are_warned_of_and_used_once_there_is_one(agent, lab):
    far = [host(f"10.78.0.{i}") for i in range(1, 4)]
    agent.list_hosts("web", *far)
    wait_for("no path", lambda: {b["reason"] for b in agent.cli("backends") if b["address"].startswith("10.78.")} == {"no-path"})
    assert agent.service()["eligible"] == 0 and agent.shares() == {}
    warnings = "\n".join(agent.cli("status")["warnings"])
    assert "no eligible backend" in warnings and "towards 3 instances" in warnings
    assert "no eligible backend among 3 listed" in agent.log()
    lab.run("lb", "ip", "route", "add", "10.78.0.0/24", "via", lab.backends["b1"])
    try:
        wait_for("used", lambda: len(agent.shares()) == 3)
        assert agent.service()["eligible"] == 3
        assert agent.cli("status")["warnings"] == []
    finally:
        lab.run("lb", "ip", "route", "del", "10.78.0.0/24")


def test_a_file_deleted_while_the_agent_was_down_is_gone_at_its_start(agent):
    agent.kill()
    agent.service_path().unlink()
    agent.start()
    agent.wait_table()
    agent.wait_state("b1", "draining", "gone")


def test_signals_during_the_start_are_acted_on_when_it_is_done(lab, make_agent):
    agent = make_agent(lab)
    agent.weigh(b1=1)
    for pause in (0.05, 0.1, 0.2, 0.4):  # anywhere between start and readiness; none of them may end it
        agent.process = agent.launch()
        wait_for("its first steps", lambda: (agent.folder / "state").exists())
        time.sleep(pause)
        agent.process.send_signal(signal.SIGHUP)
        wait_for("it runs", agent.is_up)
        assert agent.stop() == 0


def test_what_else_lies_in_the_folder_costs_only_itself(lab, make_agent):
    agent = make_agent(lab)
    folder = agent.registry
    os.mkfifo(folder / "0-pipe.json")
    (folder / "1-folder.json").mkdir()
    (folder / "2-dangling.json").symlink_to("/nonexistent")
    (folder / "3-loop.json").symlink_to("3-loop.json")
    (folder / "4-zero.json").symlink_to("/dev/zero")
    (folder / "5-\n\x1bname.json").write_text("{")
    (folder / "6-other").write_text(agent.service_text("web", host(lab.backends["b3"])))
    (folder / ".7-hidden.json").write_text(agent.service_text("web", host(lab.backends["b3"])))
    agent.weigh(b1=1)
    agent.start()
    agent.wait_table(b1=1)
    assert [r["state"] for r in agent.cli("status")["registries"]] == ["live"]
    assert "\x1b" not in agent.log()


def test_a_swapped_folder_behind_a_link_is_noticed(agent):
    """As Kubernetes changes a mounted ConfigMap."""
    folder = agent.registry
    for n in (7, 8):
        (folder / f"..{n}").mkdir()
        (folder / f"..{n}" / "web.json").write_text(agent.service_text("web", host(agent.lab.backends["b2"], n)))
        (folder / "..new").symlink_to(f"..{n}")
        (folder / "..new").rename(folder / "..data")
        if n == 7:
            (folder / ".link").symlink_to("..data/web.json")
            (folder / ".link").rename(agent.service_path())
        agent.wait_table(b2=n)


def test_clients_of_the_control_socket_that_say_nothing_hold_up_nobody(agent):
    idle = []
    try:
        for _ in range(64):
            s = socket.socket(socket.AF_UNIX)
            s.connect(str(agent.control))
            s.sendall(b"GET /api/sta")
            idle.append(s)
        assert "agent" not in agent.cli("status")
    finally:
        for s in idle:
            s.close()


def test_a_log_that_nobody_reads_does_not_hold_up_the_agent(lab, make_agent):
    agent = make_agent(lab)
    agent.weigh(b1=1)
    agent.process = lab.popen("lb", BUILD / "steelyardd", "--config", agent.config_path, stderr=subprocess.PIPE)
    agent.wait_table(b1=1)
    for n in range(1, 1200):
        agent.weigh(b1=n, b2=1)
        if n % 100 == 0:
            agent.wait_table(b1=n, b2=1)
    agent.process.stderr.close()
    agent.weigh(b1=5)
    agent.wait_table(b1=5)


def test_a_service_of_one_name_in_two_registries_is_two(agent, lab):
    second = agent.folder / "second.d"
    second.mkdir()
    (second / "web.json").write_text(agent.service_text("web", host(lab.backends["b3"], 4)))
    agent.config["registries"].append({"name": "second", "kind": "file", "path": str(second)})
    agent.config["services"].append({"name": "web", "registry": "second", "listen": [f"{lab.vip2}:80"]})
    agent.write_config()
    assert agent.cli("reload")["ok"] is True
    full = "second/DEFAULT_GROUP@@web"
    agent.wait_table(full, b3=4)
    assert lab.connect(lab.vip2, 80, "name")[1] == "b3"
    assert {s["service"] for s in agent.cli("services")} == {full, "lab/DEFAULT_GROUP@@web"}
    ambiguous = agent.cli_run("--json", "table", "web")
    assert ambiguous.returncode == 1 and "more than one" in json.loads(ambiguous.stdout)["error"]
    assert agent.shares("lab/DEFAULT_GROUP@@web") == {"b1": 1, "b2": 1}
