# SPDX-License-Identifier: MIT
"""The CLI's JSON, key by key as the contract has it; and what it does when there is no agent."""
import json
import re

import pytest

from agent import host
from lab import ROOT, wait_for

N = (int, float)


@pytest.fixture(scope="module")
def lab(machine_lab):
    return machine_lab


@pytest.fixture
def agent(lab, start_agent):
    agent = start_agent(lab, {"b1": 1, "b2": 2, "b3": 7})
    lab.drive("shares", f"{lab.vip}:80", 100)
    return agent


def shape(value, **keys):
    """The object has exactly these keys (more may be added), of these types or with these values."""
    for key, want in keys.items():
        assert key in value, f"{key} is missing in {value}"
        got = value[key]
        if want is N or isinstance(want, type):
            assert isinstance(got, want) and not (isinstance(got, bool) and want is not bool), f"{key}: {got!r}"
        else:
            assert got == want, f"{key}: {got!r}"


def test_status(agent, lab):
    status = agent.cli("status")
    shape(status, version=str, uptime_s=N, interfaces=list, registries=list, features=dict, flows=dict)
    shape(status["interfaces"][0], name="eth0", attach=lab.hook, programs=list)
    assert status["interfaces"][0]["programs"]
    (registry,) = status["registries"]
    shape(registry, name="lab", kind="file", state="live", server=str, since_s=N, services=1)
    shape(status["flows"], established=int, half_open=int, capacity=8192)
    assert agent.cli()["version"] == status["version"]  # no command is status


def test_services(agent, lab):
    (service,) = agent.cli("services")
    shape(service, service="DEFAULT_GROUP@@web", listen=[f"{lab.vip}:80/tcp"], mode="full-nat", algorithm="weighted-random",
          backends=3, eligible=3, generation=int, connections=100, active=int, packets=int, bytes=int, source="live", age_s=N)
    assert service["generation"] >= 1 and service["packets"] > 400 and service["bytes"] > 20000


def test_backends(agent, lab):
    backends = agent.cli("backends")
    assert backends == agent.cli("backends", "web") == agent.cli("backends", "DEFAULT_GROUP@@web")
    assert [b["address"] for b in backends] == [lab.address(b) for b in ("b1", "b2", "b3")]
    for b, weight in zip(backends, [1, 2, 7]):
        shape(b, service="DEFAULT_GROUP@@web", weight=weight, share=float, state="up", reason="", cluster="DEFAULT",
              connections=int, active=int, packets=int, bytes=int, refused=0)
        assert abs(b["share"] - weight / 10) < 1e-9
    assert sum(b["connections"] for b in backends) == 100


def test_table(agent):
    table = agent.cli("table", "web")
    shape(table, service="DEFAULT_GROUP@@web", generation=int, slots=list)
    slots = table["slots"]
    assert [s["weight"] for s in slots] == [1, 2, 7]
    for s, cumulative, share in zip(slots, [0.1, 0.3, 1.0], [0.1, 0.2, 0.7]):
        shape(s, address=str, weight=N, cumulative=N, bound=int, share=N)
        assert s["cumulative"] == pytest.approx(cumulative, abs=1e-12) and s["share"] == pytest.approx(share, abs=1e-12)
        assert abs(s["bound"] - cumulative * 2**32) <= 2
    assert slots[-1]["cumulative"] == 1.0 and slots[-1]["bound"] == 4294967295


def test_flows_and_their_filters(agent, lab):
    held = [lab.connect(lab.vip, 80, "echo") for _ in range(6)]
    flows = [f for f in agent.cli("flows") if f["state"] == "established"]
    assert len(flows) == 6
    for f in flows:
        shape(f, client=str, listen=f"{lab.vip}:80", backend=str, snat=str, state="established", idle_s=N)
        assert f["client"].startswith(f"{lab.client}:") and f["snat"].startswith(f"{lab.snat}:")
    clients = {"%s:%d" % s.getsockname() for s, _ in held}
    assert {f["client"] for f in flows} == clients
    assert len(agent.cli("flows", "--limit", "2")) == 2
    assert {f["backend"] for f in agent.cli("flows", "--backend", lab.address("b3"))} == {lab.address("b3")}
    assert len(agent.cli("flows", "--client", lab.client)) >= 6 and agent.cli("flows", "--client", "10.99.0.1") == []
    assert len(agent.cli("flows", "--service", "web")) >= 6
    for s, _ in held:
        s.close()


def test_stats_counts_every_packet_under_one_verdict(agent):
    verdicts = agent.cli("stats")["verdicts"]
    assert all(isinstance(v, int) for v in verdicts.values())
    listed = re.findall(r'\tX\([A-Z_0-9]+, "([a-z0-9-]+)"', (ROOT / "include" / "sy_verdict.h").read_text())
    assert set(verdicts) == set(listed)
    assert verdicts["new"] == 100
    packets = agent.cli("services")[0]["packets"]
    assert verdicts["new"] + verdicts["forward"] + verdicts["return"] == packets
    assert verdicts["error"] == verdicts["malformed"] == 0


def test_dump(agent):
    dump = agent.cli("dump")
    shape(dump, status=dict, services=list, backends=list, tables=list, flows=list, stats=dict)
    assert [s["service"] for s in dump["services"]] == ["DEFAULT_GROUP@@web"]
    maps = agent.cli("dump", "--maps")["maps"]
    for m in maps:
        shape(m, name=str, id=int, type=str, size=int)


def test_every_rejected_instance_is_shown_with_its_reason(agent, lab):
    agent.list_hosts("web", host(lab.backends["b1"]), host(lab.backends["b2"], healthy=False), host(lab.backends["b3"], weight=-2),
                     host("no.address", 1), host(lab.backends["b1"], weight=0.25))
    wait_for("applied", lambda: agent.shares() == {"b1": 1})
    found = sorted((b["address"], b["state"], b["reason"], b["share"]) for b in agent.cli("backends"))
    assert (lab.address("b1"), "up", "", 1) in found
    assert (lab.address("b2"), "draining", "unhealthy", 0) in found
    assert (lab.address("b3"), "draining", "bad-weight", 0) in found or (lab.address("b3"), "evicted", "bad-weight", 0) in found
    assert {reason for _, _, reason, _ in found} == {"", "unhealthy", "bad-weight", "bad-address", "duplicate"}


def test_with_the_agent_dead_every_dump_still_works(agent):
    agent.kill()
    before = agent.cli("backends")
    status = agent.cli("status")
    assert status["agent"] == "down" and status["registries"] == []
    dump = agent.cli("dump")
    assert dump["backends"] == before and dump["tables"][0]["slots"] and dump["status"]["agent"] == "down"
    refused = agent.cli_run("--json", "drain", "web", before[0]["address"])
    assert refused.returncode == 1 and json.loads(refused.stdout or refused.stderr)["error"]


def test_errors_are_one_sentence_and_a_status(agent):
    for words, status in [(["table", "no-such-service"], 1), (["evict", "web", "10.0.0.1:1"], 1), (["table"], 2), (["no-such-verb"], 2)]:
        p = agent.cli_run("--json", *words)
        assert p.returncode == status, (words, p)
        if status == 1:
            assert isinstance(json.loads(p.stdout or p.stderr)["error"], str)
        p = agent.cli_run(*words)
        assert p.returncode == status and p.stdout == "" and p.stderr
        assert status == 2 or p.stderr.count("\n") == 1


def test_tables_for_people(agent, lab):
    for words, heads in [(["services"], ["SERVICE"]), (["backends"], ["ADDRESS", "WEIGHT", "SHARE"]), (["table", "web"], ["CUMULATIVE"]),
                         (["stats"], []), (["status"], []), (["flows"], []), (["dump"], [])]:
        p = agent.cli_run(*words)
        assert p.returncode == 0 and p.stdout.strip(), (words, p)
        for head in heads:
            assert head in p.stdout.upper()
        assert "\x1b" not in p.stdout  # no colours into a pipe


def test_decode_and_preflight(agent):
    assert "not-ours" in json.dumps(agent.cli("decode", "verdict", "0"))
    preflight = agent.cli("preflight", "eth0", check=False)
    shape(preflight, interface="eth0", ok=bool, checks=list)
    for check in preflight["checks"]:
        shape(check, check=str, ok=bool, detail=str, remedy=str)
