"""Compacted topics, as clients read them: from the beginning, over everything that is not there."""

from __future__ import annotations

import asyncio
import time
from typing import Final

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as AioTopicPartition
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaConsumer
from kafka import TopicPartition as KafkaTopicPartition

from tidemark.client import TopicPartition as ClientTopicPartition
from tidemark.client.blocking import open_client

KEYS: Final = 10
ROUNDS: Final = 40
SECONDS_MAX: Final = 20.0
CONFIG: Final = {
    "cleanup.policy": "compact",
    "segment.bytes": "4096",
    "min.cleanable.dirty.ratio": "0.01",
}
Read = list[tuple[int, bytes, bytes]]
"""Offset, key and value of each record."""


def produce(bootstrap: str, topic: str, codec: str = "none") -> int:
    """Overwrite ten keys again and again, each time in batches of its own; the end offset.

    Some keys are written once, early, and so are alone among what goes.
    """
    producer = Producer({"bootstrap.servers": bootstrap, "compression.type": codec})
    count = 0
    for number in range(ROUNDS):
        for key in range(KEYS):
            producer.produce(topic, b"%d" % number + b"v" * 50, b"key-%d" % key, partition=0)
            count += 1
        if number % 20 == 5:
            producer.produce(topic, b"once", b"once-%d" % number, partition=0)
            count += 1
        producer.flush()
    return count


def create(bootstrap: str, topic: str, **config: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    wanted = NewTopic(
        topic, 1, 1, config=CONFIG | {k.replace("_", "."): v for k, v in config.items()}
    )
    admin.create_topics([wanted])[topic].result(10)


def read_librdkafka(bootstrap: str, topic: str, _: int, start: int = 0) -> Read:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": topic,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 100,
        }
    )
    consumer.assign([TopicPartition(topic, 0, start)])
    found: Read = []
    until = time.monotonic() + SECONDS_MAX
    while time.monotonic() < until:
        message = consumer.poll(1.0)
        if message is None:
            continue
        error = message.error()
        if error is not None:
            if error.name() == "_PARTITION_EOF":
                break
            raise KafkaException(error)
        offset, key, value = message.offset(), message.key(), message.value()
        assert offset is not None
        found.append((offset, key or b"", value or b""))
    consumer.close()
    return found


def read_kafka_python(bootstrap: str, topic: str, end: int) -> Read:
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, consumer_timeout_ms=3000)
    partition = KafkaTopicPartition(topic, 0)
    consumer.assign([partition])
    consumer.seek(partition, 0)
    found: Read = []
    until = time.monotonic() + SECONDS_MAX
    while consumer.position(partition) < end and time.monotonic() < until:
        for records in consumer.poll(500).values():
            found += [(record.offset, record.key, record.value) for record in records]
    assert consumer.position(partition) == end
    consumer.close()
    return found


async def read_aiokafka(bootstrap: str, topic: str, end: int) -> Read:
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap, fetch_max_wait_ms=100, isolation_level="read_committed"
    )
    await consumer.start()
    try:
        partition = AioTopicPartition(topic, 0)
        consumer.assign([partition])
        consumer.seek(partition, 0)
        found: Read = []
        async with asyncio.timeout(SECONDS_MAX):
            while await consumer.position(partition) < end:
                for records in (await consumer.getmany(timeout_ms=200)).values():
                    found += [(record.offset, record.key, record.value) for record in records]
    finally:
        await consumer.stop()
    return found


def read_tidemark(bootstrap: str, topic: str, _: int) -> Read:
    """The client and the consumer of the command line, which ends by itself where the log did."""
    with open_client(bootstrap) as client, client.consumer(topic, until_end=True) as consumer:
        return [(record.offset, record.key or b"", record.value or b"") for record in consumer]


def wait_compacted(bootstrap: str, topic: str, end: int) -> None:
    """Until next to nothing of it is there but the segment that is written to."""
    until = time.monotonic() + SECONDS_MAX
    while len(read_librdkafka(bootstrap, topic, end)) >= end / 2:
        assert time.monotonic() < until, "it was not compacted"
        time.sleep(0.3)


def check(found: Read, end: int) -> None:
    offsets = [offset for offset, _, _ in found]
    assert offsets == sorted(set(offsets))
    assert offsets[-1] == end - 1
    assert len(found) < end / 2
    last = {key: value for _, key, value in found}
    assert last == {b"key-%d" % key: b"39" + b"v" * 50 for key in range(KEYS)} | {
        b"once-%d" % number: b"once" for number in (5, 25)
    }


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_every_client_reads_a_compacted_topic_from_its_beginning(
    bootstrap: str, topic: str, codec: str
) -> None:
    create(bootstrap, topic)
    end = produce(bootstrap, topic, codec)
    wait_compacted(bootstrap, topic, end)
    for read in (read_librdkafka, read_kafka_python, read_tidemark):
        check(read(bootstrap, topic, end), end)
    check(asyncio.run(read_aiokafka(bootstrap, topic, end)), end)


def test_a_consumer_goes_on_in_the_middle_of_what_is_gone(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic)
    end = produce(bootstrap, topic)
    wait_compacted(bootstrap, topic, end)
    there = [offset for offset, _, _ in read_librdkafka(bootstrap, topic, end)]
    gone = next(offset for offset in range(end) if offset not in there and offset > there[0])
    found = [offset for offset, _, _ in read_librdkafka(bootstrap, topic, end, start=gone)]
    assert found[0] > gone
    assert found[-1] == end - 1
    assert set(found) <= set(there)


def test_how_far_a_topic_is_compacted_can_be_seen(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic)
    wait_compacted(bootstrap, topic, produce(bootstrap, topic))
    at = ClientTopicPartition(topic, 0)
    with open_client(bootstrap) as client:
        until = time.monotonic() + SECONDS_MAX
        while True:
            found = client.run(client.admin.describe_replicas, [at])[at].compaction
            if found is not None and found.cleaned_ms is not None:
                break
            assert time.monotonic() < until, found
            time.sleep(0.1)
    assert found.why_set_aside == ""
    assert 0 <= found.dirty_ratio <= 1


def test_a_record_without_a_key_is_refused_by_a_compacted_topic(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic)
    refused: list[KafkaError | None] = []
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(topic, b"value", on_delivery=lambda error, _: refused.append(error))
    producer.flush(SECONDS_MAX)
    assert [error and error.name() for error in refused] == ["INVALID_RECORD"]


def test_committed_transactions_are_read_and_aborted_ones_are_gone(
    bootstrap: str, topic: str
) -> None:
    create(bootstrap, topic)
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
    producer.init_transactions(SECONDS_MAX)
    for number in range(30):
        producer.begin_transaction()
        for key in range(KEYS):
            producer.produce(topic, b"%d" % number + b"v" * 50, b"key-%d" % key, partition=0)
        producer.flush()  # else an abort leaves nothing to be aborted
        if number % 2:
            producer.abort_transaction(SECONDS_MAX)
        else:
            producer.commit_transaction(SECONDS_MAX)
    until = time.monotonic() + SECONDS_MAX
    while len(read_librdkafka(bootstrap, topic, 0)) >= 15 * KEYS * 2 / 3:
        assert time.monotonic() < until, "it was not compacted"
        time.sleep(0.3)
    for found in (
        read_librdkafka(bootstrap, topic, 0),
        asyncio.run(read_aiokafka(bootstrap, topic, 30 * (KEYS + 1))),
    ):
        last = {key: value for _, key, value in found}
        assert last == {b"key-%d" % key: b"28" + b"v" * 50 for key in range(KEYS)}
        assert all(int(value[:2].rstrip(b"v")) % 2 == 0 for _, _, value in found)
