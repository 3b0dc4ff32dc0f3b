"""What do three replicas cost, and how long is a partition without a leader?

Three broker processes on this machine. Every byte that a client sends crosses two more sockets and
is written three times, or six with the journal of `flush=commit`; all of it is held to the bare
loop, which writes it once. So is nothing here what three machines would do: the three brokers and
the client share its cores.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import trio
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks import librdkafka
from benchmarks.against_limits import Address, bare_loop
from benchmarks.anew import Anew
from benchmarks.calm import wait_calm
from benchmarks.harness import STEADY_LEADERS, Row, in_pairs, row_of_pairs
from benchmarks.raw_client import batch_of, produce_frame, produce_frame_to, produce_load
from tidemark.client import open_client
from tidemark.client.blocking import open_client as open_blocking_client
from tidemark.client.load import Load, percentile, steady
from tidemark.protocol.types import TopicPartition
from tidemark.testing.process_cluster import ProcessCluster, open_process_cluster

REPLICAS: Final = 3
_REQUESTS: Final = 200
_SMALL_REQUESTS: Final = 4_000
_RECORDS: Final = 100_000
_PAIRS: Final = 5
_REQUEST_BYTES: Final = 1_000_000
_LATENCY_SECONDS: Final = 10
_MANY_PARTITIONS: Final = 200
_FAILOVER_PARTITIONS: Final = 1_000
_FAILOVER_SECONDS_MAX: Final = 30.0


def measure(directory: Path) -> Iterator[Row]:
    """The rows for a cluster of three."""
    # Latency first: what the others leave the disk to write would be in it.
    for number, question in enumerate((_latency, _throughput, _many, _failover)):
        folder = directory / f"replication-{number}"
        folder.mkdir()
        with open_process_cluster(folder, settings=STEADY_LEADERS) as cluster:
            yield from question(cluster, folder)


def _throughput(cluster: ProcessCluster, folder: Path) -> Iterator[Row]:
    for flush, aim in (("os", 0.25), ("commit", 0.18)):
        with bare_loop(folder / f"bare-{flush}") as bare:
            yield _against_bare_loop(cluster, folder, bare, flush, aim)


def _against_bare_loop(
    cluster: ProcessCluster, folder: Path, bare: Address, flush: str, aim: float
) -> Row:
    def make(topic: str) -> None:
        create(cluster, topic, 1, {"flush": flush}, {0: [1, 2, 3]})
        lead_as_preferred(cluster, topic)

    begin = Anew(cluster.bootstrap, folder, f"three-{flush}", make)
    batch = batch_of(_REQUEST_BYTES, record_bytes=1_000)
    leader, bare_frame = _address_of(cluster, 1), produce_frame("bare", batch, acks=-1)
    return row_of_pairs(
        f"produce, 3 replicas, acks=all, flush={flush}",
        "1 MB requests, 1 connection, 5 in flight",
        "MB/s",
        in_pairs(
            lambda: _rate(leader, produce_frame(begin(), batch, acks=-1)),
            lambda: _bare_rate(bare, bare_frame),
            runs=_PAIRS,
        ),
        against="the bare loop",
        aim=aim,
    )


def _latency(cluster: ProcessCluster, folder: Path) -> Iterator[Row]:
    del folder
    create(cluster, "steady", 1, {"flush": "commit"})
    wait_calm([broker.pid for broker in cluster.brokers.values()])
    values = trio.run(_steady, cluster.bootstrap, "steady")
    for name, fraction, aim in (("p50", 0.5, 4.0), ("p99", 0.99, 15.0)):
        yield Row(
            question=f"latency: acknowledged, {name}",
            case="100/s, 3 replicas, flush=commit, acks=all",
            value=percentile(values, fraction) * 1e3,
            unit="ms",
            runs=len(values),
            aim=aim,
            at_most=True,
        )


async def _steady(bootstrap: str, topic: str) -> list[float]:
    load = Load(topic=topic, partitions=1, records=100 * _LATENCY_SECONDS)
    async with open_client(bootstrap) as client:
        return list((await steady(client, load, rate=100.0)).acknowledged)


def _many(cluster: ProcessCluster, folder: Path) -> Iterator[Row]:
    """One request to 200 partitions, against one of the same size to one; and against requests to
    one that have what each of the 200 gets."""
    del folder
    one, many = "one", "many"
    led_by_first = {n: [1, 2, 3] for n in range(_MANY_PARTITIONS)}
    create(cluster, many, _MANY_PARTITIONS, {"flush": "commit"}, led_by_first)
    create(cluster, one, 1, {"flush": "commit"}, {0: [1, 2, 3]})
    leader = _address_of(cluster, 1)
    lead_as_preferred(cluster, one, many)
    small = batch_of(_REQUEST_BYTES // _MANY_PARTITIONS, record_bytes=1_000)
    spread = produce_frame_to(many, dict.fromkeys(range(_MANY_PARTITIONS), small))
    whole = produce_frame(one, batch_of(_REQUEST_BYTES, record_bytes=1_000), acks=-1)
    yield row_of_pairs(
        "produce, 3 replicas, acks=all, flush=commit",
        f"{_MANY_PARTITIONS} partitions in each 1 MB request",
        "MB/s",
        in_pairs(lambda: _rate(leader, spread), lambda: _rate(leader, whole), runs=_PAIRS),
        against="one partition",
        aim=0.5,
    )
    alone = produce_frame(one, small, acks=-1)
    yield row_of_pairs(
        "produce, 3 replicas, acks=all, flush=commit",
        f"{_MANY_PARTITIONS} partitions in each 1 MB request, batches of 5 KB",
        "MB/s",
        in_pairs(
            lambda: _rate(leader, spread),
            lambda: _rate(leader, alone, requests=_SMALL_REQUESTS),
            runs=_PAIRS,
        ),
        against="one partition, a batch of 5 KB in each request",
        aim=0.5,
    )
    ours = {**librdkafka.COMMON, "bootstrap.servers": cluster.bootstrap}
    yield row_of_pairs(
        "produce, 3 replicas, acks=all, flush=commit",
        f"{_MANY_PARTITIONS} partitions in turn, 1 KB records, from librdkafka",
        "records/s",
        in_pairs(
            lambda: librdkafka.rate(ours, many, partitions=_MANY_PARTITIONS, records=_RECORDS),
            lambda: librdkafka.rate(ours, one, records=_RECORDS),
            runs=_PAIRS,
        ),
        against="one partition",
        aim=0.5,
    )


def _failover(cluster: ProcessCluster, folder: Path) -> Iterator[Row]:
    del folder
    victim, witness = 3, 1
    led_by_victim = {n: [victim, 1, 2] for n in range(_FAILOVER_PARTITIONS)}
    create(cluster, "failover", _FAILOVER_PARTITIONS, {}, led_by_victim)
    lead_as_preferred(cluster, "failover")
    client = AdminClient({"bootstrap.servers": cluster.brokers[witness].bootstrap})
    client.list_topics("failover", timeout=10)
    started = time.perf_counter()
    cluster.brokers[victim].kill()
    served = _times_of_new_leaders(client, victim, started)
    for name, value, aim in (("p50", statistics.median(served), 0.5), ("last", max(served), 1.5)):
        yield Row(
            question=f"without a leader, {name}",
            case=f"{_FAILOVER_PARTITIONS:,} partitions, their leader's process killed",
            value=value,
            unit="s",
            runs=len(served),
            aim=aim,
            at_most=True,
        )


def _times_of_new_leaders(client: AdminClient, victim: int, started: float) -> list[float]:
    """When each partition has a leader that is not the victim; as a client finds out."""
    served: dict[int, float] = {}
    while len(served) < _FAILOVER_PARTITIONS:
        now = time.perf_counter() - started
        if now > _FAILOVER_SECONDS_MAX:
            raise RuntimeError(f"{_FAILOVER_PARTITIONS - len(served)} partitions have no leader")
        topic = client.list_topics("failover", timeout=10).topics["failover"]
        now = time.perf_counter() - started
        for number, partition in topic.partitions.items():
            if partition.leader not in (-1, victim):
                served.setdefault(number, now)
        time.sleep(0.01)
    return list(served.values())


def create(
    cluster: ProcessCluster,
    topic: str,
    partitions: int,
    configs: Mapping[str, str],
    assignment: Mapping[int, list[int]] | None = None,
) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    if assignment is None:
        new = NewTopic(topic, partitions, REPLICAS, config=dict(configs))
    else:
        replicas = [assignment[n] for n in range(partitions)]
        new = NewTopic(topic, partitions, replica_assignment=replicas, config=dict(configs))
    for created in admin.create_topics([new]).values():
        created.result(60)


def leaders_of(
    cluster: ProcessCluster, topic: str, *, seconds_max: float = _FAILOVER_SECONDS_MAX
) -> dict[int, int]:
    """Who leads each partition, once all have a leader."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    deadline = time.monotonic() + seconds_max
    while True:
        partitions = (
            admin.list_topics(topic, timeout=_FAILOVER_SECONDS_MAX).topics[topic].partitions
        )
        leaders = {number: partition.leader for number, partition in partitions.items()}
        if leaders and min(leaders.values()) > 0:
            return leaders
        if time.monotonic() > deadline:
            left = sum(leader < 1 for leader in leaders.values())
            raise RuntimeError(f"{left} partitions of {topic} have no leader")
        time.sleep(0.05)


def lead_as_preferred(cluster: ProcessCluster, *topics: str) -> None:
    """Have the first replica of each partition lead it: on a busy machine others were elected."""
    for topic in topics:
        partitions = [TopicPartition(topic, number) for number in leaders_of(cluster, topic)]
        with open_blocking_client(cluster.bootstrap) as client:
            elected = client.run(
                client.admin.elect_leaders, partitions, timeout_seconds=_FAILOVER_SECONDS_MAX
            )
        for each in elected:
            if each.error is not None and not each.was_needless:
                raise each.error


def _address_of(cluster: ProcessCluster, node: int) -> Address:
    host, _, port = cluster.brokers[node].bootstrap.rpartition(":")
    return host, int(port)


def _rate(address: Address, frame: bytes, *, requests: int = _REQUESTS) -> float:
    return produce_load(address, frame, requests=requests).bytes_per_second / 1e6


def _bare_rate(address: Address, frame: bytes) -> float:
    load = produce_load(address, frame, requests=_REQUESTS, check=lambda _: None)
    return load.bytes_per_second / 1e6
