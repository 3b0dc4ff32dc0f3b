"""Processes that end, and processes that stand still."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from random import Random

from tests.chaos.brokers import ChaosCluster
from tests.chaos.faults.fault import any_broker


@contextmanager
def kill_one(cluster: ChaosCluster, rng: Random) -> Iterator[str]:
    broker = any_broker(cluster, rng)
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
    """Each about when the one before is back, or not quite: new leaders die young."""
    order = rng.sample(cluster.nodes, len(cluster.nodes))
    for node in order:
        cluster.brokers[node].kill_if_running()
        time.sleep(rng.uniform(0.0, 0.5))
        cluster.start_missing()
        time.sleep(rng.uniform(0.3, 2.0))
    yield f"kill -9 of {order}, one after the other"


@contextmanager
def pause_one(cluster: ChaosCluster, rng: Random) -> Iterator[str]:
    with _paused(cluster, [rng.choice(cluster.nodes)]) as said:
        yield said


@contextmanager
def pause_all_but_one(cluster: ChaosCluster, rng: Random) -> Iterator[str]:
    """Who is left has no majority; each of the others wakes up thinking it is still then."""
    with _paused(cluster, rng.sample(cluster.nodes, len(cluster.nodes) - 1)) as said:
        yield said


@contextmanager
def _paused(cluster: ChaosCluster, nodes: Sequence[int]) -> Iterator[str]:
    brokers = [cluster.brokers[node] for node in nodes if cluster.brokers[node].is_running]
    for broker in brokers:
        broker.pause()
    try:
        yield f"pause of {[broker.node for broker in brokers]}"
    finally:
        for broker in brokers:
            if broker.is_running:
                broker.resume()
