"""Transactions from librdkafka, as all that is asked of them has them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence

from confluent_kafka import Producer

SECONDS_MAX = 30.0


def transactional(
    bootstrap: str, transactional_id: str, settings: Mapping[str, object] | None = None
) -> Producer:
    """A producer that may begin a transaction; it sends at once, where the settings do not say
    otherwise."""
    its_own = {"bootstrap.servers": bootstrap, "transactional.id": transactional_id}
    producer = Producer({"linger.ms": 0, **(settings or {}), **its_own})
    producer.init_transactions(SECONDS_MAX)
    return producer


def transact(producer: Producer, topic: str, partitions: Iterable[int], value: bytes) -> None:
    """One transaction with a record for each of these."""
    producer.begin_transaction()
    for partition in partitions:
        producer.produce(topic, value, partition=partition)
    producer.commit_transaction(SECONDS_MAX)


def one_by_one(producer: Producer, topic: str, partitions: int, count: int) -> Sequence[float]:
    """How long each of so many transactions of one record took, in seconds; one behind the other,
    to the partitions in turn."""
    times = []
    for number in range(count):
        began = time.perf_counter()
        transact(producer, topic, [number % partitions], b"x")
        times.append(time.perf_counter() - began)
    return times
