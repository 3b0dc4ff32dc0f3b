"""What does a stream's step cost that counts exactly once: read, transform, write, with offsets?

The offsets of what was read are in the transaction of what was written, as Kafka Streams does it.
Beside it the same step that counts at least once: it writes, waits, and commits offsets.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from typing import Final, NamedTuple

from confluent_kafka import Consumer, Message, Producer

from benchmarks.against_limits import address_of
from benchmarks.harness import Row, row_of_pairs
from benchmarks.raw_client import create_topic
from benchmarks.transacting import SECONDS_MAX, transactional
from tidemark.cli.processes import cpu_seconds
from tidemark.testing.process import BrokerProcess

_SOURCE: Final = "source"
_VALUE: Final = bytes(100)
_SMALL: Final = 1_000
_LARGE: Final = 10_000
"""About what this client has done after 100 ms: Kafka Streams' `commit.interval.ms`, where it
processes exactly once."""
_LARGE_LEAST: Final = 0.7
"""An aim of our own: what a transaction adds should be the lesser part of so long a step."""
_RUN: Final = 20_000
"""Records."""
_PAIRS: Final = 6


class _Ran(NamedTuple):
    records_per_second: float
    cpu_milliseconds: float
    """Of the broker, for a step."""


def measure(broker: BrokerProcess) -> Iterator[Row]:
    """Records a second, and the broker's processor time for a transaction."""
    for topic in (_SOURCE, "exactly-once", "at-least-once"):
        create_topic(address_of(broker), topic, flush="commit")
    _fill(broker.bootstrap, 2 * (_PAIRS + 1) * _RUN)
    plain = Producer(
        {"bootstrap.servers": broker.bootstrap, "linger.ms": 0, "enable.idempotence": True}
    )
    producer = transactional(broker.bootstrap, "exactly-once")
    with (
        closing(_member(broker.bootstrap, "exactly-once")) as consumer,
        closing(_member(broker.bootstrap, "at-least-once")) as other,
    ):
        exactly = partial(_run, broker, partial(_exactly_once, producer, consumer), consumer)
        at_least = partial(_run, broker, partial(_at_least_once, plain, other), other)
        for records, aim in ((_SMALL, None), (_LARGE, _LARGE_LEAST)):
            turns = range(_PAIRS + 1)
            pairs = [_both(partial(exactly, records), partial(at_least, records), n) for n in turns]
            yield from _rows(records, pairs[1:], aim)


def _rows(records: int, pairs: Sequence[tuple[_Ran, _Ran]], aim: float | None) -> Iterator[Row]:
    case = f"{records:,} records of {len(_VALUE)} B in each, one broker, flush=commit"
    yield row_of_pairs(
        "consume, transform, produce in transactions",
        case,
        "records/s",
        [(ours.records_per_second, plain.records_per_second) for ours, plain in pairs],
        against="the same at least once",
        aim=aim,
    )
    yield row_of_pairs(
        "consume, transform, produce in transactions: the broker's processor time for one",
        case,
        "ms",
        [(ours.cpu_milliseconds, plain.cpu_milliseconds) for ours, plain in pairs],
        against="the same at least once",
    )


def _fill(bootstrap: str, records: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
    for number in range(records):
        producer.produce(_SOURCE, _VALUE, partition=0)
        if number % _LARGE == 0:
            producer.flush(SECONDS_MAX)
    left = producer.flush(SECONDS_MAX)
    assert left == 0, f"{left} records of the source were not acknowledged"


def _member(bootstrap: str, group: str) -> Consumer:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([_SOURCE])
    return consumer


def _run(
    broker: BrokerProcess, step: Callable[[Sequence[Message]], None], of: Consumer, records: int
) -> _Ran:
    before, began, steps = cpu_seconds(broker.pid), time.perf_counter(), _RUN // records
    for _ in range(steps):
        messages = of.consume(records, timeout=SECONDS_MAX)
        assert len(messages) == records, f"{len(messages)} records came"
        step(messages)
    seconds, used = time.perf_counter() - began, cpu_seconds(broker.pid) - before
    return _Ran(_RUN / seconds, used / steps * 1e3)


def _exactly_once(producer: Producer, consumer: Consumer, messages: Sequence[Message]) -> None:
    producer.begin_transaction()
    _write(producer, "exactly-once", messages)
    offsets = consumer.position(consumer.assignment())
    group = consumer.consumer_group_metadata()
    producer.send_offsets_to_transaction(offsets, group, SECONDS_MAX)
    producer.commit_transaction(SECONDS_MAX)


def _at_least_once(producer: Producer, consumer: Consumer, messages: Sequence[Message]) -> None:
    _write(producer, "at-least-once", messages)
    left = producer.flush(SECONDS_MAX)
    assert left == 0, f"{left} records were not acknowledged"
    consumer.commit(offsets=consumer.position(consumer.assignment()), asynchronous=False)


def _write(producer: Producer, topic: str, messages: Sequence[Message]) -> None:
    for message in messages:
        value = message.value()
        assert value is not None, f"no record but {message.error()}"
        producer.produce(topic, bytes(value[::-1]), partition=0)


def _both(
    exactly: Callable[[], _Ran], at_least: Callable[[], _Ran], turn: int
) -> tuple[_Ran, _Ran]:
    """Who goes first changes, as what one leaves is the other's."""
    if turn % 2:
        plain = at_least()
        return exactly(), plain
    return exactly(), at_least()
