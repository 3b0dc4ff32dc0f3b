"""What do 10,000 idle replicas cost a broker, and how long does it start with them?

Three brokers with as many partitions of three replicas: each has them all, leads a third and
follows the others.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks.harness import Row, row_of
from benchmarks.matrix.processes import used
from benchmarks.replication import create, leaders_of
from tidemark.cli.processes import cpu_seconds
from tidemark.testing.process import BrokerProcess
from tidemark.testing.process_cluster import ProcessCluster, open_process_cluster

PARTITIONS: Final = 10_000
_TOPIC_PARTITIONS: Final = 1_000
"""A request for more would wait for longer than clients do."""
_LEADERS_SECONDS_MAX: Final = 300.0
_SETTLE_SECONDS: Final = 110
"""The balancer looks closely at new leaders for a minute, once it has heard of the last of them."""
_IDLE_SECONDS: Final = 10.0
_CASE: Final = f"{PARTITIONS:,} partitions with 3 replicas, in each broker"


def measure(directory: Path) -> Iterator[Row]:
    """Processor, memory, and the start of one of the brokers."""
    folder = directory / "idle"
    folder.mkdir()
    with open_process_cluster(folder) as cluster:
        brokers = list(cluster.brokers.values())
        before = [used([broker.pid]).resident_bytes for broker in brokers]
        for number in range(PARTITIONS // _TOPIC_PARTITIONS):
            create(cluster, f"idle-{number}", _TOPIC_PARTITIONS, {})
            leaders_of(cluster, f"idle-{number}", seconds_max=_LEADERS_SECONDS_MAX)
        time.sleep(_SETTLE_SECONDS)
        after = [used([broker.pid]).resident_bytes for broker in brokers]
        yield _processor(brokers)
        grown = max(a - b for a, b in zip(after, before, strict=True))
        yield Row(
            question="idle partitions: memory",
            case=_CASE,
            value=grown / PARTITIONS / 1024,
            unit="KiB a replica",
            aim=6.0,
            at_most=True,
        )
        yield _start(cluster)


def _processor(brokers: list[BrokerProcess]) -> Row:
    before = [cpu_seconds(broker.pid) for broker in brokers]
    time.sleep(_IDLE_SECONDS)
    used = [cpu_seconds(broker.pid) - start for broker, start in zip(brokers, before, strict=True)]
    return row_of(
        "idle partitions: processor of the busiest broker",
        _CASE,
        "% of a core",
        [100 * max(used) / _IDLE_SECONDS],
        aim=1.0,
        at_most=True,
    )


def _start(cluster: ProcessCluster) -> Row:
    """From the process's start to its ready line, after a graceful stop."""
    broker = cluster.brokers[max(cluster.brokers)]
    broker.stop(timeout_seconds=60)
    began = time.perf_counter()
    broker.start(timeout_seconds=120)
    return Row(
        question="start of a broker with idle partitions",
        case=f"{PARTITIONS:,} replicas, after a graceful stop, to its ready line",
        value=time.perf_counter() - began,
        unit="s",
        aim=5.0,
        at_most=True,
    )
