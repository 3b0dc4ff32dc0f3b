"""What tests ask of librdkafka: topics, records in and out, and a group's reader."""

import time
from collections.abc import Callable, Mapping, Sequence

from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    NewTopic,
)


def admin(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap})


def create(
    bootstrap: str, topic: str, partitions: int = 1, configs: Mapping[str, str] | None = None
) -> None:
    new = NewTopic(
        topic, num_partitions=partitions, replication_factor=1, config=dict(configs or {})
    )
    client = admin(bootstrap)  # held: its futures fail when it is collected
    client.create_topics([new])[topic].result(10)


def produce(bootstrap: str, topic: str, values: Sequence[bytes], **settings: object) -> list[int]:
    """Produce `values` to partition 0; the offsets that were acknowledged (none with acks=0)."""
    offsets: list[int] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            raise KafkaException(error)
        offset = message.offset()
        if offset is not None:
            offsets.append(offset)

    producer = Producer({"bootstrap.servers": bootstrap, **settings})
    for value in values:
        producer.produce(topic, value, partition=0, on_delivery=delivered)
    assert producer.flush(20) == 0
    return offsets


def read(bootstrap: str, topic: str, count: int, partitions: int = 1) -> list[Message]:
    """The first `count` messages of the topic, by assignment, without a group's help."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused"})
    consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
    try:
        return take(consumer, count)
    finally:
        consumer.close()


def take(consumer: Consumer, count: int, seconds: float = 20) -> list[Message]:
    messages: list[Message] = []
    deadline = time.monotonic() + seconds
    while len(messages) < count and time.monotonic() < deadline:
        for message in consumer.consume(count - len(messages), 0.2):
            assert message.error() is None, message.error()
            messages.append(message)
    assert len(messages) == count
    return messages


def wait_for(what: Callable[[], bool], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "it did not come about in time"


def group_consumer(bootstrap: str, group: str, topic: str, **settings: object) -> Consumer:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "session.timeout.ms": 6000,
            **settings,
        }
    )
    consumer.subscribe([topic])
    return consumer
