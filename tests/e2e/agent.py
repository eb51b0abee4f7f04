# SPDX-License-Identifier: MIT
"""One agent under test with its file registry, its configuration and the CLI that looks at it."""
import json
import os
import signal
import subprocess

from lab import BPFFS, BUILD, PORT, remove_pins, wait_for

GROUP = "DEFAULT_GROUP"


def host(ip, weight=1.0, port=PORT, **fields):
    return {"ip": ip, "port": port, "weight": weight, **fields}


class Agent:
    """services: {name: {"listen": [...], ...}}; the keys of a service's configuration, without name and registry."""

    def __init__(self, lab, hook, folder, services=None, **top):
        self.lab, self.folder = lab, folder
        self.process = None
        self.pins = BPFFS / lab.name
        self.registry = folder / "services.d"
        self.registry.mkdir()
        self.config_path = folder / "steelyard.yaml"
        self.log_path = folder / "agent.log"
        self.control = folder / "control.sock"
        self.config = {
            "interfaces": [{"name": i, "attach": hook} for i in lab.interfaces],
            "registries": [{"name": "lab", "kind": "file", "path": str(self.registry)}],
            "snat_addresses": [lab.snat],
            "snat_ports": "10000-59999",
            "state_dir": str(folder / "state"),
            "pin_dir": str(self.pins),
            "control_socket": str(self.control),
            "log": {"level": "debug"},
            "flows": 8192,
            **top,
        }
        self.set_services(services or {"web": {"listen": [f"{lab.vip}:80"]}})

    # ---- configuration and registry ----
    def set_services(self, services):
        self.config["services"] = [{"name": n, "registry": "lab", **s} for n, s in services.items()]
        self.write_config()

    def write_config(self):
        self.config_path.write_text(json.dumps(self.config, indent=2))  # YAML's flow style

    def list_hosts(self, service="web", *hosts):
        """Puts a service's file in place by a rename."""
        part = self.registry / f".{service}.part"
        part.write_text(self.service_text(service, *hosts))
        part.rename(self.service_path(service))

    def service_path(self, service="web"):
        return self.registry / f"{service}.json"

    @staticmethod
    def service_text(service, *hosts):
        return json.dumps({"name": service, "groupName": GROUP, "hosts": list(hosts)})

    def weigh(self, service="web", **weights):
        """weigh(b1=1, b2=2): those backends with those weights, all healthy."""
        self.list_hosts(service, *(host(self.lab.backends[b], w) for b, w in weights.items()))

    # ---- the process ----
    def launch(self):
        log = open(self.log_path, "a")
        try:
            return self.lab.popen("lb", BUILD / "steelyardd", "--config", self.config_path, stdout=log, stderr=log)
        finally:
            log.close()

    def start(self, wait=True):
        self.process = self.launch()
        if wait:
            wait_for("the agent answers", self.is_up)
        return self

    def is_up(self):
        if self.process.poll() is not None:
            raise AssertionError(f"the agent ended with {self.process.returncode}:\n{self.log()[-4000:]}")
        status = self.cli("status", check=False)
        return isinstance(status, dict) and "agent" not in status and "version" in status

    def kill(self):
        self.process.kill()
        self.process.wait(10)

    def stop(self):
        self.process.terminate()
        return self.process.wait(20)

    def log(self):
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def close(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.kill()
        self.cli("detach", "--force", check=False)
        remove_pins(self.pins)

    # ---- the CLI ----
    def cli_run(self, *args, timeout=60):
        args = [BUILD / "steelyard", "--pin-dir", self.pins, "--control", self.control, *args]
        return subprocess.run(self.lab.command("lb", *args), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=timeout)

    def cli(self, *args, check=True):
        """The JSON of a command; with check off, None for what is no JSON."""
        p = self.cli_run("--json", *args)
        if check:
            assert p.returncode == 0, f"steelyard {' '.join(map(str, args))}: {p.returncode}: {p.stdout}{p.stderr}"
        try:
            return json.loads(p.stdout)
        except ValueError:
            if check:
                raise
            return None

    def service(self, name="web"):
        return next((s for s in self.cli("services") if s["service"] == f"{GROUP}@@{name}"), None)

    def backends(self, service="web"):
        """By the lab's names (b1, …), or by address where it is none of the lab's."""
        names = {self.lab.address(b): b for b in self.lab.backends}
        found = self.cli("backends", service, check=False)
        return {names.get(b["address"], b["address"]): b for b in found} if isinstance(found, list) else {}

    def shares(self, service="web"):
        """What the published table holds: {name: weight}."""
        names = {self.lab.address(b): b for b in self.lab.backends}
        table = self.cli("table", service, check=False) or {}
        return {names.get(s["address"], s["address"]): s["weight"] for s in table.get("slots", [])}

    def wait_table(self, service="web", timeout=20, **weights):
        wait_for(f"table of {service} is {weights}", lambda: self.shares(service) == weights or None, timeout)

    def wait_state(self, backend, state, reason=None, service="web"):
        def check():
            b = self.backends(service).get(backend)
            return b and b["state"] == state and (reason is None or b["reason"] == reason)

        wait_for(f"{backend} of {service} is {state} {reason or ''}", check)

    def verdicts(self):
        return self.cli("stats")["verdicts"]

    def flows(self, *args):
        return self.cli("flows", *args)


def reload(agent):
    os.kill(agent.process.pid, signal.SIGHUP)
