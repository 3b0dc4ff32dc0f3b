"""The paths of a record, each as a load that goes on for as long as it is looked at."""

from __future__ import annotations

import itertools
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.against_limits import Address, address_of
from benchmarks.harness import STEADY_LEADERS
from benchmarks.raw_client import (
    batch_of,
    fetch_load,
    produce_frame,
    produce_frame_to,
    produce_load,
    produce_load_of,
)
from benchmarks.transacting import one_by_one, transactional
from tidemark.protocol.records.header import read_header
from tidemark.testing.process import BrokerProcess
from tidemark.testing.process_cluster import open_process_cluster

_LEADER_SECONDS_MAX: Final = 120.0
_RETENTION_BYTES: Final = 1 << 30
_TOPIC: Final = "profiled"
_PARTITIONS: Final = 256
_LARGE_BYTES: Final = 1_000_000
_TRANSACTIONS: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Profiled:
    """A path under load: `run` moves `units` of what is counted; `brokers` are looked at."""

    unit: str
    units: int
    run: Callable[[], None]
    brokers: dict[str, BrokerProcess]


@contextmanager
def _produce(
    directory: Path, *, replicas: int, partitions: int, batch_bytes: int, requests: int, flush: str
) -> Iterator[Profiled]:
    with open_process_cluster(directory, count=replicas, settings=STEADY_LEADERS) as cluster:
        leader, led = _topic(cluster.brokers, partitions, flush)
        address = address_of(cluster.brokers[leader])
        frame = produce_frame_to(
            _TOPIC, dict.fromkeys(led, batch_of(batch_bytes, record_bytes=1_000))
        )
        _wait_taken(address, frame)
        followers = [broker for node, broker in cluster.brokers.items() if node != leader]
        brokers = dict(zip(("leader", "follower"), [cluster.brokers[leader], *followers]))

        def run() -> None:
            if replicas == 1 and len(frame) >= _LARGE_BYTES:
                os.sync()  # a loop is quicker than the disk: each load begins with one at rest
            produce_load(address, frame, requests=requests)

        yield Profiled(
            unit="request" if partitions == 1 else "batch",
            units=requests * len(led),
            run=run,
            brokers=brokers,
        )


@contextmanager
def _in_turn(directory: Path) -> Iterator[Profiled]:
    with open_process_cluster(directory, count=1, settings=STEADY_LEADERS) as cluster:
        _, led = _topic(cluster.brokers, _PARTITIONS, "os")
        address = address_of(cluster.brokers[1])
        batch, requests = batch_of(1_100, record_bytes=1_000), 20_000
        frames = [produce_frame(_TOPIC, batch, acks=-1, partition=number) for number in led]
        _wait_taken(address, frames[0])

        def run() -> None:
            produce_load_of(address, itertools.cycle(frames), requests=requests, in_flight=5)

        yield Profiled(
            unit="request", units=requests, run=run, brokers={"leader": cluster.brokers[1]}
        )


@contextmanager
def _fetch(directory: Path) -> Iterator[Profiled]:
    with open_process_cluster(directory, count=1) as cluster:
        _topic(cluster.brokers, 1, "os")
        address = address_of(cluster.brokers[1])
        batch, requests = batch_of(1_000_000, record_bytes=1_000), 300
        produce_load(address, produce_frame_to(_TOPIC, {0: batch}), requests=requests - 1)
        end = requests * read_header(batch).record_count
        yield Profiled(
            unit="MB",
            units=requests,
            run=lambda: _done(fetch_load(address, _TOPIC, end_offset=end, bytes_max=1_000_000)),
            brokers={"leader": cluster.brokers[1]},
        )


@contextmanager
def _transactions(directory: Path) -> Iterator[Profiled]:
    with open_process_cluster(directory, count=1) as cluster:
        _topic(cluster.brokers, 1, "commit")
        producer = transactional(cluster.bootstrap, _TOPIC)
        yield Profiled(
            unit="transaction",
            units=_TRANSACTIONS,
            run=lambda: _done(one_by_one(producer, _TOPIC, 1, _TRANSACTIONS)),
            brokers={"leader": cluster.brokers[1]},
        )


def _done(load: object) -> None:
    """A load's figures are not what is asked here."""


def _topic(
    brokers: dict[int, BrokerProcess], partitions: int, flush: str
) -> tuple[int, Sequence[int]]:
    """Make the topic; who leads most of it, and which partitions. Its retention keeps up, so that
    much is written over the files of old segments."""
    admin = AdminClient({"bootstrap.servers": brokers[1].bootstrap})
    assignment = [list(brokers)] * partitions
    config = {"flush": flush, "retention.bytes": str(_RETENTION_BYTES)}
    new = NewTopic(_TOPIC, partitions, replica_assignment=assignment, config=config)
    admin.create_topics([new])[_TOPIC].result(60)
    deadline = time.monotonic() + _LEADER_SECONDS_MAX
    while time.monotonic() < deadline:
        found = admin.list_topics(_TOPIC, timeout=10).topics[_TOPIC].partitions
        leaders = {number: partition.leader for number, partition in found.items()}
        if leaders and min(leaders.values()) > 0:
            ((leader, _),) = Counter(leaders.values()).most_common(1)
            return leader, [number for number in leaders if leaders[number] == leader]
        time.sleep(0.05)
    raise RuntimeError("partitions stay without a leader")


def _wait_taken(address: Address, frame: bytes) -> None:
    """Until the request is answered without an error: who leads may not serve yet."""
    deadline = time.monotonic() + _LEADER_SECONDS_MAX
    while True:
        try:
            produce_load(address, frame, requests=5)
        except RuntimeError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
        else:
            return


_alone = partial(_produce, replicas=1, partitions=1)
PATHS: Final[dict[str, tuple[str, Callable[[Path], AbstractContextManager[Profiled]]]]] = {
    "small": (
        "one record of 1 KB",
        partial(_alone, batch_bytes=1_100, requests=20_000, flush="os"),
    ),
    "turn": ("one record of 1 KB to each of 256 partitions in turn", _in_turn),
    "middle": ("16 KB", partial(_alone, batch_bytes=16_384, requests=10_000, flush="os")),
    "large": ("1 MB", partial(_alone, batch_bytes=1_000_000, requests=500, flush="os")),
    "synced": (
        "1 MB, `flush=commit`",
        partial(_alone, batch_bytes=1_000_000, requests=500, flush="commit"),
    ),
    "fetch": ("fetch of 1 MB", _fetch),
    "replicate": (
        "1 MB to three replicas, `flush=commit`",
        partial(
            _produce, replicas=3, partitions=1, batch_bytes=1_000_000, requests=100, flush="commit"
        ),
    ),
    "many": (
        "batches of 5 KB, 200 in each request, to three replicas, `flush=commit`",
        partial(
            _produce, replicas=3, partitions=200, batch_bytes=5_000, requests=20, flush="commit"
        ),
    ),
    "transaction": ("one record in a transaction of its own, `flush=commit`", _transactions),
}
"""In words, and as a load. `flush=os`, one replica, five in flight, where nothing else is said."""
