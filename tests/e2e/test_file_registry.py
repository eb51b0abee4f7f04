# SPDX-License-Identifier: MIT
"""The file registry: whatever an editor does to a file, the table is the old one or the new one, never torn or empty."""
import json
import time

import pytest

from agent import host
from lab import map_bytes, wait_for


@pytest.fixture(scope="module")
def lab(machine_lab):
    return machine_lab


@pytest.fixture
def agent(lab, start_agent):
    return start_agent(lab, {"b1": 1, "b2": 1}, services={"web": {"listen": [f"{lab.vip}:80"], "hold_empty": "0s"}})


def text(agent, **weights):
    return agent.service_text("web", *(host(agent.lab.backends[b], w) for b, w in weights.items()))


def agent_pages(agent):
    return [map_bytes(agent.pins / name) for name in ["services", "endpoints", "tables"]]


def never_changes(agent, weights, seconds):
    """Watches that the table stays; the time is how long is looked, not a limit."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert agent.shares() == weights
        time.sleep(0.02)


def test_a_rename_over_the_file_is_applied(agent):
    agent.weigh(b1=1, b2=9)
    agent.wait_table(b1=1, b2=9)


def test_a_write_in_place_is_applied(agent):
    agent.service_path().write_text(text(agent, b1=3, b3=1))
    agent.wait_table(b1=3, b3=1)


def test_a_half_written_file_changes_nothing_until_it_is_whole(agent):
    whole = text(agent, b3=5)
    with open(agent.service_path(), "w") as f:
        f.write(whole[: len(whole) // 2])
        f.flush()
        never_changes(agent, {"b1": 1, "b2": 1}, 1.5)
        f.write(whole[len(whole) // 2:])
    agent.wait_table(b3=5)


def test_a_file_closed_half_written_or_empty_keeps_what_was(agent):
    for content in ["", "{", text(agent, b3=5)[:-3], "[1, 2]", '{"name": "web"}', '{"name": "web", "hosts": null}', "\0\0\0"]:
        agent.service_path().write_text(content)
        never_changes(agent, {"b1": 1, "b2": 1}, 0.3)
    agent.weigh(b2=2)
    agent.wait_table(b2=2)


def test_a_deleted_file_is_gone_after_a_moment(agent):
    agent.service_path().unlink()
    agent.wait_table()
    agent.wait_state("b1", "draining", "gone")
    agent.weigh(b1=2)
    agent.wait_table(b1=2)


def test_an_editor_that_deletes_and_writes_again_is_not_noticed(agent):
    for weight in range(2, 7):
        agent.service_path().unlink()
        agent.service_path().write_text(text(agent, b1=weight, b2=1))
        wait_for("the new weight", lambda: agent.shares() == {"b1": weight, "b2": 1} or agent.shares()["b1"] < weight and None)
        assert set(agent.shares()) == {"b1", "b2"}


def test_an_emptied_service_is_held_and_then_applied(lab, start_agent):
    agent = start_agent(lab, {"b1": 1, "b2": 1}, services={"web": {"listen": [f"{lab.vip}:80"], "hold_empty": "2s"}})
    agent.list_hosts("web")
    wait_for("the hold shows", lambda: agent.service()["source"] == "held")
    assert agent.shares() == {"b1": 1, "b2": 1}
    agent.wait_table()
    assert agent.service()["source"] == "live"


def test_an_unchanged_or_reordered_file_publishes_nothing(agent):
    before, pages = agent.service()["generation"], agent_pages(agent)
    for names in [("b1", "b2"), ("b2", "b1"), ("b1", "b2")]:
        agent.weigh(**{n: 1 for n in names})
        # a change of another service's file, seen later than ours, says that ours has been read
        agent.list_hosts("marker", host("10.77.0.99"))
        never_changes(agent, {"b1": 1, "b2": 1}, 0.2)
    assert agent.service()["generation"] == before and agent_pages(agent) == pages
    agent.weigh(b1=1, b2=2)
    agent.wait_table(b1=1, b2=2)
    assert agent.service()["generation"] == before + 1


def test_of_two_files_for_one_service_the_first_by_name_counts(agent):
    (agent.registry / "a-first.json").write_text(text(agent, b3=1))
    agent.wait_table(b3=1)
    agent.weigh(b1=5)
    never_changes(agent, {"b3": 1}, 0.3)
    (agent.registry / "a-first.json").unlink()
    agent.wait_table(b1=5)


def test_one_bad_host_costs_its_own_place_alone(agent):
    hosts = [
        host("10.77.0.11", 1),
        host("10.77.0.12", "7"),  # a number in text
        host("10.77.0.13", -1),
        host("svc.example", 1),
        {"ip": "10.77.0.14"},  # no port
        host("10.77.0.15", 0),
        host("10.77.0.16", 1, port=70000),
        host("10.77.0.17", 0.5),
    ]
    body = json.dumps({"name": "web", "groupName": "DEFAULT_GROUP", "hosts": hosts})
    agent.service_path().write_text(body[:-2] + ', {"ip": "10.77.0.18", "port": 8080, "weight": NaN}]}')
    never_changes(agent, {"b1": 1, "b2": 1}, 0.3)  # NaN is no JSON: the whole file is not taken
    agent.service_path().write_text(body)
    wait_for("two are left", lambda: agent.shares() == {"b1": 1, "10.77.0.17:8080": 0.5})
    reasons = {name: b["reason"] for name, b in agent.backends().items()}
    assert reasons["b2"] == reasons["b3"] == "bad-weight"
    assert reasons["10.77.0.15:8080"] == "weight-0"
    assert [r for r in reasons.values()].count("bad-address") == 3


def test_the_folder_may_come_later(lab, make_agent):
    agent = make_agent(lab)
    agent.registry.rmdir()
    agent.start()
    agent.registry.mkdir()
    agent.weigh(b1=4)
    agent.wait_table(b1=4)
