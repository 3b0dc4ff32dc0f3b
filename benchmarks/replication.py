"""What do three replicas cost? (How long a partition is without a leader: `failover`.)

Three broker processes on this machine. Every byte that a client sends crosses two more sockets and
is written three times, or six with the journal of `flush=commit`; all of it is held to the bare
loop, which writes it once. So is nothing here what three machines would do: the three brokers and
the client share its cores.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import trio

from benchmarks import failover, librdkafka
from benchmarks.against_limits import Address, bare_loop
from benchmarks.calm import wait_calm
from benchmarks.clusters import create, lead_as_preferred
from benchmarks.harness import STEADY_LEADERS, Row, in_pairs, row_of_pairs
from benchmarks.kept_short import KeptShort
from benchmarks.matrix.measured import histogram_of, latency_rows
from benchmarks.raw_client import Load as RawLoad
from benchmarks.raw_client import batch_of, produce_frame, produce_frame_to, produce_load
from tidemark.client import open_client
from tidemark.client.histogram import Histogram
from tidemark.client.load import Load, steady
from tidemark.testing.process_cluster import ProcessCluster, open_process_cluster

_REQUESTS: Final = 200
_LARGE_REQUESTS: Final = 400
_SMALL_REQUESTS: Final = 4_000
_RECORDS: Final = 100_000
_PAIRS: Final = 5
_LARGE_PAIRS: Final = 8
_REQUEST_BYTES: Final = 1_000_000
_LATENCY_RUNS: Final = 5
_LATENCY_SECONDS: Final = 5
_MANY_PARTITIONS: Final = 200


def measure(directory: Path) -> Iterator[Row]:
    """The rows for a cluster of three."""
    # Latency first: what the others leave the disk to write would be in it.
    for number, question in enumerate((_latency, _throughput, _many, failover.measure)):
        folder = directory / f"replication-{number}"
        folder.mkdir()
        with open_process_cluster(folder, settings=STEADY_LEADERS) as cluster:
            yield from question(cluster, folder)


def _throughput(cluster: ProcessCluster, folder: Path) -> Iterator[Row]:
    for flush, aim in (("os", 0.25), ("commit", 0.18)):
        with bare_loop(folder / f"bare-{flush}") as bare:
            yield _against_bare_loop(cluster, bare, flush, aim)


def _against_bare_loop(cluster: ProcessCluster, bare: Address, flush: str, aim: float) -> Row:
    def make(topic: str) -> None:
        create(cluster, topic, 1, {"flush": flush}, {0: [1, 2, 3]})
        lead_as_preferred(cluster, topic)

    batch = batch_of(_REQUEST_BYTES, record_bytes=1_000)
    leader, bare_frame = _address_of(cluster, 1), produce_frame("bare", batch, acks=-1)

    def run(topic: str) -> RawLoad:
        frame = produce_frame(topic, batch, acks=-1)
        return produce_load(leader, frame, requests=_LARGE_REQUESTS)

    with KeptShort(cluster.bootstrap, f"three-{flush}", make) as topic:
        topic.warmed(lambda name: run(name).size_bytes)
        return row_of_pairs(
            f"produce, 3 replicas, acks=all, flush={flush}",
            "1 MB requests, 1 connection, 5 in flight",
            "MB/s",
            in_pairs(
                lambda: run(topic()).bytes_per_second / 1e6,
                lambda: _bare_rate(bare, bare_frame),
                runs=_LARGE_PAIRS,
                at_rest=True,
            ),
            against="the bare loop",
            aim=aim,
        )


def _latency(cluster: ProcessCluster, folder: Path) -> Iterator[Row]:
    del folder
    create(cluster, "steady", 1, {"flush": "commit"})
    wait_calm([broker.pid for broker in cluster.brokers.values()])
    runs = [trio.run(_steady, cluster.bootstrap, "steady") for _ in range(_LATENCY_RUNS)]
    case = "100/s, 3 replicas, flush=commit, acks=all"
    yield from latency_rows("latency: acknowledged", case, runs, p50=4.0, p99=15.0)


async def _steady(bootstrap: str, topic: str) -> Histogram:
    load = Load(topic=topic, partitions=1, records=100 * _LATENCY_SECONDS)
    async with open_client(bootstrap) as client:
        return histogram_of((await steady(client, load, rate=100.0)).acknowledged)


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
        in_pairs(
            lambda: _rate(leader, spread),
            lambda: _rate(leader, whole),
            runs=_PAIRS,
            at_rest=True,
        ),
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
            at_rest=True,
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
            at_rest=True,
        ),
        against="one partition",
        aim=0.5,
    )


def _address_of(cluster: ProcessCluster, node: int) -> Address:
    host, _, port = cluster.brokers[node].bootstrap.rpartition(":")
    return host, int(port)


def _rate(address: Address, frame: bytes, *, requests: int = _REQUESTS) -> float:
    return produce_load(address, frame, requests=requests).bytes_per_second / 1e6


def _bare_rate(address: Address, frame: bytes) -> float:
    load = produce_load(address, frame, requests=_LARGE_REQUESTS, check=lambda _: None)
    return load.bytes_per_second / 1e6
