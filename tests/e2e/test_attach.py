# SPDX-License-Identifier: MIT
"""Where the programs go, and what others have there already."""
import contextlib

import pytest

from lab import BPFFS, pin_pass_program, wait_for


@contextlib.contextmanager
def foreign_xdp(lab):
    """Someone else's XDP program on the balancer's eth0, one that passes everything."""
    pin = BPFFS / f"{lab.name}-foreign"
    pin_pass_program(pin)
    try:
        lab.run("lb", "ip", "link", "set", "dev", "eth0", "xdpdrv", "pinned", pin)
        yield lab.attached()["eth0"]["xdp"]
    finally:
        lab.run("lb", "ip", "link", "set", "dev", "eth0", "xdpdrv", "off")
        pin.unlink()


def test_auto_on_veth_is_tc_alone(machine_lab, start_agent):
    agent = start_agent(machine_lab, {"b1": 1})
    agent.config["interfaces"] = [{"name": "eth0"}]
    agent.write_config()
    assert agent.stop() == 0
    agent.start()
    found = machine_lab.attached()["eth0"]
    assert len(found["tc"]) == 1 and found["xdp"] == []
    assert machine_lab.connect(machine_lab.vip, 80, "name")[1] == "b1"


def test_a_foreign_xdp_program_stays_and_tc_serves(machine_lab, make_agent):
    lab = machine_lab
    with foreign_xdp(lab) as theirs:
        agent = make_agent(lab)
        agent.config["interfaces"] = [{"name": "eth0", "attach": "native"}]
        agent.write_config()
        agent.weigh(b1=1)
        agent.start()
        agent.wait_table(b1=1)
        assert lab.attached()["eth0"]["xdp"] == theirs
        assert "another XDP program" in agent.log()
        assert lab.drive("bulk", f"{lab.vip}:80", "both", 5_000_000)["ok"]
        agent.stop()
        agent.cli("detach")
        assert lab.attached() == {"eth0": {"tc": [], "xdp": theirs}}


def test_a_foreign_xdp_program_stops_the_agent_when_so_configured(machine_lab, make_agent):
    with foreign_xdp(machine_lab) as theirs:
        agent = make_agent(machine_lab)
        agent.config["interfaces"] = [{"name": "eth0", "attach": "native", "foreign_xdp": "stop"}]
        agent.write_config()
        agent.process = agent.launch()
        assert agent.process.wait(20) == 1
        assert "another XDP program" in agent.log()
        assert machine_lab.attached() == {"eth0": {"tc": [], "xdp": theirs}}


def test_filters_of_others_stay_where_they_are(lab, start_agent):
    pin = BPFFS / f"{lab.name}-filter"
    pin_pass_program(pin, kind="tc")
    lab.run("lb", "tc", "qdisc", "add", "dev", "eth0", "clsact")
    try:
        lab.run("lb", "tc", "filter", "add", "dev", "eth0", "ingress", "prio", "7", "bpf", "da", "pinned", pin)
        agent = start_agent(lab, {"b1": 1})
        assert lab.connect(lab.vip, 80, "name")[1] == "b1"
        agent.stop()
        agent.cli("detach")
        assert "pref 7" in lab.run("lb", "tc", "filter", "show", "dev", "eth0", "ingress")
    finally:
        lab.run("lb", "tc", "qdisc", "del", "dev", "eth0", "clsact")
        pin.unlink()


@pytest.mark.parametrize("any_lab", ["tc-two-armed", "native-two-armed"], indirect=True)
@pytest.mark.parametrize("stop_first", [False, True])
def test_an_interface_is_taken_out_of_the_configuration(any_lab, start_agent, stop_first):
    agent = start_agent(any_lab, {"b1": 1})
    assert set(any_lab.attached()) == {"eth0", "eth1"}
    del agent.config["interfaces"][1]
    agent.write_config()
    if stop_first:
        agent.stop()
        agent.start()
    else:
        assert agent.cli("reload")["ok"] is True
    wait_for("eth1 is left", lambda: set(any_lab.attached()) == {"eth0"})


def test_preflight_names_what_is_missing_and_the_remedy(machine_lab, make_agent):
    lab = machine_lab
    agent = make_agent(lab)
    lab.run("lb", "sysctl", "-qw", "net.ipv4.conf.eth0.forwarding=0")
    try:
        p = agent.cli_run("--json", "preflight", "eth0")
        report = agent.cli("preflight", "eth0", check=False)
        assert report["ok"] is False and p.returncode == 1
        failed = [c for c in report["checks"] if not c["ok"]]
        assert any(c["check"] == "forwarding" and "sysctl" in c["remedy"] for c in failed)
    finally:
        lab.run("lb", "sysctl", "-qw", "net.ipv4.conf.eth0.forwarding=1")
    assert agent.cli("preflight", "eth0")["ok"] is True
    assert agent.cli("preflight", "no-such0", check=False)["ok"] is False
