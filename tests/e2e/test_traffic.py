# SPDX-License-Identifier: MIT
"""Connections through the balancer: shares, bytes, ends, ports, and what is none of its business."""
import math
import select
import socket

import pytest

from lab import PORT, echo, finish_load, program_runs, program_statistics, read_line, wait_for

N = 2000
BULK = 100_000_000


def test_shares_follow_the_weights(any_lab, start_agent):
    agent = start_agent(any_lab, {"b1": 1, "b2": 2, "b3": 7})
    result = any_lab.drive("shares", f"{any_lab.vip}:80", N)
    assert result["errors"] == {} and result["answered"] == N
    for name, weight in {"b1": 1, "b2": 2, "b3": 7}.items():
        p = weight / 10
        assert abs(result["answers"][name] - N * p) <= 4 * math.sqrt(N * p * (1 - p)), result
    # every one of them is in the counters, under the backend that answered
    counted = {name: b["connections"] for name, b in agent.backends().items()}
    assert counted == result["answers"]
    wait_for("all connections have ended", lambda: agent.service()["active"] == 0)


def test_100_mb_arrive_intact_each_way_at_once(any_lab, start_agent):
    agent = start_agent(any_lab, {"b1": 1})
    before = agent.service()["bytes"]
    result = any_lab.drive("bulk", f"{any_lab.vip}:80", "both", BULK)
    assert result["ok"] and result["sent"] == result["received"] == BULK, result
    for where in ["client", "b1"]:
        assert any_lab.snmp(where, "Tcp", "InCsumErrors") == 0
        assert any_lab.snmp(where, "Ip", "InHdrErrors") == 0
    assert agent.service()["bytes"] - before > 2 * BULK


@pytest.mark.parametrize("way", ["up", "down"])
def test_100_mb_arrive_intact_one_way(lab, start_agent, way):
    start_agent(lab, {"b1": 1})
    result = lab.drive("bulk", f"{lab.vip}:80", way, BULK)
    assert result["ok"], result


@pytest.mark.parametrize("any_lab", ["native", "native-two-armed"], indirect=True)
def test_native_carries_the_packets_itself(any_lab, start_agent):
    start_agent(any_lab, {"b1": 1})
    with program_statistics():
        assert any_lab.drive("bulk", f"{any_lab.vip}:80", "both", 10_000_000)["ok"]
        programs = any_lab.attached().values()
        by_xdp, by_tc = (program_runs(i for p in programs for i in p[hook]) for hook in ["xdp", "tc"])
    assert by_xdp > 5000 and by_tc < by_xdp / 100


def test_a_half_closed_connection_keeps_flowing(lab, start_agent):
    agent = start_agent(lab, {"b1": 1})
    n = 20_000_000
    s, _ = lab.connect(lab.vip, 80, f"source {n} 7")
    s.shutdown(socket.SHUT_WR)
    wait_for("the flow is half-closed", lambda: [f["state"] for f in agent.flows()] == ["half-closed"])
    got = 0
    while chunk := s.recv(65536):
        got += len(chunk)
    assert got == n
    s.close()
    wait_for("no active connection is left", lambda: agent.service()["active"] == 0)


def test_the_backend_may_close_its_side_first(lab, start_agent):
    agent = start_agent(lab, {"b1": 1})
    s, _ = lab.connect(lab.vip, 80, "both 1000 1")
    assert len(s.recv(1000, socket.MSG_WAITALL)) == 1000
    wait_for("established", lambda: agent.service()["active"] == 1)
    s.shutdown(socket.SHUT_WR)
    assert read_line(s) == "b1 0 ok"
    assert s.recv(1) == b""
    s.close()
    wait_for("no active connection is left", lambda: agent.service()["active"] == 0)


def test_the_first_syn_survives_an_empty_neighbour_table(any_lab, start_agent):
    start_agent(any_lab, {"b1": 1})
    for _ in range(3):
        any_lab.flush_neighbours()
        before = any_lab.snmp("client", "Tcp", "RetransSegs")
        s, name = any_lab.connect(any_lab.vip, 80, "name")
        s.close()
        assert name == "b1"
        assert any_lab.snmp("client", "Tcp", "RetransSegs") == before


def test_source_ports_are_unique_and_all_granted_to_half_the_pool(lab, start_agent):
    first, last = 20000, 20399
    agent = start_agent(lab, {"b1": 1}, snat_ports=f"{first}-{last}")
    half = (last - first + 1) // 2
    load = lab.load(f"{lab.vip}:80", half, "-t", 60)
    flows = agent.flows("--limit", 1000)
    sources = {f["snat"] for f in flows}
    assert len(flows) == len(sources) == half
    assert all(s.rsplit(":")[0] == lab.snat and first <= int(s.rsplit(":")[1]) <= last for s in sources)
    assert agent.service()["active"] == half
    assert agent.verdicts()["ports-exhausted"] == 0
    result = finish_load(load)
    assert result["lost"] == result["stalled"] == result["corrupt"] == 0, result


def test_one_port_serves_two_backends_at_once(lab, start_agent):
    # 11 ports for 12 connections: one is shared for certain, and that all 12 picks are of one backend will not happen
    agent = start_agent(lab, {"b1": 1, "b2": 1, "b3": 1}, snat_ports="20000-20010")
    load = lab.load(f"{lab.vip}:80", 12, "-t", 60)
    flows = agent.flows()
    assert len(flows) == 12
    assert len({(f["backend"], f["snat"]) for f in flows}) == 12
    load.terminate()


def test_ports_used_up_is_a_refusal_not_silence(lab, start_agent):
    agent = start_agent(lab, {"b1": 1}, snat_ports="20000-20007")
    held = [lab.connect(lab.vip, 80, "echo")[0] for _ in range(8)]
    with pytest.raises(ConnectionRefusedError):
        lab.connect(lab.vip, 80)
    assert agent.verdicts()["ports-exhausted"] >= 1
    for s in held:
        echo(s)
        s.close()


def test_no_eligible_backend_is_a_refusal(lab, start_agent):
    agent = start_agent(lab, {"b1": 1})
    agent.weigh(b1=0)
    agent.wait_state("b1", "draining", "weight-0")
    with pytest.raises(ConnectionRefusedError):
        lab.connect(lab.vip, 80)
    assert agent.verdicts()["no-backend-reset"] == 1
    agent.weigh(b1=1)
    agent.wait_table(b1=1)
    lab.connect(lab.vip, 80, "name")[0].close()


def test_on_empty_drop_says_nothing_and_counts(lab, make_agent):
    agent = make_agent(lab, services={"web": {"listen": [f"{lab.vip}:80"], "on_empty": "drop"}})
    agent.weigh(b1=0)
    agent.start()
    agent.wait_state("b1", "draining", "weight-0")
    s = lab.socket()
    s.setblocking(False)
    s.connect_ex((lab.vip, 80))
    wait_for("the SYN is dropped", lambda: agent.verdicts()["no-backend-drop"] >= 1)
    assert s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
    s.close()


def test_a_flow_nobody_knows_is_reset(lab, start_agent):
    agent = start_agent(lab, {"b1": 1})
    s, _ = lab.connect(lab.vip, 80, "echo")
    agent.stop()
    agent.cli("detach")
    # the record is gone with the pins; a fresh start knows nothing of this connection
    agent.start()
    agent.wait_table(b1=1)
    before = agent.verdicts()["unknown-reset"]
    with pytest.raises(ConnectionResetError):
        s.sendall(b"anyone there?")
        s.recv(1)
    s.close()
    assert agent.verdicts()["unknown-reset"] > before


def test_what_is_not_ours_passes(any_lab, start_agent):
    lab = any_lab
    agent = start_agent(lab, {"b1": 1})
    server = lab.serve("lb", "host", 9000)
    before = agent.verdicts()["not-ours"]
    # a service of the balancer host itself, on its own address and on the listener's
    for address in [lab.balancer, lab.vip]:
        assert lab.drive("bulk", f"{address}:9000", "both", 10_000_000)["ok"]
    # a connection of the balancer host to the outside
    assert lab.drive("bulk", f"{lab.backends['b1']}:{PORT}", "both", 10_000_000, where="lb")["ok"]
    # traffic that it routes (two-armed) or that does not touch it (one-armed)
    assert lab.drive("bulk", f"{lab.backends['b2']}:{PORT}", "both", 10_000_000)["ok"]
    # UDP, to the very port that the listener has for TCP
    udp_server, udp_client = lab.socket("lb", socket.SOCK_DGRAM), lab.socket("client", socket.SOCK_DGRAM)
    udp_server.bind((lab.vip, 80))
    udp_client.connect((lab.vip, 80))
    udp_client.send(b"over udp")
    data, peer = udp_server.recvfrom(100)
    udp_server.sendto(data[::-1], peer)
    assert udp_client.recv(100) == b"pdu revo"
    assert agent.verdicts()["not-ours"] > before
    assert agent.flows() == []
    for s in [udp_server, udp_client]:
        s.close()
    server.kill()


def test_many_connections_at_once_stay_apart(lab, start_agent):
    start_agent(lab, {"b1": 1, "b2": 2, "b3": 7})
    steady = lab.load(f"{lab.vip}:80", 200, "-i", 5, "-t", 30)
    churn = lab.drive("load", f"{lab.vip}:80", 50, "-i", 1, "-x", 3, "-t", 3)
    for result in [churn, finish_load(steady)]:
        assert result["exchanges"] > 0
        assert result["lost"] == result["stalled"] == result["corrupt"] == 0, result
