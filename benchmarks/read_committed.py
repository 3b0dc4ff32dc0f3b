"""What do readers pay who want only what is committed?

Logs of many small transactions, of which all or every second were committed, read from end to end
by one librdkafka consumer, in turn with the same consumer that takes all there is. Rates are of the
records in the log: who skips what was aborted has passed it as well.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from typing import Final

from confluent_kafka import Consumer, TopicPartition

from benchmarks.against_limits import address_of
from benchmarks.harness import Row, in_pairs, row_of_pairs
from benchmarks.raw_client import create_topic
from benchmarks.transacting import SECONDS_MAX, transactional
from tidemark.testing.process import BrokerProcess

_PRODUCERS: Final = 10
_TRANSACTIONS: Final = 400
"""Of each."""
_RECORDS: Final = 10
"""Of a transaction."""
_VALUE: Final = bytes(100)
_ALL: Final = _PRODUCERS * _TRANSACTIONS * _RECORDS
_PAIRS: Final = 16
_LEAST: Final = 0.9
"""Readers should lose nothing: the broker says where aborted transactions are, and the
client passes over them."""


def measure(broker: BrokerProcess) -> Iterator[Row]:
    """A row for each log."""
    for topic, aborted, said in (
        ("committed", 0, "all committed"),
        ("half-aborted", _TRANSACTIONS // 2, "every second aborted"),
    ):
        create_topic(address_of(broker), topic, flush="os")
        with ThreadPoolExecutor(_PRODUCERS) as threads:
            write = partial(_write, broker.bootstrap, topic, bool(aborted))
            list(threads.map(write, range(_PRODUCERS)))
        visible = _PRODUCERS * (_TRANSACTIONS - aborted) * _RECORDS
        with (
            closing(_reader(broker.bootstrap, "read_committed")) as committed,
            closing(_reader(broker.bootstrap, "read_uncommitted")) as everything,
        ):
            pairs = in_pairs(
                partial(_rate, committed, topic, visible),
                partial(_rate, everything, topic, _ALL),
                runs=_PAIRS,
            )
        yield row_of_pairs(
            "fetch, read_committed, from librdkafka",
            f"{_ALL // _RECORDS:,} transactions of {_RECORDS} records of 100 B, {said}",
            "records/s",
            pairs,
            against="read_uncommitted",
            aim=_LEAST,
        )


def _write(bootstrap: str, topic: str, is_half_aborted: bool, number: int) -> None:
    producer = transactional(bootstrap, f"{topic}-{number}")
    for turn in range(_TRANSACTIONS):
        producer.begin_transaction()
        for _ in range(_RECORDS):
            producer.produce(topic, _VALUE, partition=0)
        if is_half_aborted and turn % 2:
            producer.flush(SECONDS_MAX)  # or it would be dropped before it was sent
            producer.abort_transaction(SECONDS_MAX)
        else:
            producer.commit_transaction(SECONDS_MAX)


def _reader(bootstrap: str, isolation: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"reader-{isolation}",
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 5,  # what waits at the end of a run would be the next one's
        }
    )


def _rate(consumer: Consumer, topic: str, visible: int) -> float:
    """Of reading the log from its beginning to the last record that is to be seen."""
    began = time.perf_counter()
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = consumer.consume(visible, timeout=SECONDS_MAX)
    seconds = time.perf_counter() - began
    assert len(found) == visible, f"{len(found)} records in place of {visible}"
    assert all(each.error() is None for each in found)
    consumer.unassign()
    return _ALL / seconds
