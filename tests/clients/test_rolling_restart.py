"""Three brokers are drained, restarted and resumed, one after the other, while clients write.

librdkafka and our own client have retries, and nothing else: no write may fail, none may be lost or
doubled, and the leaders are even again afterwards.
"""

import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from tests.clients.conftest import SETTINGS
from tidemark.client import Admin
from tidemark.client.blocking import BlockingClient, BlockingDelivery, open_client
from tidemark.testing.process_cluster import ProcessCluster, open_process_cluster

PARTITIONS = 6
SECONDS_MAX = 40.0
GENTLE_BUT_QUICK = {
    **SETTINGS,
    "leader.balance.interval.ms": "500",
    "leader.balance.cool.down.ms": "1000",
    "leader.balance.start.grace.ms": "1000",
}


@pytest.fixture
def three(tmp_path: Path) -> Iterator[ProcessCluster]:
    with open_process_cluster(tmp_path, settings=GENTLE_BUT_QUICK) as cluster:
        yield cluster


async def create(admin: Admin, topic: str) -> None:
    await admin.create_topic(
        topic,
        partitions=PARTITIONS,
        replication_factor=3,
        configs={"min.insync.replicas": "2"},
    )


def value_of(number: int) -> bytes:
    return b"%08d" % number


def write_with_librdkafka(bootstrap: str, topic: str, is_over: Event) -> list[int]:
    """Until it is over; how many values each partition got, all of them acknowledged."""
    refused: list[KafkaError] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        del message
        if error is not None:
            refused.append(error)

    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    number = 0
    while not is_over.is_set():
        producer.produce(
            topic, value_of(number), partition=number % PARTITIONS, on_delivery=delivered
        )
        number += 1
        producer.poll(0.002)
    assert producer.flush(30) == 0
    assert not refused
    return counts(number)


def write_with_ours(bootstrap: str, topic: str, is_over: Event) -> list[int]:
    deliveries: list[BlockingDelivery] = []
    with open_client(bootstrap) as client, client.producer() as producer:
        while not is_over.is_set():
            number = len(deliveries)
            deliveries.append(producer.send(topic, value_of(number), partition=number % PARTITIONS))
            time.sleep(0.002)
        producer.flush()
        for delivery in deliveries:
            delivery.wait()
    return counts(len(deliveries))


def counts(values: int) -> list[int]:
    return [len(range(partition, values, PARTITIONS)) for partition in range(PARTITIONS)]


def check_each_once_in_order(bootstrap: str, topic: str, written: list[int]) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused"})
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    read: dict[int, list[bytes]] = {partition: [] for partition in range(PARTITIONS)}
    deadline = time.monotonic() + SECONDS_MAX
    while sum(map(len, read.values())) < sum(written) and time.monotonic() < deadline:
        for message in consumer.consume(1000, timeout=1.0):
            assert message.error() is None
            partition, value = message.partition(), message.value()
            assert partition is not None
            assert value is not None
            read[partition].append(value)
    consumer.close()
    for partition, values in read.items():
        assert values == [value_of(partition + PARTITIONS * n) for n in range(written[partition])]


def leaders(client: BlockingClient) -> Counter[int]:
    found = client.run(client.admin.describe_brokers)
    return Counter({each.node_id: each.leaders for each in found})


def restart_all(cluster: ProcessCluster) -> None:
    """As the page for operators says it."""
    with open_client(cluster.bootstrap) as client:
        admin = client.admin
        for node, broker in cluster.brokers.items():
            client.run(admin.drain_broker, node)
            drained = client.run(admin.wait_broker_settled, node)
            assert drained is not None
            assert (drained.state, drained.leaders) == ("drained", 0)
            assert broker.stop() == 0
            broker.start()
            wait_in_sync(client)
            client.run(admin.resume_broker, node)
        wait_even(client)


def wait_in_sync(client: BlockingClient) -> None:
    """Until the next broker could be drained."""
    deadline = time.monotonic() + SECONDS_MAX
    while time.monotonic() < deadline:
        topics = client.run(client.admin.list_topics)
        if all(len(p.in_sync) == 3 for topic in topics for p in topic.partitions):
            return
        time.sleep(0.05)
    raise AssertionError("the replicas on the broker that was restarted do not catch up")


def wait_even(client: BlockingClient) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while time.monotonic() < deadline:
        led = leaders(client)
        if max(led.values()) - min(led.values()) <= 1 and len(led) == 3:
            return
        time.sleep(0.1)
    raise AssertionError(f"leaders are not even again: {led}")


def test_no_write_fails_and_leaders_are_even_afterwards(three: ProcessCluster) -> None:
    with open_client(three.bootstrap) as client:
        for name in ("rdkafka", "ours"):
            client.run(create, client.admin, name)
    is_over = Event()
    with ThreadPoolExecutor(2) as threads:
        rdkafka = threads.submit(write_with_librdkafka, three.bootstrap, "rdkafka", is_over)
        ours = threads.submit(write_with_ours, three.bootstrap, "ours", is_over)
        try:
            restart_all(three)
        finally:
            is_over.set()
        written = {"rdkafka": rdkafka.result(60), "ours": ours.result(60)}
    for topic, counted in written.items():
        assert sum(counted) > 500
        check_each_once_in_order(three.bootstrap, topic, counted)
