# SPDX-License-Identifier: MIT
"""The lab itself: that it would show what the other tests look for."""
import socket
import struct

import pytest

from lab import PORT, wait_for


def checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def send_syn(lab, spoil):
    """A SYN from the balancer to the client, its sum off by spoil."""
    source, target = socket.inet_aton(lab.balancer), socket.inet_aton(lab.client)
    tcp = struct.pack("!HHIIBBHHH", 1234, 9, 1, 0, 5 << 4, 2, 1000, 0, 0)
    good = checksum(source + target + struct.pack("!BBH", 0, 6, len(tcp)) + tcp)
    tcp = tcp[:16] + struct.pack("!H", (good + spoil) % 0xFFFF) + tcp[18:]
    with lab.inside("lb"):
        s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP)
    s.sendto(tcp, (lab.client, 0))
    s.close()


def test_a_receiver_drops_a_wrong_sum_that_comes_from_the_balancer(any_lab):
    send_syn(any_lab, 0)
    assert any_lab.snmp("client", "Tcp", "InCsumErrors") == 0
    send_syn(any_lab, 1)
    wait_for("the wrong sum is counted", lambda: any_lab.snmp("client", "Tcp", "InCsumErrors") == 1)


def test_the_programs_tell_a_share_from_an_error(any_lab):
    target = any_lab.backends["b1"]
    result = any_lab.drive("shares", f"{target}:{PORT}", 50)
    assert result["answers"] == {"b1": 50} and result["errors"] == {}
    result = any_lab.drive("shares", f"{target}:{PORT + 1}", 50)
    assert result["answered"] == 0 and result["errors"] == {"ECONNREFUSED": 50}


@pytest.mark.parametrize("way", ["up", "down", "both"])
def test_bulk_is_checked_byte_for_byte(any_lab, way):
    assert any_lab.drive("bulk", f"{any_lab.backends['b1']}:{PORT}", way, 5_000_000)["ok"]
