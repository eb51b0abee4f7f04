# SPDX-License-Identifier: MIT
"""The whole agent on a real Nacos server: what publishers do is seen in `steelyard table`, and how long that takes."""
import json
import subprocess

import pytest

from realm import A, B, BUILD, C, SERVER, end, wait_for

VIP = "10.88.0.100"


class Agent:
    def __init__(self, realm, folder, service):
        self.realm, self.service = realm, service
        self.pins, self.control = f"/sys/fs/bpf/{realm.name}", folder / "control.sock"
        config = {
            "interfaces": [{"name": "eth0", "attach": "tc"}],
            "registries": [{"name": "main", "kind": "nacos", "servers": [SERVER]}],
            "services": [{"name": service, "listen": [f"{VIP}:80"], "hold_empty": "0s"}],
            "state_dir": str(folder / "state"),
            "pin_dir": self.pins,
            "control_socket": str(self.control),
            "flows": 1024,
        }
        path = folder / "steelyard.yaml"
        path.write_text(json.dumps(config))
        self.process = realm.popen(BUILD / "steelyardd", "--config", path)

    def cli(self, *args):
        """The JSON of a command, or None while there is none."""
        args = [BUILD / "steelyard", "--pin-dir", self.pins, "--control", self.control, "--json", *args]
        try:
            return json.loads(self.realm.run(*args, check=False))
        except ValueError:
            return None

    def weights(self):
        table = self.cli("table", self.service) or {}
        return {s["address"].removesuffix(":80"): s["weight"] for s in table.get("slots", [])}

    def state(self, ip):
        found = self.cli("backends", self.service)
        found = found if isinstance(found, list) else []
        return next(((b["state"], b["reason"]) for b in found if b["address"] == f"{ip}:80"), None)

    def wait(self, what, **weights):
        """Until the table holds these (a, b, c) and nothing else."""
        wanted = {{"a": A, "b": B, "c": C}[k]: w for k, w in weights.items()}
        _, took = wait_for(f"table after: {what}", lambda: self.weights() == wanted)
        self.realm.report(f"table, {what}", took)

    def is_live(self):
        status = self.cli("status") or {}
        return [r["state"] for r in status.get("registries", [])] == ["live"]

    def close(self):
        self.process.terminate()
        self.process.wait(20)
        self.cli("detach", "--force")


@pytest.fixture
def start_agent(realm, tmp_path):
    made = []

    def start(service):
        made.append(Agent(realm, tmp_path, service))
        wait_for("the agent is live", made[0].is_live)
        return made[0]

    if subprocess.run(["mountpoint", "-q", "/sys/fs/bpf"]).returncode:
        subprocess.run(["mount", "-t", "bpf", "bpf", "/sys/fs/bpf"], check=True)
    realm.run("ip", "addr", "replace", f"{VIP}/32", "dev", "lo")
    realm.run("sysctl", "-qw", "net.ipv4.ip_forward=1")
    yield start
    for agent in made:
        agent.close()


# Nacos has persistent instances (of the open API, looked at by the server) and ephemeral ones (of a connection, gone with
# it), and a service has one kind: so there are two services.
def test_registered_weighed_unhealthy_and_weight_0_are_seen_in_the_table(realm, start_agent):
    agent = start_agent("web")
    at_a, at_b = realm.listener(A), realm.listener(B)
    realm.instance("POST", "web", A, weight=1)
    agent.wait("registered", a=1)
    realm.instance("POST", "web", B, weight=2)
    agent.wait("another registered", a=1, b=2)
    realm.instance("PUT", "web", B, weight=0.5)
    agent.wait("weight changed", a=1, b=0.5)
    end(at_a)
    agent.wait("port closed, found unhealthy by the server", b=0.5)
    assert agent.state(A) == ("draining", "unhealthy")
    realm.instance("PUT", "web", B, weight=0)
    agent.wait("weight set to 0")
    assert agent.state(B) == ("draining", "weight-0")
    end(at_b)


def test_a_killed_provider_leaves_the_table(realm, start_agent):
    agent = start_agent("rpc")
    providers = [realm.provider("rpc", ip, weight) for ip, weight in ((A, 1), (B, 2), (C, 7))]
    agent.wait("three providers registered", a=1, b=2, c=7)
    end(providers[2])
    agent.wait("one provider killed", a=1, b=2)
    assert agent.state(C) in (("draining", "gone"), None)
    for p in providers:
        end(p)
    agent.wait("the others killed")


def test_an_outage_of_the_registry_changes_nothing(realm, start_agent):
    agent = start_agent("web2")
    at_c = realm.listener(C)
    realm.instance("POST", "web2", C, weight=3)
    agent.wait("registered", c=3)
    realm.down()
    wait_for("the loss is seen", lambda: not agent.is_live())
    assert agent.weights() == {C: 3}
    realm.up()
    wait_for("live again", agent.is_live)
    realm.instance("POST", "web2", C, weight=4)
    agent.wait("registered at the new server", c=4)
    end(at_c)
