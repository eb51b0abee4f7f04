# SPDX-License-Identifier: MIT
"""The network of a test: namespaces made by tools/netns-lab, what runs in them, and sockets inside them."""
import contextlib
import ctypes
import json
import mmap
import os
import pathlib
import signal
import socket
import struct
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("SY_BUILD", ROOT / "build"))
LAB_TOOL = str(ROOT / "tools" / "netns-lab")
PREFIX = "sye"  # + pid: labs and pin folders of the tests
BPFFS = pathlib.Path("/sys/fs/bpf")
PORT = 8080  # backends listen here

_libc = ctypes.CDLL(None, use_errno=True)
SYS_BPF = 321  # x86-64
BPF_PROG_LOAD, BPF_OBJ_PIN, BPF_OBJ_GET, BPF_PROG_QUERY, BPF_ENABLE_STATS, BPF_TCX_INGRESS = 5, 6, 7, 16, 32, 46
TCP_REPAIR, TCP_REPAIR_QUEUE, TCP_QUEUE_SEQ = 19, 20, 21


def wait_for(what, check, timeout=20.0):
    """Polls check() until it answers something true, and returns that. The deadline is for a stuck test, not a measurement."""
    end = time.monotonic() + timeout
    while True:
        value = check()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not so within {timeout} s; last seen: {value!r}")
        time.sleep(0.02)


class Lab:
    def __init__(self, name, arms=1, backends=3, xdp=False):
        self.name, self.arms, self.n_backends, self.xdp = name, arms, backends, xdp
        front, back = ("10.77.0", "10.77.0") if arms == 1 else ("10.77.1", "10.77.2")
        self.client, self.balancer = f"{front}.2", f"{front}.1"
        self.vip, self.vip2 = f"{front}.100", f"{front}.101"
        self.snat, self.snat2 = f"{back}.200", f"{back}.201"
        self.interfaces = ["eth0"] if arms == 1 else ["eth0", "eth1"]
        self.backends = {f"b{i}": f"{back}.{10 + i}" for i in range(1, backends + 1)}
        self.processes = []
        args = [LAB_TOOL, "up", "--name", name, "--arms", str(arms), "--backends", str(backends)]
        subprocess.run(args + (["--xdp"] if xdp else []), check=True, timeout=60)

    def close(self):
        for p in self.processes:
            end_process(p)
        subprocess.run([LAB_TOOL, "down", "--name", self.name], check=True, timeout=60)

    def address(self, backend):
        """As the CLI prints it."""
        return f"{self.backends[backend]}:{PORT}"

    def command(self, where, *args):
        return ["nsenter", f"--net=/run/netns/{self.name}-{where}", "--", *map(str, args)]

    def popen(self, where, *args, **kw):
        p = subprocess.Popen(self.command(where, *args), **kw)
        self.processes.append(p)
        return p

    def run(self, where, *args, timeout=120):
        return subprocess.run(self.command(where, *args), check=True, timeout=timeout, stdout=subprocess.PIPE, text=True).stdout

    # ---- traffic programs ----
    def serve(self, where, name, port=PORT):
        p = self.popen(where, BUILD / "e2e" / "backend", name, port, stdout=subprocess.PIPE, text=True)
        assert p.stdout.readline() == "ready\n", f"backend {name} did not start"
        return p

    def serve_all(self):
        for name in self.backends:
            self.serve(name, name)

    def drive(self, verb, target, *args, where="client", timeout=120):
        """Runs a client to its end; its JSON. A failed transfer is a result, not an exception."""
        args = self.command(where, BUILD / "e2e" / "client", verb, target, *args)
        p = subprocess.run(args, timeout=timeout, stdout=subprocess.PIPE, text=True)
        return json.loads(p.stdout.splitlines()[-1])

    def load(self, target, n, *args):
        """Starts a client that holds n connections busy; returns when all are open."""
        p = self.popen("client", BUILD / "e2e" / "client", "load", target, n, *args, stdout=subprocess.PIPE, text=True)
        assert p.stdout.readline() == "ready\n", "the load did not come up"
        return p

    def backend_stats(self, backend):
        """accepted, open and reset connections as the backend's process saw them."""
        words = list(self.drive("shares", f"127.0.0.1:{PORT}", 1, "-v", "stats", where=backend)["answers"])[0].split()[1:]
        return {k: int(v) for k, v in (w.split("=") for w in words)}

    # ---- the kernel's view ----
    def snmp(self, where, section, field):
        lines = [l.split() for l in self.run(where, "cat", "/proc/net/snmp").splitlines() if l.startswith(section + ":")]
        return int(lines[1][lines[0].index(field)])

    def attached(self):
        """What programs the balancer's interfaces have: {"eth0": {"tc": [id, …], "xdp": [id, …]}, …}."""
        found = {}
        for dev in self.interfaces:
            link = json.loads(self.run("lb", "ip", "-j", "-d", "link", "show", "dev", dev))[0]
            with self.inside("lb"):
                tc = tcx_programs(link["ifindex"])
            xdp = [link["xdp"]["prog"]["id"]] if "xdp" in link else []
            if tc or xdp:
                found[dev] = {"tc": tc, "xdp": xdp}
        return found

    def flush_neighbours(self):
        for where in ["client", "lb", *self.backends]:
            self.run(where, "ip", "neigh", "flush", "all")

    @contextlib.contextmanager
    def inside(self, where):
        """This thread in another network namespace; a socket made there stays there."""
        with open("/proc/thread-self/ns/net") as home, open(f"/run/netns/{self.name}-{where}") as there:
            if _libc.setns(there.fileno(), 0):
                raise OSError(ctypes.get_errno(), "setns")
            try:
                yield
            finally:
                if _libc.setns(home.fileno(), 0):
                    os._exit(70)  # lost in a namespace: nothing after this could be believed

    def socket(self, where="client", kind=socket.SOCK_STREAM, timeout=15):
        with self.inside(where):
            s = socket.socket(socket.AF_INET, kind)
        s.settimeout(timeout)
        return s

    def connect(self, address, port, verb=None, source_port=0, timeout=15):
        """A client's connection; with a verb, asked and greeted: (socket, backend's name)."""
        s = self.socket(timeout=timeout)
        if source_port:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            s.bind(("0.0.0.0", source_port))
        try:
            s.connect((address, port))
            return (s, ask(s, verb)) if verb else s
        except BaseException:
            s.close()
            raise


def bpf(command, attributes):
    """The system call: its result and the attributes as the kernel left them."""
    attr = ctypes.create_string_buffer(attributes, 128)
    result = _libc.syscall(SYS_BPF, command, attr, 64)
    if result < 0:
        raise OSError(ctypes.get_errno(), f"bpf command {command}")
    return result, attr.raw


def tcx_programs(ifindex):
    """Ids of the programs at an interface's tcx ingress, in this thread's namespace (bpftool 7.1 does not know tcx)."""
    ids = (ctypes.c_uint32 * 16)()
    try:
        _, attr = bpf(BPF_PROG_QUERY, struct.pack("IIIIQI", ifindex, BPF_TCX_INGRESS, 0, 0, ctypes.addressof(ids), 16))
    except OSError:
        return []
    return list(ids[: struct.unpack_from("I", attr, 24)[0]])


def pin_pass_program(pin, kind="xdp"):
    """Loads and pins a program that passes every packet: r0 = XDP_PASS or TC_ACT_UNSPEC; exit."""
    prog_type, answer = {"xdp": (6, 2), "tc": (3, -1)}[kind]
    code = ctypes.create_string_buffer(struct.pack("<BBhiBBhi", 0xB7, 0, 0, answer, 0x95, 0, 0, 0))
    licence, path = ctypes.create_string_buffer(b"GPL"), ctypes.create_string_buffer(str(pin).encode())
    fd, _ = bpf(BPF_PROG_LOAD, struct.pack("IIQQ", prog_type, 2, ctypes.addressof(code), ctypes.addressof(licence)))
    try:
        bpf(BPF_OBJ_PIN, struct.pack("QI", ctypes.addressof(path), fd))
    finally:
        os.close(fd)


def map_bytes(pin):
    """All of a pinned, memory-mapped map."""
    path = ctypes.create_string_buffer(str(pin).encode())
    fd, _ = bpf(BPF_OBJ_GET, struct.pack("Q", ctypes.addressof(path)))
    try:
        info = dict(l.split(":\t") for l in open(f"/proc/self/fdinfo/{fd}").read().splitlines() if ":\t" in l)
        with mmap.mmap(fd, int(info["value_size"]) * int(info["max_entries"]), prot=mmap.PROT_READ) as m:
            return bytes(m)
    finally:
        os.close(fd)


@contextlib.contextmanager
def program_statistics():
    """While it lasts the kernel counts the runs of every program."""
    fd, _ = bpf(BPF_ENABLE_STATS, b"")
    try:
        yield
    finally:
        os.close(fd)


def program_runs(ids):
    """How often those programs ran, together."""
    total = 0
    for i in set(ids):
        show = subprocess.run(["bpftool", "-j", "prog", "show", "id", str(i)], check=True, stdout=subprocess.PIPE, text=True)
        total += json.loads(show.stdout).get("run_cnt", 0)
    return total


def read_line(s):
    line = b""
    while not line.endswith(b"\n"):
        got = s.recv(1)
        if not got:
            raise EOFError(f"closed after {line!r}")
        line += got
    return line[:-1].decode()


def ask(s, verb):
    s.sendall(verb.encode() + b"\n")
    return read_line(s)


def echo(s, text=b"ping"):
    """One exchange on an echo connection."""
    s.sendall(text)
    got = b""
    while len(got) < len(text):
        more = s.recv(len(text) - len(got))
        if not more:
            raise EOFError(f"closed after {got!r}")
        got += more
    assert got == text


def forget(s):
    """The client's end vanishes without a word, as after a crash of the machine."""
    s.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, 1)
    s.close()


def end_process(p):
    if p.poll() is None:
        p.terminate()
        try:
            p.wait(5)
        except subprocess.TimeoutExpired:
            p.kill()
            p.wait(5)
    if p.stdout and not p.stdout.closed:
        p.stdout.close()


def finish_load(p):
    """Ends a load and returns what it counted."""
    p.send_signal(signal.SIGTERM)
    out, _ = p.communicate(timeout=30)
    return json.loads(out.splitlines()[-1])


def clean_after_crashes():
    """Labs and pins of test runs whose process is gone."""
    def is_stale(name):
        digits = name[len(PREFIX):].split("-")[0]
        return name.startswith(PREFIX) and digits.isdigit() and not os.path.exists(f"/proc/{digits}")

    for name in subprocess.run([LAB_TOOL, "list"], stdout=subprocess.PIPE, text=True, check=True).stdout.split():
        if is_stale(name):
            subprocess.run([LAB_TOOL, "down", "--name", name], check=True, timeout=60)
    for pins in BPFFS.glob(PREFIX + "*"):
        if is_stale(pins.name):
            remove_pins(pins) if pins.is_dir() else pins.unlink()


def remove_pins(folder):
    for path in sorted(folder.rglob("*"), key=lambda p: -len(p.parts)) if folder.exists() else []:
        path.rmdir() if path.is_dir() else path.unlink()
    if folder.exists():
        folder.rmdir()
