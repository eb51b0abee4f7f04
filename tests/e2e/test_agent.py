# SPDX-License-Identifier: MIT
"""The agent's life: killed, restarted, reloaded, detached; the traffic does not notice."""
import json
import subprocess

import pytest

from agent import reload
from lab import BUILD, ROOT, echo, finish_load, map_bytes, wait_for

SHORT = {"syn": "2s", "closing": "1s", "reset": "1s"}


def short_lived(lab, **fields):
    return {"web": {"listen": [f"{lab.vip}:80"], "timeouts": SHORT, **fields}}


def test_twenty_kills_during_traffic_cut_no_connection(lab, start_agent):
    agent = start_agent(lab, {"b1": 1, "b2": 2, "b3": 7}, services=short_lived(lab))
    steady = lab.load(f"{lab.vip}:80", 60, "-i", 5, "-t", 120)
    churn = lab.load(f"{lab.vip}:80", 10, "-i", 2, "-x", 5, "-t", 120)
    for _ in range(20):
        agent.kill()
        agent.start()
    for result in [finish_load(churn), finish_load(steady)]:
        assert result["lost"] == result["stalled"] == result["corrupt"] == 0, result
        assert result["exchanges"] > 1000


def test_with_the_agent_dead_more_short_connections_than_flows_fill_nothing(lab, start_agent):
    flows = 256
    agent = start_agent(lab, {"b1": 1, "b2": 1}, services=short_lived(lab), flows=flows)
    agent.kill()
    for _ in range(3):
        result = lab.drive("shares", f"{lab.vip}:80", flows)
        assert result["answered"] == flows, result
        wait_for("the sweeper ends them", lambda: agent.flows() == [] or None, timeout=30)
    assert agent.verdicts()["table-full"] == 0
    assert agent.service()["active"] == 0


def test_with_the_agent_dead_half_open_flows_expire(lab, start_agent):
    agent = start_agent(lab, {"b1": 1}, services=short_lived(lab))
    lab.run("b1", "ip", "link", "set", "eth0", "down")
    try:
        agent.kill()
        s = lab.socket()
        s.setblocking(False)
        s.connect_ex((lab.vip, 80))
        wait_for("a half-open flow", lambda: [f["state"] for f in agent.flows()] == ["syn"])
        s.close()
        wait_for("it expires", lambda: agent.flows() == [] or None, timeout=30)
    finally:
        lab.run("b1", "ip", "link", "set", "eth0", "up")
        lab.run("b1", "ip", "route", "replace", "default", "via", lab.balancer)


def what_the_agent_wrote(agent):
    """The maps that only the agent writes; next hops aside, which follow the neighbour table."""
    pages = {name: map_bytes(agent.pins / name) for name in ["services", "backends", "endpoints", "tables", "pools"]}
    pages["backends"] = b"".join(r[:40] + r[48:] for r in (pages["backends"][i:i + 64] for i in range(0, 64 * 64, 64)))
    return pages


def test_a_restart_adopts_everything(lab, start_agent):
    agent = start_agent(lab, {"b1": 1, "b2": 2, "b3": 7})
    held = [lab.connect(lab.vip, 80, "echo")[0] for _ in range(20)]

    def picture():
        flows = sorted((f["client"], f["listen"], f["backend"], f["snat"], f["state"]) for f in agent.flows())
        maps = {m["name"]: m["id"] for m in agent.cli("dump", "--maps")["maps"]}
        programs = {dev: {hook: len(ids) for hook, ids in p.items()} for dev, p in lab.attached().items()}
        return agent.cli("table", "web"), agent.backends(), agent.service()["generation"], flows, maps, programs

    before, pages = picture(), what_the_agent_wrote(agent)
    assert len(before[3]) == 20 and before[4] and before[5]
    agent.kill()
    # every dump works without the agent
    assert agent.cli("status")["agent"] == "down"
    assert picture() == before
    agent.start()
    wait_for("the registry is read again", lambda: [r["state"] for r in agent.cli("status")["registries"]] == ["live"])
    assert picture() == before
    # the same snapshot again, into the same maps: nothing was written
    assert [name for name, page in what_the_agent_wrote(agent).items() if page != pages[name]] == []
    for s in held:
        echo(s)
        s.close()


def test_changes_made_while_the_agent_was_down_are_applied_at_its_start(lab, start_agent):
    agent = start_agent(lab, {"b1": 1, "b2": 1})
    s, name = lab.connect(lab.vip, 80, "echo")
    agent.kill()
    stays = "b2" if name == "b1" else "b1"
    agent.weigh(**{stays: 4})
    agent.start()
    agent.wait_table(**{stays: 4})
    agent.wait_state(name, "draining", "gone")
    assert lab.drive("shares", f"{lab.vip}:80", 50)["answers"] == {stays: 50}
    echo(s)
    s.close()


def test_sigterm_leaves_traffic_flowing_and_detach_removes_everything(lab, start_agent):
    agent = start_agent(lab, {"b1": 1})
    s, _ = lab.connect(lab.vip, 80, "echo")
    refused = agent.cli_run("--json", "detach")
    assert refused.returncode == 1 and json.loads(refused.stdout or refused.stderr)["error"]
    echo(s)
    assert agent.stop() == 0
    echo(s)
    assert lab.connect(lab.vip, 80, "name")[1] == "b1"
    assert lab.attached()
    assert agent.cli("detach")["ok"] is True
    assert not agent.pins.exists()
    wait_for("no program is left", lambda: lab.attached() == {} or None)
    with pytest.raises(ConnectionRefusedError):
        lab.connect(lab.vip, 80)
    s.close()


def test_a_second_agent_on_the_same_pins_is_refused(lab, start_agent):
    agent = start_agent(lab, {"b1": 1})
    second = agent.launch()
    assert second.wait(20) == 75
    assert agent.is_up()
    assert lab.connect(lab.vip, 80, "name")[1] == "b1"


def test_sighup_adds_a_service(lab, start_agent):
    agent = start_agent(lab, {"b1": 1})
    s, _ = lab.connect(lab.vip, 80, "echo")
    agent.weigh("api", b2=1)
    agent.set_services({"web": {"listen": [f"{lab.vip}:80"]}, "api": {"listen": [f"{lab.vip2}:81"]}})
    reload(agent)
    agent.wait_table("api", b2=1)
    assert lab.connect(lab.vip2, 81, "name")[1] == "b2"
    echo(s)
    s.close()


def test_reload_takes_a_service_away_and_its_flows_end_visibly(lab, start_agent):
    services = {"web": {"listen": [f"{lab.vip}:80"]}, "api": {"listen": [f"{lab.vip2}:81"]}}
    agent = start_agent(lab, {"b1": 1}, services=services)
    agent.weigh("api", b2=1)
    agent.wait_table("api", b2=1)
    kept, _ = lab.connect(lab.vip, 80, "echo")
    del services["api"]
    agent.set_services(services)
    assert agent.cli("reload")["ok"] is True
    wait_for("the service is gone", lambda: agent.service("api") is None)
    with pytest.raises(ConnectionRefusedError):
        lab.connect(lab.vip2, 81)
    echo(kept)
    kept.close()


def test_a_bad_file_is_refused_whole_and_the_running_one_stays(lab, start_agent):
    agent = start_agent(lab, {"b1": 1})
    agent.set_services({"web": {"listen": ["not-an-address"]}, "api": {"listen": [f"{lab.vip2}:81"]}})
    answer = agent.cli_run("--json", "reload")
    assert answer.returncode == 1
    assert "services[0].listen[0]" in json.loads(answer.stdout or answer.stderr)["error"]
    reload(agent)
    wait_for("the log names the fault", lambda: agent.log().count("services[0].listen[0]") >= 1)
    assert agent.service("api") is None
    assert lab.connect(lab.vip, 80, "name")[1] == "b1"


def test_a_changed_restart_only_key_is_refused_by_name(lab, start_agent):
    agent = start_agent(lab, {"b1": 1})
    agent.config["flows"] = 4096
    agent.write_config()
    answer = agent.cli_run("--json", "reload")
    assert answer.returncode == 1 and "flows" in json.loads(answer.stdout or answer.stderr)["error"]
    assert agent.is_up()


def test_bad_configuration_exits_78_with_one_line_and_check_validates(lab, make_agent):
    agent = make_agent(lab)
    command = lab.command("lb", BUILD / "steelyardd", "--config", agent.config_path)
    good = subprocess.run(command + ["--check"], stderr=subprocess.PIPE, text=True, timeout=30)
    assert good.returncode == 0, good.stderr
    agent.config["services"][0]["algorithm"] = "by-the-moon"
    agent.write_config()
    for extra in [[], ["--check"]]:
        bad = subprocess.run(command + extra, stderr=subprocess.PIPE, text=True, timeout=30)
        assert bad.returncode == 78
        assert f"{agent.config_path}:" in bad.stderr and "services[0].algorithm: " in bad.stderr
    assert subprocess.run([BUILD / "steelyardd", "--no-such-thing"], stderr=subprocess.DEVNULL, timeout=30).returncode == 2


def test_the_command_line_alone_is_enough(lab, make_agent):
    agent = make_agent(lab)
    agent.weigh(b1=1)
    interfaces = " ".join(f"--interface {i}" for i in lab.interfaces)
    # the default directories, in a mount namespace of its own
    script = f"""mount -t bpf bpf /sys/fs/bpf && mount -t tmpfs tmpfs /run && mount -t tmpfs tmpfs /var/lib && cd {ROOT} &&
        exec {BUILD}/steelyardd {interfaces} --file {agent.registry} --service web={lab.vip}:80"""
    p = lab.popen("lb", "unshare", "-m", "sh", "-c", script, stderr=subprocess.DEVNULL)

    def table():
        cli = ["nsenter", "-m", "-n", "-t", str(p.pid), BUILD / "steelyard", "--json", "table", "web"]
        answer = subprocess.run(cli, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=20).stdout
        return answer and json.loads(answer).get("slots")

    assert [s["address"] for s in wait_for("the table is there", table)] == [lab.address("b1")]
    assert lab.connect(lab.vip, 80, "name")[1] == "b1"
    p.terminate()
    assert p.wait(20) == 0


def test_a_missing_interface_is_waited_for(lab, make_agent):
    agent = make_agent(lab)
    agent.config["interfaces"].append({"name": "later0", "attach": "tc"})
    agent.write_config()
    agent.weigh(b1=1)
    agent.start()
    agent.wait_table(b1=1)
    assert "later0" in agent.log()
    assert lab.connect(lab.vip, 80, "name")[1] == "b1"
    lab.run("lb", "ip", "link", "add", "later0", "type", "veth", "peer", "name", "later1")
    try:
        wait_for("attached when it comes", lambda: any(i["name"] == "later0" and i["programs"] for i in agent.cli("status")["interfaces"]))
    finally:
        lab.run("lb", "ip", "link", "del", "later0")
