"""Transactions with clients' own producers and readers, on three brokers, and through failovers."""

import asyncio
import time
from functools import partial

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import KafkaException, Producer
from kafka import KafkaProducer

from tests.clients import failover
from tests.clients.transaction_stories import (
    ALL,
    COMMITTED,
    ENDED,
    PARTITIONS,
    is_committed,
    producer_of,
    read_by_aiokafka,
    read_by_kafka_python,
    read_by_librdkafka,
    read_by_tidemark,
    wait_read,
)
from tidemark.client import Isolation, TopicPartition
from tidemark.client.blocking import open_client
from tidemark.testing.process_cluster import ProcessCluster


def tell_by_librdkafka(cluster: ProcessCluster, topic: str) -> Producer:
    """The producer, whose last transaction is open."""
    producer = producer_of(cluster, f"of-{topic}")
    for number in range(ENDED):
        producer.begin_transaction()
        for partition in PARTITIONS:
            producer.produce(topic, f"{number}-{partition}", partition=partition)
        producer.flush(20)
        if is_committed(number):
            producer.commit_transaction(20)
        else:
            producer.abort_transaction(20)
    producer.begin_transaction()
    producer.produce(topic, "open", partition=0)
    producer.flush(20)
    return producer


def test_what_librdkafka_commits_is_all_that_readers_of_committed_records_get(
    cluster: ProcessCluster, topic: str
) -> None:
    failover.create(cluster, topic)
    producer = tell_by_librdkafka(cluster, topic)
    assert read_by_librdkafka(cluster, topic) == COMMITTED
    assert read_by_librdkafka(cluster, topic, "read_uncommitted") == ALL
    assert read_by_kafka_python(cluster, topic) == COMMITTED
    assert read_by_tidemark(cluster, topic) == COMMITTED
    assert read_by_tidemark(cluster, topic, Isolation.READ_UNCOMMITTED) == ALL
    producer.commit_transaction(20)
    wait_read(partial(read_by_tidemark, cluster, topic), sorted([*COMMITTED, "open"]))


def test_aiokafka_does_the_same(cluster: ProcessCluster, topic: str) -> None:
    failover.create(cluster, topic)

    async def tell_and_read() -> list[str]:
        async with AIOKafkaProducer(
            bootstrap_servers=cluster.bootstrap, transactional_id=f"of-{topic}"
        ) as producer:
            for number in range(ENDED):
                await producer.begin_transaction()
                for partition in PARTITIONS:
                    value = f"{number}-{partition}".encode()
                    await producer.send_and_wait(topic, value, partition=partition)
                if is_committed(number):
                    await producer.commit_transaction()
                else:
                    await producer.abort_transaction()
            await producer.begin_transaction()
            await producer.send_and_wait(topic, b"open", partition=0)
            found = await read_by_aiokafka(cluster, topic)
            await producer.abort_transaction()
            return found

    assert asyncio.run(tell_and_read()) == COMMITTED
    assert read_by_librdkafka(cluster, topic, "read_uncommitted") == ALL


def test_kafka_python_does_the_same(cluster: ProcessCluster, topic: str) -> None:
    failover.create(cluster, topic)
    producer = KafkaProducer(
        bootstrap_servers=cluster.bootstrap.split(","), transactional_id=f"of-{topic}"
    )
    producer.init_transactions()
    for number in range(ENDED):
        producer.begin_transaction()
        for partition in PARTITIONS:
            producer.send(topic, f"{number}-{partition}".encode(), partition=partition)
        producer.flush()
        if is_committed(number):
            producer.commit_transaction()
        else:
            producer.abort_transaction()
    producer.begin_transaction()
    producer.send(topic, b"open", partition=0).get(20)
    assert read_by_librdkafka(cluster, topic) == COMMITTED
    assert read_by_librdkafka(cluster, topic, "read_uncommitted") == ALL
    producer.close()


def test_another_producer_of_the_same_id_fences_the_first(
    cluster: ProcessCluster, topic: str
) -> None:
    failover.create(cluster, topic)
    first = producer_of(cluster, f"of-{topic}")
    first.begin_transaction()
    first.produce(topic, "of the first", partition=0)
    first.flush(20)
    second = producer_of(cluster, f"of-{topic}")
    second.begin_transaction()
    second.produce(topic, "of the second", partition=0)
    second.commit_transaction(20)
    first.produce(topic, "late", partition=0)
    with pytest.raises(KafkaException, match=r"[Ff]enced"):
        first.commit_transaction(20)
    wait_read(partial(read_by_tidemark, cluster, topic), ["of the second"])


def test_a_transaction_goes_on_when_its_leader_is_killed(
    cluster: ProcessCluster, topic: str
) -> None:
    """Whoever leads then has what is open and what was aborted from its log."""
    failover.create(cluster, topic)
    producer = tell_by_librdkafka(cluster, topic)
    failover.kill_leader(cluster, topic)
    producer.produce(topic, "and on", partition=0)
    producer.flush(20)
    assert read_by_librdkafka(cluster, topic) == COMMITTED
    producer.commit_transaction(20)
    all_committed = sorted([*COMMITTED, "open", "and on"])
    wait_read(partial(read_by_librdkafka, cluster, topic), all_committed)


def test_a_transaction_that_nobody_ends_is_ended_for_its_producer(
    cluster: ProcessCluster, topic: str
) -> None:
    failover.create(cluster, topic)
    producer = producer_of(cluster, f"of-{topic}", timeout_ms=1_000)
    producer.begin_transaction()
    producer.produce(topic, "never", partition=0)
    producer.flush(20)
    plain = Producer({"bootstrap.servers": cluster.bootstrap})
    plain.produce(topic, "plain", partition=0)
    plain.flush(20)
    assert read_by_tidemark(cluster, topic) == []
    deadline = time.monotonic() + 20
    while not (found := read_by_tidemark(cluster, topic)) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert found == ["plain"]


def test_who_has_a_transaction_open_and_since_where_is_told(
    cluster: ProcessCluster, topic: str
) -> None:
    failover.create(cluster, topic)
    producer = tell_by_librdkafka(cluster, topic)
    places = [TopicPartition(topic, 0), TopicPartition(topic, 1)]
    with open_client(cluster.bootstrap) as client:
        found = client.run(client.admin.describe_producers, places)
        ((at_open,), (at_ended,)) = (found[place] for place in places)
        assert at_open.transaction_start == 8  # four records, four markers
        assert at_open.last_sequence is not None
        assert at_open.coordinator_epoch is not None
        assert at_ended.transaction_start is None
        assert at_ended.producer_id == at_open.producer_id
        producer.abort_transaction(20)
        # It is decided; the marker may be on its way.
        deadline = time.monotonic() + 20
        while found[places[0]][0].transaction_start is not None:
            assert time.monotonic() < deadline
            found = client.run(client.admin.describe_producers, places)
