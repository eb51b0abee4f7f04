# SPDX-License-Identifier: MIT
"""A backend leaves: what its connections see, and what those of others do not."""
import errno
import select
import socket

import pytest

from agent import host
from lab import echo, wait_for

RESET = {"on_evict": {"registry": "reset"}}


def web(lab, **fields):
    return {"web": {"listen": [f"{lab.vip}:80"], **fields}}


def mark_b1(agent, **fields):
    """b1 with other fields, b2 as it was."""
    agent.list_hosts("web", host(agent.lab.backends["b1"], **fields), host(agent.lab.backends["b2"]))


def connect_to(lab, backend, verb, address=None):
    """A connection that was given to that backend; the others are closed again."""
    for _ in range(200):
        s, name = lab.connect(address or lab.vip, 80, verb)
        if name == backend:
            return s
        s.close()
    raise AssertionError(f"200 connections and none to {backend}")


def push_until_error(s):
    """An upload until the kernel reports its end; the error number."""
    s.setblocking(False)
    for _ in range(1000):
        _, writable, _ = select.select([], [s], [], 0.02)
        try:
            if writable:
                s.send(b"x" * 65536)
        except OSError as e:
            return e.errno
    return None


def pull_until_error(s):
    """A download until the kernel reports its end: the error number, 0 for a plain end, None for silence."""
    s.settimeout(20)
    try:
        while s.recv(1 << 20):
            pass
        return 0
    except socket.timeout:
        return None
    except OSError as e:
        return e.errno


@pytest.fixture(params=["registry", "operator"])
def evict_b1(request):
    """Both ways by which an established flow is to be reset."""

    def evict(agent):
        if request.param == "registry":
            mark_b1(agent, healthy=False)
            agent.wait_state("b1", "evicted", "unhealthy")
        else:
            assert agent.cli("evict", "web", agent.lab.address("b1"))["ok"] is True
            agent.wait_state("b1", "evicted", "operator")

    return evict


def test_an_upload_to_an_evicted_backend_gets_a_reset_its_kernel_accepts(any_lab, start_agent, evict_b1):
    agent = start_agent(any_lab, {"b1": 1, "b2": 1}, services=web(any_lab, **RESET))
    s = connect_to(any_lab, "b1", "sink 1")
    for _ in range(50):
        s.sendall(b"x" * 65536)
    evict_b1(agent)
    assert push_until_error(s) == errno.ECONNRESET
    s.close()
    verdicts = agent.verdicts()
    assert verdicts["evicted-client"] + verdicts["evicted-backend"] >= 1  # whoever spoke first
    wait_for("the flow no longer counts as active", lambda: agent.backends()["b1"]["active"] == 0)


def test_a_download_from_an_evicted_backend_gets_a_reset_on_both_sides(any_lab, start_agent, evict_b1):
    agent = start_agent(any_lab, {"b1": 1, "b2": 1}, services=web(any_lab, **RESET))
    s = connect_to(any_lab, "b1", "source 0 1")
    for _ in range(50):
        assert s.recv(65536)
    resets = any_lab.backend_stats("b1")["reset"]
    evict_b1(agent)
    assert pull_until_error(s) == errno.ECONNRESET
    s.close()
    wait_for("the backend's process sees it too", lambda: any_lab.backend_stats("b1")["reset"] > resets)


def test_an_idle_client_gets_a_reset_when_it_speaks(lab, start_agent, evict_b1):
    agent = start_agent(lab, {"b1": 1, "b2": 1}, services=web(lab, **RESET))
    s = connect_to(lab, "b1", "echo")
    echo(s)
    evict_b1(agent)
    with pytest.raises(ConnectionResetError):
        s.sendall(b"still there?")
        s.recv(1)
    s.close()
    # and the service goes on with the other one
    result = lab.drive("shares", f"{lab.vip}:80", 100)
    assert result["answers"] == {"b2": 100}, result


def test_an_unhealthy_backend_drains_by_default(lab, start_agent):
    agent = start_agent(lab, {"b1": 1, "b2": 1})
    s = connect_to(lab, "b1", "echo")
    mark_b1(agent, healthy=False)
    agent.wait_state("b1", "draining", "unhealthy")
    agent.wait_table(b2=1)
    result = lab.drive("shares", f"{lab.vip}:80", 200)
    assert result["answers"] == {"b2": 200}, result
    echo(s, b"z" * 30000)
    assert agent.backends()["b1"]["active"] == 1
    s.close()
    wait_for("the last flow has ended", lambda: agent.backends()["b1"]["active"] == 0)


@pytest.mark.parametrize("fields, reason", [({"weight": 0}, "weight-0"), ({"enabled": False}, "disabled")])
def test_an_instance_without_a_place_takes_nothing_and_keeps_what_it_has(lab, start_agent, fields, reason):
    agent = start_agent(lab, {"b1": 1, "b2": 1})
    s = connect_to(lab, "b1", "echo")
    mark_b1(agent, **fields)
    agent.wait_state("b1", "draining", reason)
    result = lab.drive("shares", f"{lab.vip}:80", 200)
    assert result["answers"] == {"b2": 200}, result
    echo(s)
    s.close()


def test_a_vanished_instance_drains_and_is_shown_as_gone(lab, start_agent):
    agent = start_agent(lab, {"b1": 1, "b2": 1})
    s = connect_to(lab, "b1", "echo")
    agent.weigh(b2=1)
    agent.wait_state("b1", "draining", "gone")
    assert lab.drive("shares", f"{lab.vip}:80", 100)["answers"] == {"b2": 100}
    echo(s)
    s.close()


def test_a_returning_instance_serves_again_and_old_flows_live_on(lab, start_agent):
    agent = start_agent(lab, {"b1": 1, "b2": 1})
    s = connect_to(lab, "b1", "echo")
    agent.weigh(b2=1)
    agent.wait_state("b1", "draining", "gone")
    agent.weigh(b1=3, b2=1)
    agent.wait_table(b1=3, b2=1)
    assert lab.drive("shares", f"{lab.vip}:80", 200)["answers"]["b1"] > 100
    echo(s)
    s.close()


def test_the_operator_drains_waits_and_enables(lab, start_agent):
    agent = start_agent(lab, {"b1": 1, "b2": 1})
    s = connect_to(lab, "b1", "echo")
    assert agent.cli("drain", "web", lab.address("b1"))["ok"] is True
    agent.wait_state("b1", "draining", "operator")
    assert lab.drive("shares", f"{lab.vip}:80", 100)["answers"] == {"b2": 100}
    # a registry push does not undo it
    agent.weigh(b1=5, b2=1)
    wait_for("the push has been seen", lambda: agent.backends()["b1"]["weight"] == 5)
    assert agent.backends()["b1"]["reason"] == "operator"
    echo(s)
    s.close()
    assert agent.cli("drain", "web", lab.address("b1"), "--wait")["ok"] is True
    assert agent.backends()["b1"]["active"] == 0
    assert agent.cli("enable", "web", lab.address("b1"))["ok"] is True
    agent.wait_table(b1=5, b2=1)
    assert "b1" in lab.drive("shares", f"{lab.vip}:80", 100)["answers"]


def test_eviction_from_one_service_leaves_the_other_alone(lab, start_agent):
    services = {**web(lab, **RESET), "api": {"listen": [f"{lab.vip2}:80"]}}
    agent = start_agent(lab, {"b1": 1, "b2": 1}, services=services)
    agent.weigh("api", b1=1)
    agent.wait_table("api", b1=1)
    mine, other = connect_to(lab, "b1", "echo"), connect_to(lab, "b1", "echo", lab.vip2)
    mark_b1(agent, healthy=False)
    agent.wait_state("b1", "evicted", "unhealthy")
    with pytest.raises(ConnectionResetError):
        mine.sendall(b"x")
        mine.recv(1)
    echo(other, b"y" * 10000)
    assert agent.backends("api")["b1"]["state"] == "up"
    assert lab.connect(lab.vip2, 80, "name")[1] == "b1"
    for s in [mine, other]:
        s.close()


def test_drain_deadline_resets_what_still_drains(lab, start_agent):
    agent = start_agent(lab, {"b1": 1, "b2": 1}, services=web(lab, drain_deadline="1s"))
    s = connect_to(lab, "b1", "echo")
    mark_b1(agent, healthy=False)
    agent.wait_state("b1", "evicted", "unhealthy")
    with pytest.raises(ConnectionResetError):
        s.sendall(b"x")
        s.recv(1)
    s.close()


def test_a_silent_draining_backend_does_not_hold_its_clients_for_ever(lab, start_agent):
    agent = start_agent(lab, {"b1": 1, "b2": 1})
    s = connect_to(lab, "b1", "sink 1")
    mark_b1(agent, healthy=False)
    agent.wait_state("b1", "draining", "unhealthy")
    lab.run("b1", "ip", "link", "set", "eth0", "down")
    try:
        s.settimeout(60)
        s.sendall(b"anyone?")
        # the kernel's retransmissions are the three packets in ten seconds that end it
        with pytest.raises(ConnectionResetError):
            s.recv(1)
        assert agent.verdicts()["silent-reset"] >= 1
    finally:
        s.close()
        lab.run("b1", "ip", "link", "set", "eth0", "up")
        lab.run("b1", "ip", "route", "replace", "default", "via", lab.balancer if lab.arms == 1 else "10.77.2.1")
