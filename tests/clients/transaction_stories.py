"""A story of transactions that every client can tell, and every client reads alike.

Two transactions are committed and two aborted, in turns; the last stays open.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as AioPlace
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Place
from kafka import KafkaConsumer
from kafka import TopicPartition as KafkaPlace

from tidemark.client import Isolation
from tidemark.client.blocking import open_client
from tidemark.testing.process_cluster import ProcessCluster

PARTITIONS: Final = range(3)
ENDED: Final = 4
COMMITTED: Final = ["0-0", "0-1", "0-2", "2-0", "2-1", "2-2"]
ALL: Final = sorted([*COMMITTED, "1-0", "1-1", "1-2", "3-0", "3-1", "3-2", "open"])


def is_committed(number: int) -> bool:
    return number % 2 == 0


def producer_of(
    cluster: ProcessCluster, transactional_id: str, timeout_ms: int = 30_000
) -> Producer:
    """librdkafka's."""
    producer = Producer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": timeout_ms,
        }
    )
    producer.init_transactions(20)
    return producer


def read_by_librdkafka(
    cluster: ProcessCluster, topic: str, isolation: str = "read_committed"
) -> list[str]:
    """All values, up to the end that the reader is shown."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": "reader",
            "isolation.level": isolation,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([Place(topic, partition, 0) for partition in PARTITIONS])
    values, at_end = list[str](), set[int]()
    while len(at_end) < len(PARTITIONS):
        message = consumer.poll(20)
        assert message is not None, f"no end in sight after {values}"
        if message.error() is None:
            value = message.value()
            assert isinstance(value, bytes)
            values.append(value.decode())
        else:
            partition = message.partition()
            assert partition is not None
            at_end.add(partition)
    consumer.close()
    return sorted(values)


def read_by_kafka_python(cluster: ProcessCluster, topic: str) -> list[str]:
    consumer = KafkaConsumer(
        bootstrap_servers=cluster.bootstrap.split(","), isolation_level="read_committed"
    )
    places = [KafkaPlace(topic, partition) for partition in PARTITIONS]
    consumer.assign(places)
    consumer.seek_to_beginning(*places)
    ends = consumer.end_offsets(places)
    values = list[str]()
    while any(consumer.position(place) < ends[place] for place in places):
        for records in consumer.poll(1_000).values():
            values += [record.value.decode() for record in records]
    consumer.close()
    return sorted(values)


async def read_by_aiokafka(cluster: ProcessCluster, topic: str) -> list[str]:
    places = [AioPlace(topic, partition) for partition in PARTITIONS]
    async with AIOKafkaConsumer(
        bootstrap_servers=cluster.bootstrap, isolation_level="read_committed"
    ) as consumer:
        consumer.assign(places)
        await consumer.seek_to_beginning(*places)
        ends = await consumer.end_offsets(places)
        values = list[str]()
        while any([await consumer.position(place) < ends[place] for place in places]):
            found = await consumer.getmany(timeout_ms=1_000)
            values += [record.value.decode() for records in found.values() for record in records]
        return sorted(values)


def read_by_tidemark(
    cluster: ProcessCluster, topic: str, isolation: Isolation = Isolation.READ_COMMITTED
) -> list[str]:
    with (
        open_client(cluster.bootstrap) as client,
        client.consumer(topic, isolation=isolation, until_end=True) as consumer,
    ):
        return sorted(record.value.decode() for record in consumer if record.value is not None)


def wait_read(read: Callable[[], list[str]], expected: list[str]) -> None:
    """Whoever has committed is answered before the markers are written: read until they are."""
    deadline = time.monotonic() + 40
    while (found := read()) != expected:
        assert time.monotonic() < deadline, found
        time.sleep(0.1)
