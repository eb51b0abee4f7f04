# SPDX-License-Identifier: MIT
"""The Nacos source alone (tests/nacos/watch.c) against a real server: what publishers do arrives as snapshots."""
import json
import subprocess
import threading

import pytest

from realm import A, B, BUILD, C, SERVER, end, wait_for


class Watch:
    """watch's lines, kept as they come."""

    def __init__(self, realm, *services):
        self.realm, self.lists, self.states = realm, {}, []
        self.process = realm.popen(BUILD / "nacos" / "watch", SERVER, "public", *services, stdout=subprocess.PIPE, text=True)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            told = json.loads(line)
            if "state" in told:
                self.states.append(told["state"])
            else:
                hosts = {h[0]: (h[1], h[2]) for h in told["hosts"]}
                self.lists.setdefault(told["service"], []).append(hosts)

    def last(self, service):
        return self.lists.get(f"DEFAULT_GROUP@@{service}", [None])[-1]

    def wait(self, what, service, hosts):
        _, took = wait_for(f"{service}: {what}", lambda: self.last(service) == hosts)
        self.realm.report(f"snapshot, {what}", took)

    def end(self):
        self.process.terminate()
        assert self.process.wait(20) == 0


@pytest.fixture
def watch(realm):
    made = []

    def start(*services):
        made.append(Watch(realm, *services))
        return made[-1]

    yield start
    for w in made:
        w.end()


def test_a_list_arrives_as_it_is_registered_weighed_switched_marked_and_removed(realm, watch):
    at_a, at_b = realm.listener(A), realm.listener(B)
    realm.instance("POST", "source", A, weight=1)
    realm.instance("POST", "source", B, weight=0.5)
    w = watch("source")
    w.wait("two registered", "source", {f"{A}:80": (1, True), f"{B}:80": (0.5, True)})
    realm.instance("PUT", "source", B, weight=7)
    w.wait("weight changed", "source", {f"{A}:80": (1, True), f"{B}:80": (7, True)})
    realm.instance("PUT", "source", B, weight=7, enabled="false")
    w.wait("switched off", "source", {f"{A}:80": (1, True)})
    realm.instance("PUT", "source", B, weight=7, enabled="true")
    w.wait("switched on", "source", {f"{A}:80": (1, True), f"{B}:80": (7, True)})
    end(at_a)
    w.wait("found unhealthy by the server", "source", {f"{A}:80": (1, False), f"{B}:80": (7, True)})
    realm.instance("DELETE", "source", A)
    realm.instance("DELETE", "source", B)
    w.wait("removed", "source", {})
    end(at_b)


def test_an_unknown_service_is_empty_and_fills_when_its_first_provider_comes(realm, watch):
    w = watch("later")
    w.wait("unknown", "later", {})
    provider = realm.provider("later", C, 2.5)
    w.wait("provider registered", "later", {f"{C}:80": (2.5, True)})
    end(provider)
    w.wait("provider killed", "later", {})


def test_an_idle_connection_stays_live(realm, watch):
    """Longer than the 20 s after which the server asks, and drops who does not answer."""
    w = watch("idle")
    w.wait("unknown", "idle", {})
    with pytest.raises(subprocess.TimeoutExpired):
        w.process.wait(27)
    assert w.states[-1] == "live" and w.states.count("live") == 1
    provider = realm.provider("idle", C, 1)
    w.wait("provider registered", "idle", {f"{C}:80": (1, True)})
    end(provider)


def test_a_server_that_restarts_is_found_again(realm, watch):
    w = watch("again")
    w.wait("unknown", "again", {})
    realm.down()
    wait_for("the loss is seen", lambda: w.states[-1] != "live")
    n_lists = len(w.lists["DEFAULT_GROUP@@again"])
    realm.up()
    wait_for("live again", lambda: w.states[-1] == "live")
    provider = realm.provider("again", C, 3)
    w.wait("provider registered", "again", {f"{C}:80": (3, True)})
    assert len(w.lists["DEFAULT_GROUP@@again"]) > n_lists
    end(provider)
