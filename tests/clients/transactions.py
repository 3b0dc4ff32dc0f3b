"""What transactions promise, as any client library sees it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from confluent_kafka import Consumer, IsolationLevel, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

FAST = {"transaction.timeout.ms": 10_000, "linger.ms": 0}


def producer(bootstrap: str, name: str, **settings: object) -> Producer:
    """A transactional one, which has fenced whoever had the name before."""
    made = Producer({"bootstrap.servers": bootstrap, "transactional.id": name, **FAST, **settings})
    made.init_transactions(20)
    return made


def send(client: Producer, topic: str, *values: str, partition: int = 0) -> None:
    for value in values:
        client.produce(topic, value, partition=partition)


def create(bootstrap: str, topic: str, partitions: int = 1, replicas: int = 1) -> None:
    client = AdminClient({"bootstrap.servers": bootstrap})
    new = NewTopic(topic, num_partitions=partitions, replication_factor=replicas)
    client.create_topics([new])[topic].result(10)


def _wait_stable(bootstrap: str, topic: str, partitions: Sequence[int]) -> None:
    deadline = time.monotonic() + 10
    while any(
        end_offset(bootstrap, topic, IsolationLevel.READ_COMMITTED, partition)
        != end_offset(bootstrap, topic, IsolationLevel.READ_UNCOMMITTED, partition)
        for partition in partitions
    ):
        assert time.monotonic() < deadline, f"{topic} has a transaction that does not end"
        time.sleep(0.05)


def end_offset(bootstrap: str, topic: str, isolation: IsolationLevel, number: int = 0) -> int:
    client = AdminClient({"bootstrap.servers": bootstrap})
    partition = TopicPartition(topic, number)
    asked = client.list_offsets({partition: OffsetSpec.latest()}, isolation_level=isolation)
    return int(asked[partition].result(10).offset)


def read(
    bootstrap: str, topic: str, *, committed: bool = True, partitions: Sequence[int] = (0,)
) -> list[str]:
    """All values there are, by partition and offset.

    Those that are committed, once markers are written: a commit is answered before.
    """
    if committed:
        _wait_stable(bootstrap, topic, partitions)
    settings: dict[str, Any] = {  # Any: whatever the library takes
        "bootstrap.servers": bootstrap,
        "group.id": "none",
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "enable.partition.eof": True,
        "isolation.level": "read_committed" if committed else "read_uncommitted",
    }
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
    values: list[tuple[int, int, str]] = []
    ended: set[int | None] = set()
    while len(ended) < len(partitions):
        message = consumer.poll(10)
        assert message is not None, f"nothing came of {topic}"
        if message.error():
            ended.add(message.partition())
        else:
            value = message.value()
            values.append(
                (message.partition() or 0, message.offset() or 0, (value or b"").decode())
            )
    consumer.close()
    return [value for *_, value in sorted(values)]
