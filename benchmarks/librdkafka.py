"""How near does a broker let librdkafka come to its own ceiling?

That is its built-in mock cluster: brokers in C in the client's process, that keep a few MB in
memory and answer at once. The client is the same, with 1 KB records, and so is the machine; and as
the mock cluster writes the same memory again and again, the broker's topic begins anew.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

from confluent_kafka import Producer

from benchmarks.against_limits import address_of
from benchmarks.anew import Anew
from benchmarks.calm import open_calm_broker
from benchmarks.harness import Row, in_pairs, row_of_pairs
from benchmarks.raw_client import create_topic

_RECORD_BYTES: Final = 1_000
RECORDS: Final = 300_000
_RECORDS_OF_PAIR: Final = 100_000
TOPIC: Final = "librdkafka"
COMMON: Final = {
    "acks": "all",
    "linger.ms": 5,
    "batch.size": 1_000_000,
    "queue.buffering.max.messages": 10_000_000,
    "queue.buffering.max.kbytes": 2_000_000,
}
MOCK: Final = {"test.mock.num.brokers": 1, "log_level": 4}


def measure(directory: Path) -> Iterator[Row]:
    """Records a second into a broker, in turn with the same into the mock cluster."""
    folder = directory / "librdkafka"
    with open_calm_broker(folder) as broker:
        make = partial(create_topic, address_of(broker), flush="os")
        begin = Anew(broker.bootstrap, folder, TOPIC, make)
        ours = {**COMMON, "bootstrap.servers": broker.bootstrap}
        mock = {**COMMON, **MOCK}
        pairs = in_pairs(
            lambda: rate(ours, begin(), records=_RECORDS_OF_PAIR),
            lambda: rate(mock, records=_RECORDS_OF_PAIR),
        )
    yield row_of_pairs(
        "librdkafka beside its own ceiling",
        "1 KB records, 1 partition, acks=all, flush=os",
        "records/s",
        pairs,
        against="its mock cluster",
        aim=0.9,
    )


def rate(
    settings: dict[str, object], topic: str = TOPIC, *, partitions: int = 1, records: int = RECORDS
) -> float:
    """Records a second, from the first to the last acknowledgement; to the partitions in turn."""
    producer = Producer(settings)
    value = bytes(_RECORD_BYTES)
    for partition in range(partitions):
        producer.produce(topic, value, partition=partition)
    assert producer.flush(30) == 0, "the first records were not acknowledged"
    began = time.perf_counter()
    for number in range(records):
        producer.produce(topic, value, partition=number % partitions)
    left = producer.flush(60)
    assert left == 0, f"{left} records were not acknowledged"
    return records / (time.perf_counter() - began)
