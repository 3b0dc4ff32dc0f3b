"""How long is a partition without a leader when its leader's process is killed?"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from confluent_kafka.admin import AdminClient

from benchmarks.calm import wait_calm
from benchmarks.clusters import create, lead_as_preferred
from benchmarks.harness import Row, row_of
from tidemark.testing.process_cluster import ProcessCluster

_PARTITIONS: Final = 1_000
_SECONDS_MAX: Final = 30.0
_RUNS: Final = 3


def measure(cluster: ProcessCluster, folder: Path) -> Iterator[Row]:
    del folder
    victim, witness = 3, 1
    led_by_victim = {n: [victim, 1, 2] for n in range(_PARTITIONS)}
    create(cluster, "failover", _PARTITIONS, {}, led_by_victim)
    served = []
    for _ in range(_RUNS):
        cluster.start_missing()
        lead_as_preferred(cluster, "failover")
        wait_calm([broker.pid for broker in cluster.brokers.values()])
        # New each time, and so with no connection to the victim: a question to that one would be
        # kept for it until time is up.
        client = AdminClient({"bootstrap.servers": cluster.brokers[witness].bootstrap})
        client.list_topics("failover", timeout=10)
        started = time.perf_counter()
        cluster.brokers[victim].kill()
        served.append(_times_of_new_leaders(client, victim, started))
    case = f"{_PARTITIONS:,} partitions, their leader's process killed"
    for name, values, aim in (
        ("p50", [statistics.median(times) for times in served], 0.5),
        ("last", [max(times) for times in served], 1.5),
    ):
        yield row_of(f"without a leader, {name}", case, "s", values, aim=aim, at_most=True)


def _times_of_new_leaders(client: AdminClient, victim: int, started: float) -> list[float]:
    """When each partition has a leader that is not the victim; as a client finds out."""
    served: dict[int, float] = {}
    while len(served) < _PARTITIONS:
        now = time.perf_counter() - started
        if now > _SECONDS_MAX:
            raise RuntimeError(f"{_PARTITIONS - len(served)} partitions have no leader")
        topic = client.list_topics("failover", timeout=10).topics["failover"]
        now = time.perf_counter() - started
        for number, partition in topic.partitions.items():
            if partition.leader not in (-1, victim):
                served.setdefault(number, now)
        time.sleep(0.01)
    return list(served.values())
