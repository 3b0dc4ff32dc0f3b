"""What does a transaction cost, and what do those lose who write and read with them?

From librdkafka. Its commit returns once the decision is durable; markers and the record of the end
come after it, and the next transaction waits for them. So transactions that follow each other at
once are what is measured: all that belongs to one is in somebody's figure.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from confluent_kafka import Producer

from benchmarks import exactly_once, read_committed, transactional_rate
from benchmarks.against_limits import address_of
from benchmarks.calm import open_calm_broker, wait_calm
from benchmarks.clusters import create, lead_as_preferred
from benchmarks.harness import STEADY_LEADERS, Row, row_of, row_of_pairs
from benchmarks.matrix.measured import histogram_of, latency_rows
from benchmarks.raw_client import create_topic
from benchmarks.transacting import one_by_one, transact, transactional
from tidemark.cli.processes import cpu_seconds
from tidemark.testing.process import BrokerProcess
from tidemark.testing.process_cluster import ProcessCluster, open_process_cluster

_FLUSHES: Final = ("commit", "os")
"""Of the records and their markers; what coordinators write is always synced."""
_RUNS: Final = 5
_TRANSACTIONS: Final = 100
"""In a run."""
_PARTITIONS: Final = 3
"""On three brokers, which lead one each: a record goes to each in turn."""
_P50_MS_MAX: Final = {"one broker": 10.0, "three brokers": 20.0}
"""A transaction of one record is five records behind each other: its beginning, the record, the
decision, the marker and the end. With three brokers a record that comes alone may take 4 ms in the
median (`replication`), and no more in here; with one, half of that."""

_MANY: Final = (16, 100)
_MANY_PAIRS: Final = 8
_OF_MANY: Final = 20
"""Transactions in a run."""
_MANY_MAX: Final = 0.5
"""A transaction with many partitions costs less than half of what as many with one each do: the
decision is one, and what goes to a broker goes there together."""


def measure(directory: Path) -> Iterator[Row]:
    """With one broker, then with three."""
    folder = directory / "transactions"
    with open_calm_broker(folder) as broker:
        for flush in _FLUSHES:
            create_topic(address_of(broker), f"one-{flush}", flush=flush)
            yield from _latency(broker.bootstrap, f"one-{flush}", 1, "one broker", flush)
        yield from _growth(broker)
        yield from transactional_rate.measure(broker)
        yield from exactly_once.measure(broker)
        yield from read_committed.measure(broker)
    folder = directory / "transactions-replicated"
    folder.mkdir()
    with open_process_cluster(folder, settings=STEADY_LEADERS) as cluster:
        yield from _replicated(cluster)


def _replicated(cluster: ProcessCluster) -> Iterator[Row]:
    assignment = {n: [1 + (n + k) % 3 for k in range(3)] for n in range(_PARTITIONS)}
    for flush in _FLUSHES:
        create(cluster, f"three-{flush}", _PARTITIONS, {"flush": flush}, assignment)
    lead_as_preferred(cluster, *(f"three-{flush}" for flush in _FLUSHES))
    transactional(cluster.bootstrap, "first")  # so that there are coordinators
    wait_calm([broker.pid for broker in cluster.brokers.values()])
    for flush in _FLUSHES:
        topic = f"three-{flush}"
        yield from _latency(cluster.bootstrap, topic, _PARTITIONS, "three brokers", flush)


def _latency(
    bootstrap: str, topic: str, partitions: int, brokers: str, flush: str
) -> Iterator[Row]:
    producer = transactional(bootstrap, topic)
    one_by_one(producer, topic, partitions, _TRANSACTIONS)
    runs = [one_by_one(producer, topic, partitions, _TRANSACTIONS) for _ in range(_RUNS)]
    yield from latency_rows(
        "latency: a transaction of one record",
        f"one behind the other, {brokers}, flush={flush}",
        [histogram_of(run) for run in runs],
        **({"p50": _P50_MS_MAX[brokers]} if flush == "commit" else {}),
    )


def _growth(broker: BrokerProcess) -> Iterator[Row]:
    """By the clock and by the broker's processor time, with the partitions that are in one."""
    topic = "many"
    create_topic(address_of(broker), topic, partitions=max(_MANY), flush="commit")
    run = partial(_run, transactional(broker.bootstrap, topic), broker, topic)
    for count in _MANY:
        pairs = [_both(partial(run, count), partial(run, 1), n) for n in range(_MANY_PAIRS + 1)][1:]
        case = f"{count} partitions, one record for each, one broker, flush=commit"
        yield row_of_pairs(
            "a transaction",
            case,
            "ms",
            [(many.milliseconds, one.milliseconds) for many, one in pairs],
            against="one with one partition",
        )
        yield row_of_pairs(
            "the broker's processor time for a transaction",
            case,
            "ms",
            [(many.cpu_milliseconds, count * one.cpu_milliseconds) for many, one in pairs],
            against="as many with one partition",
            aim=_MANY_MAX,
            at_most=True,
        )
    yield row_of(
        "the broker's processor time for a transaction",
        "1 partition, one record, one broker, flush=commit",
        "ms",
        [one.cpu_milliseconds for _, one in pairs],
    )


class _Took(NamedTuple):
    """What a transaction took: of the clock, and of the broker's processor."""

    milliseconds: float
    cpu_milliseconds: float


def _run(producer: Producer, broker: BrokerProcess, topic: str, partitions: int) -> _Took:
    before, began = cpu_seconds(broker.pid), time.perf_counter()
    for _ in range(_OF_MANY):
        transact(producer, topic, range(partitions), b"x")
    seconds, used = time.perf_counter() - began, cpu_seconds(broker.pid) - before
    return _Took(seconds / _OF_MANY * 1e3, used / _OF_MANY * 1e3)


def _both(many: Callable[[], _Took], one: Callable[[], _Took], turn: int) -> tuple[_Took, _Took]:
    """Who goes first changes: what one leaves to be done is the other's."""
    if turn % 2:
        alone = one()
        return many(), alone
    return many(), one()
