"""Links that are cut, come and go, are slow, or lose some of what they carry."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from random import Random

from tests.chaos.brokers import ChaosCluster
from tests.chaos.faults.fault import Fault
from tests.chaos.networks import CLIENTS, Link, Wires, links_of
from tests.chaos.weather import Weather


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
def mute_one(cluster: ChaosCluster, rng: Random) -> Iterator[str]:
    """One broker still hears the others, and they do not hear it."""
    node = rng.choice(cluster.nodes)
    with _cut(cluster, [(a, b) for a, b in links_of(cluster.nodes) if a == node]) as said:
        yield said


@contextmanager
def cut_some_links(cluster: ChaosCluster, rng: Random) -> Iterator[str]:
    """Any subset of the directed links: for three brokers, one of 64."""
    links = [link for link in links_of(cluster.nodes) if rng.random() < 0.5]
    with _cut(cluster, links) as said:
        yield said


def exactly(links: Sequence[Link]) -> Fault:
    """Just these links."""
    return partial(_cut_as_said, links=links)


@contextmanager
def _cut_as_said(cluster: ChaosCluster, rng: Random, *, links: Sequence[Link]) -> Iterator[str]:
    del rng
    with _cut(cluster, links) as said:
        yield said


@contextmanager
def cut_clients_off(cluster: ChaosCluster, rng: Random) -> Iterator[str]:
    """The brokers hear each other, and clients do not reach one of them, or do not hear it."""
    node = rng.choice(cluster.nodes)
    links = [(CLIENTS, node), (node, CLIENTS)]
    with _cut(cluster, rng.choice([links, links[:1], links[1:]])) as said:
        yield said


@contextmanager
def flap(cluster: ChaosCluster, rng: Random) -> Iterator[str]:
    """Links come and go, many times."""
    for _ in range(8):
        with cluster.cutting([link for link in links_of(cluster.nodes) if rng.random() < 0.3]):
            time.sleep(rng.uniform(0.05, 0.6))
        time.sleep(rng.uniform(0.0, 0.3))
    yield "flapping links"


@contextmanager
def slow_network(cluster: ChaosCluster, rng: Random) -> Iterator[str]:
    node = rng.choice(cluster.nodes)
    bytes_per_second = rng.choice([32_000, 256_000, 2_000_000])
    cluster.network.throttle(node, bytes_per_second)
    try:
        yield f"{node} sends {bytes_per_second} bytes a second"
    finally:
        cluster.network.throttle(node, None)


@contextmanager
def late_network(cluster: ChaosCluster, rng: Random) -> Iterator[str]:
    """What some say to others arrives late, but in order: around the time that elections take."""
    links = [link for link in links_of(cluster.nodes) if rng.random() < 0.5]
    seconds = rng.choice([0.02, 0.2, 0.7, 1.5])
    said = f"{seconds} s later on {_named(links)}"
    if cluster.network.packets is not None:
        with cluster.disturbing(links, Weather(delay_seconds=seconds)):
            yield said
        return
    wires = _wires(cluster)
    wires.delay(links, seconds)
    try:
        yield said
    finally:
        wires.delay((), 0)


@contextmanager
def lose_packets(cluster: ChaosCluster, rng: Random) -> Iterator[str]:
    """Some do not arrive, of brokers and of clients: now and then, or so many that little does."""
    lost = rng.choice([0.01, 0.05, 0.2, 0.4])
    with _disturbed(cluster, rng, Weather(lost=lost)) as links:
        yield f"{lost:.0%} of the packets lost on {links}"


@contextmanager
def hold_packets_up(cluster: ChaosCluster, rng: Random) -> Iterator[str]:
    """Some are overtaken by those behind them."""
    held_up, seconds = rng.choice([0.1, 0.5]), rng.choice([0.01, 0.1, 0.5])
    with _disturbed(cluster, rng, Weather(held_up=held_up, held_up_seconds=seconds)) as links:
        yield f"{held_up:.0%} of the packets up to {seconds} s late on {links}"


@contextmanager
def double_packets(cluster: ChaosCluster, rng: Random) -> Iterator[str]:
    """Some arrive twice, the copy at once or behind others."""
    doubled = rng.choice([0.05, 0.5])
    weather = Weather(doubled=doubled, held_up=0.2, held_up_seconds=0.2)
    with _disturbed(cluster, rng, weather) as links:
        yield f"{doubled:.0%} of the packets doubled on {links}"


@contextmanager
def reset(cluster: ChaosCluster, rng: Random) -> Iterator[str]:
    """Connections break, again and again, and can be made again at once."""
    links = links_of([CLIENTS, *cluster.nodes])
    for _ in range(rng.randint(1, 10)):
        _wires(cluster).reset([link for link in links if rng.random() < 0.3])
        time.sleep(rng.uniform(0.01, 0.4))
    yield "connections reset"


def _wires(cluster: ChaosCluster) -> Wires:
    wires = cluster.network.wires
    assert wires is not None, "this fault is for networks that pass on what connections carry"
    return wires


@contextmanager
def _disturbed(cluster: ChaosCluster, rng: Random, weather: Weather) -> Iterator[str]:
    links = [link for link in links_of([CLIENTS, *cluster.nodes]) if rng.random() < 0.5]
    with cluster.disturbing(links, weather):
        yield _named(links)


@contextmanager
def _cut(cluster: ChaosCluster, links: Sequence[Link]) -> Iterator[str]:
    with cluster.cutting(links):
        yield "cut " + _named(links)


def _named(links: Sequence[Link]) -> str:
    names = {CLIENTS: "clients"}
    return ", ".join(f"{names.get(a, a)}→{names.get(b, b)}" for a, b in links) or "nothing"
