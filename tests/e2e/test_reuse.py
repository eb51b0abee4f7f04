# SPDX-License-Identifier: MIT
"""Ports and addresses come back: at the client, at the backend, and in the flow table."""
import socket

import pytest

from lab import TCP_QUEUE_SEQ, TCP_REPAIR, TCP_REPAIR_QUEUE, echo, forget, wait_for

CLIENT_PORT = 34567


def abort(s):
    """Closes by RST, so that the client keeps no TIME_WAIT."""
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    s.close()


def test_the_same_client_port_comes_back_after_its_reset(lab, start_agent):
    start_agent(lab, {"b1": 1})
    for _ in range(30):
        s, _ = lab.connect(lab.vip, 80, "echo", source_port=CLIENT_PORT)
        echo(s)
        abort(s)


def test_the_same_client_port_comes_back_against_time_wait_at_the_backend(lab, start_agent):
    agent = start_agent(lab, {"b1": 1})
    for _ in range(30):
        # the backend closes first, so TIME_WAIT is there and the client's port is free at once
        s, name = lab.connect(lab.vip, 80, "bye", source_port=CLIENT_PORT)
        assert name == "b1" and s.recv(1) == b""
        s.close()
    assert agent.service()["connections"] == 30


def test_a_pool_of_ports_in_time_wait_still_serves(lab, start_agent):
    services = {"web": {"listen": [f"{lab.vip}:80"], "timeouts": {"closing": "1s"}}}
    agent = start_agent(lab, {"b1": 1}, snat_ports="20000-20015", services=services)
    for _ in range(3):
        # each round finds every port kept back by the one before, and TIME_WAIT at the backend
        result = lab.drive("shares", f"{lab.vip}:80", 16, "-c", 1, "-v", "bye", "-t", 60)
        assert result["answered"] == 16 and result["errors"] == {}, result
        wait_for("the flows have ended", lambda: agent.flows() == [] or None)
    assert agent.verdicts()["ports-exhausted"] == 0


def test_closed_flows_give_up_their_ports_when_there_is_no_other(lab, start_agent):
    agent = start_agent(lab, {"b1": 1}, snat_ports="20000-20015")
    for verb in ["name", "bye"]:
        result = lab.drive("shares", f"{lab.vip}:80", 64, "-c", 1, "-v", verb, "-t", 60)
        assert result["answered"] == 64 and result["errors"] == {}, result
    assert agent.verdicts()["ports-exhausted"] == 0


def test_a_client_that_forgot_its_connection_gets_a_new_one_on_the_same_port(lab, start_agent):
    agent = start_agent(lab, {"b1": 1})
    s, _ = lab.connect(lab.vip, 80, "echo", source_port=CLIENT_PORT)
    forget(s)
    assert [f["state"] for f in agent.flows()] == ["established"]
    # SYN on an established flow: the backend's challenge ACK, the client's RST, and then a new handshake
    s, _ = lab.connect(lab.vip, 80, "echo", source_port=CLIENT_PORT, timeout=30)
    echo(s)
    s.close()


def test_a_port_moves_from_an_evicted_backend_to_a_live_one(lab, start_agent):
    agent = start_agent(lab, {"b1": 1}, services={"web": {"listen": [f"{lab.vip}:80"], "on_evict": {"registry": "reset"}}})
    s, name = lab.connect(lab.vip, 80, "echo", source_port=CLIENT_PORT)
    assert name == "b1"
    forget(s)
    agent.list_hosts("web", {"ip": lab.backends["b1"], "port": 8080, "healthy": False}, {"ip": lab.backends["b2"], "port": 8080})
    agent.wait_state("b1", "evicted", "unhealthy")
    agent.wait_table(b2=1)
    s, name = lab.connect(lab.vip, 80, "echo", source_port=CLIENT_PORT, timeout=30)
    assert name == "b2"
    echo(s)
    s.close()


def test_one_client_port_to_two_listeners_with_one_backend_stays_apart(lab, start_agent):
    services = {"web": {"listen": [f"{lab.vip}:80"]}, "api": {"listen": [f"{lab.vip2}:80"]}}
    agent = start_agent(lab, {"b1": 1}, services=services)
    agent.weigh("api", b1=1)
    agent.wait_table("api", b1=1)
    a, _ = lab.connect(lab.vip, 80, "echo", source_port=CLIENT_PORT)
    b, _ = lab.connect(lab.vip2, 80, "echo", source_port=CLIENT_PORT)
    assert len({f["snat"] for f in agent.flows()}) == 2
    for text in [b"first", b"second"]:
        echo(a, text * 100)
        echo(b, text * 90)
    a.close()
    b.close()


def test_a_packet_of_no_known_flow_is_reset(any_lab, start_agent):
    lab = any_lab
    agent = start_agent(lab, {"b1": 1})
    before = agent.verdicts()["unknown-reset"]
    s = lab.socket()
    # a connection that exists at the client alone: no handshake ever crossed the balancer
    s.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, 1)
    for queue, seq in [(2, 1000001), (1, 2000001)]:
        s.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR_QUEUE, queue)
        s.setsockopt(socket.IPPROTO_TCP, TCP_QUEUE_SEQ, seq)
    s.connect((lab.vip, 80))
    s.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, 0)
    with pytest.raises(ConnectionResetError):
        s.sendall(b"hello")
        s.recv(1)
    s.close()
    assert agent.verdicts()["unknown-reset"] > before
    assert agent.flows() == []


def test_a_refusing_backend_is_a_refusal_for_the_client_and_counted(lab, make_agent):
    agent = make_agent(lab)
    agent.list_hosts("web", {"ip": lab.backends["b1"], "port": 8099})
    agent.start()
    wait_for("the table is there", lambda: agent.shares())
    for _ in range(5):
        with pytest.raises(ConnectionRefusedError):
            lab.connect(lab.vip, 80)
    (backend,) = agent.backends().values()
    assert backend["refused"] == 5 and backend["connections"] == 0 and backend["active"] == 0
