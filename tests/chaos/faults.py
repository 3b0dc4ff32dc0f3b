"""What is done to the cluster. A fault is a context manager: it is there while its block lasts.

Ending a fault leaves the world whole again (links joined, processes running, disks mounted), but
does not wait for the cluster to have recovered: that is measured.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from random import Random
from typing import Final, TypeAlias

from tests.chaos.brokers import ChaosBroker, ChaosCluster
from tests.chaos.networks import Link, links_of

Fault: TypeAlias = Callable[[ChaosCluster, Random], AbstractContextManager[str]]
"""Yields what exactly it did, for the report."""

_EXIT_SECONDS: Final = 20.0


@contextmanager
def kill_one(cluster: ChaosCluster, rng: Random) -> Iterator[str]:
    broker = _any(cluster, rng)
    broker.kill_if_running()
    yield f"kill -9 of {broker.node}"
    cluster.start_missing()


@contextmanager
def kill_all(cluster: ChaosCluster, rng: Random) -> Iterator[str]:
    del rng
    for broker in cluster.brokers.values():
        broker.kill_if_running()
    yield "kill -9 of all"
    cluster.start_missing()


@contextmanager
def kill_again_and_again(cluster: ChaosCluster, rng: Random) -> Iterator[str]:
    """Each as soon as the one before is back: new leaders die young."""
    order = rng.sample(cluster.nodes, len(cluster.nodes))
    for node in order:
        broker = cluster.brokers[node]
        broker.kill_if_running()
        time.sleep(rng.uniform(0.0, 0.5))
        cluster.start_missing()
    yield f"kill -9 of {order}, one after the other"


@contextmanager
def pause_one(cluster: ChaosCluster, rng: Random) -> Iterator[str]:
    broker = _any(cluster, rng)
    if not broker.is_running:
        yield "nobody to pause"
        return
    broker.pause()
    try:
        yield f"pause of {broker.node}"
    finally:
        if broker.is_running:
            broker.resume()


@contextmanager
def isolate_one(cluster: ChaosCluster, rng: Random) -> Iterator[str]:
    """One broker can neither speak to the others nor hear them; clients reach all."""
    node = rng.choice(cluster.nodes)
    with _cut(cluster, [link for link in links_of(cluster.nodes) if node in link]) as said:
        yield said


@contextmanager
def deafen_one(cluster: ChaosCluster, rng: Random) -> Iterator[str]:
    """One broker still speaks to the others and does not hear them."""
    node = rng.choice(cluster.nodes)
    with _cut(cluster, [(a, b) for a, b in links_of(cluster.nodes) if b == node]) as said:
        yield said


@contextmanager
def cut_some_links(cluster: ChaosCluster, rng: Random) -> Iterator[str]:
    """Any subset of the directed links: for three brokers, one of 64."""
    links = [link for link in links_of(cluster.nodes) if rng.random() < 0.5]
    with _cut(cluster, links) as said:
        yield said


@contextmanager
def flap(cluster: ChaosCluster, rng: Random) -> Iterator[str]:
    """Links come and go, many times."""
    for _ in range(8):
        links = [link for link in links_of(cluster.nodes) if rng.random() < 0.3]
        cluster.network.cut(links)
        time.sleep(rng.uniform(0.05, 0.6))
    cluster.network.cut(())
    yield "flapping links"


@contextmanager
def slow_network(cluster: ChaosCluster, rng: Random) -> Iterator[str]:
    node = rng.choice(cluster.nodes)
    rate = rng.choice(["256kbit", "2mbit", "16mbit"])
    cluster.network.throttle(node, rate)
    try:
        yield f"{node} sends at {rate}"
    finally:
        cluster.network.throttle(node, None)


@contextmanager
def power_cut(cluster: ChaosCluster, rng: Random) -> Iterator[str]:
    """One, some or all lose their power at once, and with it what was not synced."""
    count = rng.choice([1, 1, 2, len(cluster.nodes)])
    nodes = rng.sample(cluster.nodes, min(count, len(cluster.nodes)))
    brokers = [cluster.brokers[node] for node in nodes]
    for broker in brokers:
        broker.disk.cut_power()
    for broker in brokers:
        broker.kill_if_running()
    for broker in brokers:
        broker.disk.restore()
    yield f"power cut of {nodes}"
    cluster.start_missing()


@contextmanager
def full_disk(cluster: ChaosCluster, rng: Random) -> Iterator[str]:
    broker = _any(cluster, rng)
    broker.disk.fill()
    try:
        yield f"full disk of {broker.node}"
    finally:
        broker.disk.free()
        cluster.start_missing()


@contextmanager
def failing_sync(cluster: ChaosCluster, rng: Random) -> Iterator[str]:
    """The next sync fails. The broker has to end: it knows nothing about its disk any more."""
    broker = _any(cluster, rng)
    if not broker.is_running:
        yield "nobody whose sync could fail"
        return
    what = "inject=fdatasync,fsync:error=EIO:when=1"
    with broker.inject("trace=fdatasync,fsync", what):
        ended = _wait_until(lambda: not broker.is_running, _EXIT_SECONDS)
    yield f"failed sync of {broker.node}: " + ("it ended" if ended else "IT GOES ON")
    broker.kill_if_running()
    cluster.start_missing()


@contextmanager
def slow_sync(cluster: ChaosCluster, rng: Random) -> Iterator[str]:
    broker = _any(cluster, rng)
    delay_ms = rng.choice([10, 100, 1000])
    if not broker.is_running:
        yield "nobody whose disk could be slow"
        return
    delay = f"inject=fdatasync,fsync:delay_enter={delay_ms}ms"
    with broker.inject("trace=fdatasync,fsync", delay):
        yield f"{delay_ms} ms a sync at {broker.node}"


@contextmanager
def bit_flip(cluster: ChaosCluster, rng: Random) -> Iterator[str]:
    """One broker stops, a bit of what it has stored turns over, and it starts again."""
    broker = _any(cluster, rng)
    broker.kill_if_running()
    files = [path for path in broker.data_dir.rglob("*.log") if path.stat().st_size]
    said = "no file to damage"
    if files:
        path = rng.choice(sorted(files))
        at = rng.randrange(path.stat().st_size)
        _flip(path, at, rng.randrange(8))
        said = f"a bit of {path.relative_to(broker.data_dir)} at {at} of {broker.node}"
    yield said
    cluster.start_missing()


FAULTS: Final[dict[str, Fault]] = {
    "kill one": kill_one,
    "kill all": kill_all,
    "kill one after the other": kill_again_and_again,
    "pause one": pause_one,
    "isolate one": isolate_one,
    "deafen one": deafen_one,
    "cut some links": cut_some_links,
    "flapping links": flap,
    "slow network": slow_network,
    "power cut": power_cut,
    "full disk": full_disk,
    "failing sync": failing_sync,
    "slow sync": slow_sync,
    "bit flip": bit_flip,
}
_OF_THE_NETWORK: Final = {
    "isolate one",
    "deafen one",
    "cut some links",
    "flapping links",
    "slow network",
}
_OF_THE_DISK: Final = {"power cut", "full disk"}
_BY_STRACE: Final = {"failing sync", "slow sync"}


def possible(cluster: ChaosCluster) -> dict[str, str]:
    """Every fault by name, with the reason why this machine cannot have it, or nothing."""
    reasons = dict.fromkeys(FAULTS, "")
    if not cluster.network.can_cut:
        reasons |= dict.fromkeys(_OF_THE_NETWORK, "no network namespaces")
    if not all(broker.disk.can_fail for broker in cluster.brokers.values()):
        reasons |= dict.fromkeys(_OF_THE_DISK, "no disks of their own")
    if shutil.which("strace") is None or os.geteuid() != 0:
        reasons |= dict.fromkeys(_BY_STRACE, "no strace")
    return reasons


def _any(cluster: ChaosCluster, rng: Random) -> ChaosBroker:
    return cluster.brokers[rng.choice(cluster.nodes)]


@contextmanager
def _cut(cluster: ChaosCluster, links: Sequence[Link]) -> Iterator[str]:
    cluster.network.cut(links)
    try:
        yield "cut " + (", ".join(f"{a}→{b}" for a, b in links) or "nothing")
    finally:
        cluster.network.cut(())


def _flip(path: Path, at: int, bit: int) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        (byte,) = file.read(1)
        file.seek(at)
        file.write(bytes([byte ^ (1 << bit)]))


def _wait_until(is_so: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True
