"""What do 10,000 idle replicas cost a broker, and how long does it start with them?

Three brokers with as many partitions of three replicas: each has them all, leads a third and
follows the others.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.clusters import create, leaders_of
from benchmarks.harness import Row, row_of
from benchmarks.machine import with_bytecode
from benchmarks.matrix.processes import used
from tidemark.cli.processes import cpu_seconds
from tidemark.client.blocking import open_client
from tidemark.testing.process import BrokerProcess
from tidemark.testing.process_cluster import ProcessCluster, open_process_cluster

PARTITIONS: Final = 10_000
_TOPIC_PARTITIONS: Final = 1_000
"""A request for more would wait for longer than clients do."""
_LEADERS_SECONDS_MAX: Final = 300.0
_SETTLE_SECONDS_MAX: Final = 900.0
_ASK_SECONDS: Final = 10.0
"""Between two questions whether leaders are even: to answer costs a plan for all partitions."""
_SETTLED_ANSWERS: Final = 3
"""In a row: what was noticed last has been told by then, and looked at."""
_IDLE_SECONDS: Final = 10.0
_IDLE_RUNS: Final = 3
_CASE: Final = f"{PARTITIONS:,} partitions with 3 replicas, in each broker"


def measure(directory: Path) -> Iterator[Row]:
    """Processor, memory, and the start of one of the brokers."""
    folder = directory / "idle"
    folder.mkdir()
    environment = with_bytecode(directory / "bytecode")
    with open_process_cluster(folder, environment=environment) as cluster:
        brokers = list(cluster.brokers.values())
        before = [used([broker.pid]).resident_bytes for broker in brokers]
        for number in range(PARTITIONS // _TOPIC_PARTITIONS):
            create(cluster, f"idle-{number}", _TOPIC_PARTITIONS, {})
            leaders_of(cluster, f"idle-{number}", seconds_max=_LEADERS_SECONDS_MAX)
        _wait_settled(cluster)
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


def _wait_settled(cluster: ProcessCluster) -> None:
    """Until nobody's lead would be moved, not even if nothing had to wait."""
    deadline = time.monotonic() + _SETTLE_SECONDS_MAX
    answers = 0
    with open_client(cluster.bootstrap) as client:
        while answers < _SETTLED_ANSWERS:
            time.sleep(_ASK_SECONDS)
            plan = client.run(partial(client.admin.balance_leaders, dry_run=True, now=True))
            answers = 0 if plan.moves else answers + 1
            if time.monotonic() > deadline:
                raise RuntimeError(f"{len(plan.moves)} leaders are still to be moved")
    time.sleep(_ASK_SECONDS)


def _processor(brokers: list[BrokerProcess]) -> Row:
    shares = []
    for _ in range(_IDLE_RUNS):
        before = [cpu_seconds(broker.pid) for broker in brokers]
        time.sleep(_IDLE_SECONDS)
        used = [cpu_seconds(broker.pid) - b for broker, b in zip(brokers, before, strict=True)]
        shares.append(100 * max(used) / _IDLE_SECONDS)
    return row_of(
        "idle partitions: processor of the busiest broker",
        _CASE,
        "% of a core",
        shares,
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
