"""What do two observers add to the leader of one partition that many read?

Readers are in three racks. Alone, the leader serves them all; with an observer in each of the other
two, it serves those in its own.

Three broker processes on this machine, which has fewer cores than that: measured by the clock, they
only take turns. So what counts is what the busiest of them spends on the processor while all read
all: with each on a machine of its own, it would be the one that everybody waits for. The partition
is written to all the while, which the leader has to take in, and the observers to pull.
"""

from __future__ import annotations

import os
import statistics
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.against_limits import Address
from benchmarks.harness import Row
from benchmarks.raw_client import batch_of, fetch_load, produce_frame, produce_load
from tidemark.client import TopicPartition
from tidemark.client.blocking import BlockingClient, open_client
from tidemark.client.read_levels import ANY_RACK
from tidemark.protocol.records.header import read_header
from tidemark.testing.process import BrokerProcess
from tidemark.testing.process_cluster import ProcessCluster, open_process_cluster

HOT: Final = TopicPartition("hot", 0)
LEADER: Final = 1
OBSERVERS: Final = (2, 3)
_BATCHES: Final = 200
_BATCH_BYTES: Final = 1_000_000
_READERS: Final = 9
"""As many near the leader as near each observer."""
_WRITES_PER_SECOND: Final = 5.0
_RUNS: Final = 5
_WAIT_SECONDS_MAX: Final = 30.0


def measure(directory: Path) -> Iterator[Row]:
    """The leader alone, then two observers in its place."""
    folder = directory / "observers"
    folder.mkdir()
    with (
        open_process_cluster(folder) as cluster,
        open_client(cluster.bootstrap) as client,
    ):
        batch = _fill(cluster)
        end = _BATCHES * read_header(batch).record_count
        frame = produce_frame(HOT.topic, batch, acks=-1)
        alone = _median(cluster, frame, end, [LEADER])
        client.run(client.admin.set_observers, {HOT: OBSERVERS})
        _wait_pulled(client, end)
        spread = _median(cluster, frame, end, (LEADER, *OBSERVERS))
    case = f"{_READERS} readers of one partition, {_WRITES_PER_SECOND:.0f} MB/s written to it"
    yield Row(
        question="fetch: bytes per processor second of the busiest broker",
        case=f"{case}; the leader alone",
        value=alone / 1e6,
        unit="MB/s",
        runs=_RUNS,
    )
    yield Row(
        question="fetch: bytes per processor second of the busiest broker",
        case=f"{case}; two observers",
        value=spread / 1e6,
        unit="MB/s",
        runs=_RUNS,
        against="the leader alone",
        ratio=spread / alone,
        aim=1.6,
    )


def _fill(cluster: ProcessCluster) -> bytes:
    """A partition to be read; one of its batches."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    new = NewTopic(HOT.topic, 1, replica_assignment=[[LEADER]], config={})
    admin.create_topics([new])[HOT.topic].result(60)
    batch = batch_of(_BATCH_BYTES)
    frame = produce_frame(HOT.topic, batch, acks=-1)
    produce_load(_address(cluster, LEADER), frame, requests=_BATCHES)
    return batch


def _wait_pulled(client: BlockingClient, end: int) -> None:
    """Until the observers hold all that is read."""
    deadline = time.monotonic() + _WAIT_SECONDS_MAX
    while time.monotonic() < deadline:
        described = client.run(client.admin.describe_replicas, [HOT])[HOT]
        ends = [each.end_offset or 0 for each in described.observers]
        if len(ends) == len(OBSERVERS) and min(ends) >= end:
            return
        time.sleep(0.1)
    raise RuntimeError("the observers do not hold all yet")


def _median(cluster: ProcessCluster, frame: bytes, end: int, sources: Sequence[int]) -> float:
    return statistics.median(_run(cluster, frame, end, sources) for _ in range(_RUNS))


def _run(cluster: ProcessCluster, frame: bytes, end: int, sources: Sequence[int]) -> float:
    """Bytes that all readers got, over the seconds that the busiest broker spent on it."""
    nodes = [sources[n % len(sources)] for n in range(_READERS)]

    def read(node: int) -> int:
        return _read(_address(cluster, node), end, is_leader=node == LEADER)

    with _written(_address(cluster, LEADER), frame):
        before = {node: _cpu_seconds(broker) for node, broker in cluster.brokers.items()}
        with ThreadPoolExecutor(_READERS) as readers:
            loads = list(readers.map(read, nodes))
        spent = [_cpu_seconds(cluster.brokers[node]) - before[node] for node in before]
    return sum(loads) / max(spent)


def _read(address: Address, end: int, *, is_leader: bool) -> int:
    # Whoever says nothing of a rack is served by the leader alone, and one of any rack by the rest.
    rack = "" if is_leader else ANY_RACK
    load = fetch_load(address, HOT.topic, end_offset=end, bytes_max=1 << 20, rack=rack)
    return load.size_bytes


@contextmanager
def _written(leader: Address, frame: bytes) -> Iterator[None]:
    """The partition is written to at its pace, as long as this block lasts."""
    ended = threading.Event()

    def write() -> None:
        while not ended.wait(1 / _WRITES_PER_SECOND):
            produce_load(leader, frame, requests=1)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        ended.set()
        writer.join()


def _address(cluster: ProcessCluster, node: int) -> Address:
    host, _, port = cluster.brokers[node].bootstrap.rpartition(":")
    return host, int(port)


def _cpu_seconds(broker: BrokerProcess) -> float:
    fields = Path(f"/proc/{broker.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
