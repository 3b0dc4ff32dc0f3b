"""What becomes of packets on a bad link, and that nothing else happens to them."""

from __future__ import annotations

import hashlib
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Final

import pytest

from tests.chaos.brokers import ChaosCluster
from tests.chaos.detour import Waiting
from tests.chaos.faults import possible
from tests.chaos.namespaces import Namespaces
from tests.chaos.networks import CLIENTS, Network, may_make_namespaces, open_network
from tests.chaos.weather import Weather, fate_in

_NODE: Final = 1
_THERE: Final = (CLIENTS, _NODE)
_BACK: Final = (_NODE, CLIENTS)
_PORT: Final = 5000
_SECONDS: Final = 20.0
_SOON: Final = 0.5
_ECHO: Final = f"""
import hashlib
import socket
at = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
at.bind(("0.0.0.0", {_PORT}))
print("ready", flush=True)
while True:
    at.sendto(*at.recvfrom(100))
"""
_TAKE_ALL: Final = f"""
import hashlib, socket
listener = socket.create_server(("0.0.0.0", {_PORT}))
print("ready", flush=True)
caller, _ = listener.accept()
digest = hashlib.sha256()
while data := caller.recv(1 << 16):
    digest.update(data)
caller.sendall(digest.digest())
"""
needs_namespaces = pytest.mark.skipif(
    not may_make_namespaces(), reason="needs root: no network namespaces"
)


def test_as_many_packets_are_lost_doubled_and_held_up_as_is_said() -> None:
    rng = Random(1)
    weather = Weather(lost=0.2, doubled=0.5, held_up=0.25, held_up_seconds=3.0, delay_seconds=1.0)
    fates = [weather.fate(rng) for _ in range(4000)]
    arrived = [fate for fate in fates if fate]
    copies = [at for fate in arrived for at in fate]
    assert len(arrived) / len(fates) == pytest.approx(0.8, abs=0.05)
    assert sum(len(fate) == 2 for fate in arrived) / len(arrived) == pytest.approx(0.5, abs=0.05)
    assert sum(at > 1.0 for at in copies) / len(copies) == pytest.approx(0.25, abs=0.05)
    assert all(1.0 <= at <= 4.0 for at in copies)


def test_a_packet_meets_one_weather_after_the_other() -> None:
    late, twice, gone = Weather(delay_seconds=2.0), Weather(doubled=1.0), Weather(lost=1.0)
    assert fate_in([], Random(1)) == [0.0]
    assert fate_in([late, twice, late], Random(1)) == [4.0, 4.0]
    assert fate_in([twice, gone], Random(1)) == []


def test_what_is_equally_late_leaves_in_the_order_it_came_in() -> None:
    waiting = Waiting()
    for due, frame in [(2.0, b"b"), (1.0, b"a"), (2.0, b"c"), (2.0, b"d")]:
        waiting.add(due, frame)
    assert list(waiting.due(0.5)) == []
    assert list(waiting.due(1.5)) == [b"a"]
    assert list(waiting.due(2.0)) == [b"b", b"c", b"d"]


def test_a_machine_without_packets_says_why_it_does_not_lose_any(tmp_path: Path) -> None:
    nodes = [1, 2, 3]
    with open_network(nodes, "proxies") as proxies:
        with_proxies = possible(ChaosCluster({}, proxies, tmp_path, speaks_tls=False))
    assert with_proxies["packets lost"]
    assert not with_proxies["late network"]
    with_neither = possible(ChaosCluster({}, Namespaces(nodes), tmp_path, speaks_tls=False))
    assert with_neither["packets lost"]
    assert with_neither["late network"]


@needs_namespaces
def test_packets_between_namespaces_are_lost_doubled_and_overtaken() -> None:
    with open_network([_NODE], "namespaces") as network, _running(network, _ECHO):
        packets = network.packets
        assert packets is not None
        numbers = list(range(50))
        assert _echoed(network, numbers, 50) == numbers
        packets.disturb({_THERE: [Weather(lost=1.0)]})
        assert _echoed(network, numbers, 1) == []
        packets.disturb({_BACK: [Weather(lost=1.0)]})
        assert _echoed(network, numbers, 1) == []
        packets.disturb({_THERE: [Weather(doubled=1.0)]})
        assert sorted(_echoed(network, numbers, 100)) == sorted(2 * numbers)
        packets.disturb({_BACK: [Weather(held_up=0.5, held_up_seconds=0.5)]})
        overtaken = _echoed(network, numbers, 50)
        assert sorted(overtaken) == numbers != overtaken
        packets.disturb({_BACK: [Weather(lost=1.0)]})
        network.cut([_BACK])
        packets.disturb({})
        assert _echoed(network, numbers, 1) == []
        network.cut([])
        assert _echoed(network, numbers, 50) == numbers


@needs_namespaces
def test_what_tcp_carries_over_a_bad_link_arrives_as_it_was() -> None:
    data = Random(1).randbytes(1 << 20)
    with open_network([_NODE], "namespaces") as network, _running(network, _TAKE_ALL):
        packets = network.packets
        assert packets is not None
        weather = Weather(lost=0.05, doubled=0.1, held_up=0.1, held_up_seconds=0.01)
        packets.disturb({_THERE: [weather], _BACK: [weather]})
        with socket.create_connection(_address(network), timeout=60) as caller:
            caller.sendall(data)
            caller.shutdown(socket.SHUT_WR)
            received = b"".join(iter(lambda: caller.recv(100), b""))
    assert received == hashlib.sha256(data).digest()


@contextmanager
def _running(network: Network, script: str) -> Iterator[None]:
    """On the broker's machine, from when it has said that it is ready."""
    command = [*network.prefix(_NODE), sys.executable, "-c", script]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        try:
            yield
        finally:
            process.kill()


def _echoed(network: Network, numbers: Sequence[int], count: int) -> list[int]:
    """What comes back of these: so many, or as many as there are soon."""
    found: list[int] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking, suppress(TimeoutError):
        asking.connect(_address(network))
        for number in numbers:
            asking.send(str(number).encode())
        while len(found) < count:
            asking.settimeout(_SECONDS if count > 1 else _SOON)
            found.append(int(asking.recv(100)))
    return found


def _address(network: Network) -> tuple[str, int]:
    host, _, _ = network.bootstrap(_NODE).partition(":")
    return host, _PORT
