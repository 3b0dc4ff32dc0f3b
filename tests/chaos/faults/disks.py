"""Disks that lose their power, are full, or fail to sync."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from random import Random
from typing import Final

from tests.chaos.brokers import ChaosBroker, ChaosCluster
from tests.chaos.faults.fault import WRONG, Fault, any_broker, wait_until

_SYNCS: Final = "fdatasync,fsync,pwritev2"
"""The last writes to the journal, and syncs what it has written."""
_FAILED_SYNC_AT_MAX: Final = 40
_REACHED_SECONDS: Final = 15.0
_EXIT_SECONDS: Final = 10.0


@contextmanager
def power_cut_of_one(cluster: ChaosCluster, rng: Random) -> Iterator[str]:
    with _power_cut(cluster, [rng.choice(cluster.nodes)]) as said:
        yield said


@contextmanager
def power_cut_of_some(cluster: ChaosCluster, rng: Random) -> Iterator[str]:
    with _power_cut(cluster, rng.sample(cluster.nodes, cluster.majority)) as said:
        yield said


@contextmanager
def power_cut_of_all(cluster: ChaosCluster, rng: Random) -> Iterator[str]:
    with _power_cut(cluster, rng.sample(cluster.nodes, len(cluster.nodes))) as said:
        yield said


@contextmanager
def _power_cut(cluster: ChaosCluster, nodes: Sequence[int]) -> Iterator[str]:
    cluster.cut_power(nodes)
    yield f"power cut of {nodes}"
    cluster.start_missing()


@contextmanager
def full_disk(cluster: ChaosCluster, rng: Random) -> Iterator[str]:
    broker = any_broker(cluster, rng)
    broker.disk.fill()
    try:
        yield f"full disk of {broker.node}"
    finally:
        broker.disk.free()
        cluster.start_missing()


@contextmanager
def failing_sync(cluster: ChaosCluster, rng: Random) -> Iterator[str]:
    number = rng.randint(1, _FAILED_SYNC_AT_MAX)
    with _sync_failing(cluster, any_broker(cluster, rng), number) as said:
        yield said


def failing_at(node: int, number: int) -> Fault:
    """A sync that fails at a place of one's choice."""
    return partial(_failing_as_said, node=node, number=number)


def synced_nothing(trace: str) -> bool:
    """Whether all that failed were writes that sync nothing. Such a call has the same name: the
    journal's note of what is durable, say, which the next block is written over."""
    failed = [line for line in trace.splitlines() if line.endswith("(INJECTED)")]
    return all("pwritev2(" in line and ", 0) = -1 EIO" in line for line in failed)


@contextmanager
def _failing_as_said(
    cluster: ChaosCluster, rng: Random, *, node: int, number: int
) -> Iterator[str]:
    del rng
    with _sync_failing(cluster, cluster.brokers[node], number) as said:
        yield said


@contextmanager
def _sync_failing(cluster: ChaosCluster, broker: ChaosBroker, number: int) -> Iterator[str]:
    """Each thread's nth sync since a start fails, once; further ones would succeed.

    The broker has to end at the first: it knows nothing about its disk any more.
    """
    trace = cluster.directory / f"broker-{broker.node}.syncs"
    broker.kill_if_running()
    what = f"inject={_SYNCS}:error=EIO:when={number}"
    # -D: the broker stays our child, with its own process id.
    broker.under = ["strace", "-D", "-f", "-qq", "-o", str(trace), "-e", f"trace={_SYNCS}"]
    broker.under += ["-e", what]
    trace.write_text("")
    broker.spawn()

    def has_failed() -> bool:
        return "INJECTED" in trace.read_text() or not broker.is_running

    said = f"sync {number} fails at {broker.node}: "
    if not wait_until(has_failed, _REACHED_SECONDS):
        said += "it does not come so far"
    elif wait_until(lambda: not broker.is_running, _EXIT_SECONDS):
        said += "it ends"
    elif synced_nothing(trace.read_text()):
        said += "it was only written, and it goes on"
    else:
        said = f"{WRONG}{said}it goes on"
    broker.kill_if_running()
    yield said
    cluster.start_missing()


@contextmanager
def slow_sync(cluster: ChaosCluster, rng: Random) -> Iterator[str]:
    broker = any_broker(cluster, rng)
    delay_ms = rng.choice([10, 100, 1000])
    if not broker.is_running:
        yield "nobody whose disk could be slow"
        return
    delay = f"inject={_SYNCS}:delay_enter={delay_ms}ms"
    with broker.inject(f"trace={_SYNCS}", delay):
        time.sleep(0.1)
        yield f"{delay_ms} ms a sync at {broker.node}"
