"""What is left of a producer's throughput where it writes in transactions.

Beside the same producer without, which is idempotent too. A transaction is as long as is asked
for in records, so that both sides write the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from confluent_kafka import Producer

from benchmarks.against_limits import address_of
from benchmarks.harness import Row, in_pairs, row_of_pairs
from benchmarks.kept_short import KeptShort
from benchmarks.raw_client import create_topic
from benchmarks.transacting import SECONDS_MAX, transactional
from tidemark.testing.process import BrokerProcess

_VALUE: Final = bytes(1_000)
_RECORDS: Final = 60_000
_PAIRS: Final = 8
_SMALL: Final = 1_000
_LONG_SECONDS: Final = 0.1
"""Kafka Streams' `commit.interval.ms`, where it processes exactly once."""
_LONG_MIN: Final = 0.9
"""An aim of our own: four or five syncs should be lost in 100 ms."""
_SETTINGS: Final = {"linger.ms": 5, "batch.size": 1_000_000, "enable.idempotence": True}

Load = Callable[[str], None]
"""Writes `_RECORDS` to a topic, and returns when all are acknowledged."""


def measure(broker: BrokerProcess) -> Iterator[Row]:
    """The rows for each flush mode and length."""
    for flush in ("commit", "os"):
        name = f"rate-{flush}"
        make = partial(create_topic, address_of(broker), flush=flush)
        plain = partial(_plain, Producer({"bootstrap.servers": broker.bootstrap, **_SETTINGS}))
        producer = transactional(broker.bootstrap, name, _SETTINGS)
        with KeptShort(broker.bootstrap, name, make) as topic:
            _rate(topic, plain)
            long = round(_LONG_SECONDS * _rate(topic, plain))
            for each, said, aim in (
                (_SMALL, f"{_SMALL:,} records", None),
                (long, "as many records as are written in 100 ms", _LONG_MIN),
            ):
                pairs = in_pairs(
                    partial(_rate, topic, partial(_in_transactions, producer, each)),
                    partial(_rate, topic, plain),
                    runs=_PAIRS,
                )
                yield row_of_pairs(
                    f"produce in transactions, flush={flush}",
                    f"{said} in each, of 1 KB, 1 partition, one broker",
                    "records/s",
                    pairs,
                    against="the same without",
                    aim=aim,
                )


def _rate(topic: KeptShort, load: Load) -> float:
    name = topic()
    began = time.perf_counter()
    load(name)
    return _RECORDS / (time.perf_counter() - began)


def _plain(producer: Producer, topic: str) -> None:
    _produce(producer, topic, _RECORDS)
    left = producer.flush(SECONDS_MAX)
    assert left == 0, f"{left} records were not acknowledged"


def _in_transactions(producer: Producer, each: int, topic: str) -> None:
    for begin in range(0, _RECORDS, each):
        producer.begin_transaction()
        _produce(producer, topic, min(each, _RECORDS - begin))
        producer.commit_transaction(SECONDS_MAX)


def _produce(producer: Producer, topic: str, count: int) -> None:
    for _ in range(count):
        producer.produce(topic, _VALUE, partition=0)
