"""Transactional producers of several libraries, against a real broker."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

from tests.clients.transactions import create, end_offset, producer, read, send


class TestLibrdkafka:
    def test_a_commit_shows_all_and_an_abort_nothing(self, bootstrap: str, topic: str) -> None:
        create(bootstrap, topic, partitions=2)
        client = producer(bootstrap, topic)
        client.begin_transaction()
        send(client, topic, "a")
        send(client, topic, "b", partition=1)
        client.commit_transaction(20)
        client.begin_transaction()
        send(client, topic, "never")
        client.flush(10)
        assert end_offset(bootstrap, topic, IsolationLevel.READ_COMMITTED) == 2, "a and its marker"
        assert end_offset(bootstrap, topic, IsolationLevel.READ_UNCOMMITTED) == 3
        client.abort_transaction(20)
        client.begin_transaction()
        send(client, topic, "c")
        client.commit_transaction(20)
        assert read(bootstrap, topic, partitions=(0, 1)) == ["a", "c", "b"]
        assert read(bootstrap, topic, committed=False) == ["a", "never", "c"]

    def test_a_zombie_is_fenced_and_what_it_had_open_is_aborted(
        self, bootstrap: str, topic: str
    ) -> None:
        create(bootstrap, topic)
        zombie = producer(bootstrap, topic)
        zombie.begin_transaction()
        send(zombie, topic, "of the zombie")
        zombie.flush(10)
        heir = producer(bootstrap, topic)
        heir.begin_transaction()
        send(heir, topic, "of its heir")
        heir.commit_transaction(20)
        send(zombie, topic, "late")
        with pytest.raises(KafkaException) as fenced:
            zombie.commit_transaction(20)
        assert fenced.value.args[0].code() in (
            KafkaError._FENCED,
            KafkaError.INVALID_PRODUCER_EPOCH,
            KafkaError.PRODUCER_FENCED,
        )
        assert fenced.value.args[0].fatal()
        assert read(bootstrap, topic) == ["of its heir"]

    def test_one_left_open_is_aborted_when_its_time_is_up(self, bootstrap: str, topic: str) -> None:
        create(bootstrap, topic)
        client = producer(bootstrap, topic, **{"transaction.timeout.ms": 1000})
        client.begin_transaction()
        send(client, topic, "forgotten")
        client.flush(10)
        other = producer(bootstrap, f"{topic}-other")
        other.begin_transaction()
        send(other, topic, "behind it")
        other.commit_transaction(20)
        deadline = time.monotonic() + 10
        while end_offset(bootstrap, topic, IsolationLevel.READ_COMMITTED) < 4:
            assert time.monotonic() < deadline, "it blocks its readers for ever"
            time.sleep(0.1)
        assert read(bootstrap, topic) == ["behind it"]
        with pytest.raises(KafkaException):
            client.commit_transaction(20)

    def test_offsets_are_committed_with_the_transaction_and_not_without(
        self, bootstrap: str, topic: str, group: str
    ) -> None:
        create(bootstrap, topic)
        create(bootstrap, f"{topic}-out")
        feeder = producer(bootstrap, f"{topic}-feeder")
        feeder.begin_transaction()
        send(feeder, topic, "1", "2", "3")
        feeder.commit_transaction(20)
        consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        consumer.subscribe([topic])
        seen = [message.value() for message in (consumer.poll(10) for _ in range(3)) if message]
        assert seen == [b"1", b"2", b"3"]
        client = producer(bootstrap, topic)

        def commit(offset: int) -> None:
            client.begin_transaction()
            send(client, f"{topic}-out", str(offset))
            client.send_offsets_to_transaction(
                [TopicPartition(topic, 0, offset)], consumer.consumer_group_metadata(), 20
            )

        commit(2)
        assert _committed(bootstrap, group, topic, stable=False) == -1001
        with pytest.raises(KafkaException) as unstable:
            _committed(bootstrap, group, topic, stable=True)
        assert unstable.value.args[0].code() == KafkaError.UNSTABLE_OFFSET_COMMIT
        client.commit_transaction(20)
        assert _committed_at_last(bootstrap, group, topic) == 2
        commit(3)
        client.abort_transaction(20)
        assert _committed_at_last(bootstrap, group, topic) == 2
        assert read(bootstrap, f"{topic}-out") == ["2"]
        consumer.close()


def _committed_at_last(bootstrap: str, group: str, topic: str) -> int:
    """Once the marker is written: an end is answered before."""
    deadline = time.monotonic() + 10
    while True:
        try:
            return _committed(bootstrap, group, topic, stable=True)
        except KafkaException as error:
            is_unstable = error.args[0].code() == KafkaError.UNSTABLE_OFFSET_COMMIT
            if not is_unstable or time.monotonic() > deadline:
                raise
        time.sleep(0.05)


def _committed(bootstrap: str, group: str, topic: str, *, stable: bool) -> int:
    client = AdminClient({"bootstrap.servers": bootstrap})
    asked = [ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0)])]
    found = client.list_consumer_group_offsets(asked, require_stable=stable, request_timeout=5)
    (partition,) = found[group].result(10).topic_partitions
    if partition.error is not None:
        raise KafkaException(partition.error)
    return int(partition.offset)
