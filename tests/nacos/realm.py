# SPDX-License-Identifier: MIT
"""A real Nacos server in a network namespace of its own, hosts for it to look at, and what publishers do to it.

    NAME: lo 127.0.0.1 server, agent ── eth0 10.88.0.1/24 ════ eth0 10.88.0.11 … .13 ── NAME-hosts
"""
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("SY_BUILD", ROOT / "build"))
KIT = ROOT / "tools" / "nacos-server"
PORT = 20000 + os.getpid() % 10000  # names the server's folder too, so that runs beside each other keep apart
SERVER = f"127.0.0.1:{PORT}"
A, B, C = "10.88.0.11", "10.88.0.12", "10.88.0.13"

DELAYS = []  # lines for people: see conftest.py

LISTEN = """
import socket, sys
s = socket.create_server((sys.argv[1], 80))
print("ready", flush=True)
while True:
    s.accept()[0].close()
"""


def wait_for(what, check, timeout=60.0):
    """Polls check() until it answers something true, and returns that with the seconds it took."""
    began = time.monotonic()
    while True:
        value = check()
        took = time.monotonic() - began
        if value:
            return value, took
        if took > timeout:
            raise AssertionError(f"{what}: not so within {timeout} s; last seen: {value!r}")
        time.sleep(0.02)


class Realm:
    """The server listens on wildcard addresses, so it gets a namespace that nobody else can reach."""

    def __init__(self, version, name):
        self.version, self.name, self.hosts = version, name, f"{name}-hosts"
        self.processes = []
        subprocess.run([KIT / "nacos-up", version, "--install"], check=True, timeout=1000)
        for command in (
            f"netns add {self.name}",
            f"netns add {self.hosts}",
            f"-n {self.name} link set lo up",
            f"-n {self.name} link add eth0 type veth peer name eth0 netns {self.hosts}",
            f"-n {self.name} addr add 10.88.0.1/24 dev eth0",
            f"-n {self.name} link set eth0 up",
            f"-n {self.hosts} link set eth0 up",
            *(f"-n {self.hosts} addr add {ip}/24 dev eth0" for ip in (A, B, C)),
        ):
            subprocess.run(["ip", *command.split()], check=True)

    def command(self, *args, where=None):
        return ["nsenter", f"--net=/run/netns/{where or self.name}", "--", *map(str, args)]

    def run(self, *args, timeout=60, check=True):
        p = subprocess.run(self.command(*args), timeout=timeout, stdout=subprocess.PIPE, text=True)
        assert not check or p.returncode == 0, f"{args}: exit status {p.returncode}: {p.stdout}"
        return p.stdout

    def popen(self, *args, where=None, **kw):
        p = subprocess.Popen(self.command(*args, where=where), **kw)
        self.processes.append(p)
        return p

    def popen_ready(self, word, *args, **kw):
        p = self.popen(*args, stdout=subprocess.PIPE, text=True, **kw)
        assert p.stdout.readline() == word + "\n", f"{args[0]} did not start"
        return p

    def up(self):
        print(self.run(KIT / "nacos-up", self.version, PORT, timeout=200), end="")

    def down(self):
        subprocess.run([KIT / "nacos-down", self.version, str(PORT)], check=True, timeout=60)

    def close(self):
        for p in self.processes:
            end(p)
        self.down()
        for ns in (self.name, self.hosts):
            subprocess.run(["ip", "netns", "del", ns], check=True)

    def report(self, what, seconds):
        DELAYS.append(f"nacos {self.version}: {what}: {seconds * 1000:.0f} ms")

    # ---- publishers ----
    def instance(self, method, service, ip, **parameters):
        """A persistent instance: it stays without heartbeats, and the server looks at its port itself."""
        parameters = {"serviceName": service, "ip": ip, "port": 80, "ephemeral": "false", **parameters}
        pairs = [a for k, v in parameters.items() for a in ("--data-urlencode", f"{k}={v}")]
        self.run("curl", "-fsS", "-m", 10, "-o", "/dev/null", "-X", method, f"http://{SERVER}/nacos/v1/ns/instance", *pairs)

    def listener(self, ip):
        """What the server finds at an instance's port."""
        return self.popen_ready("ready", sys.executable, "-c", LISTEN, ip, where=self.hosts)

    def provider(self, service, ip, weight):
        """A process that registers an ephemeral instance and holds its connection."""
        return self.popen_ready("registered", BUILD / "nacos" / "provider", SERVER, "public", service, ip, 80, weight)


def end(process):
    if process.poll() is None:
        process.kill()
    process.wait(10)
