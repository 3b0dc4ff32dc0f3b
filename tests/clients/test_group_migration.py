"""Groups that change their protocol while they read (KIP-848): librdkafka, kafka-python."""

import threading
import time
from collections import defaultdict
from contextlib import ExitStack
from functools import partial
from typing import Self

import pytest
from confluent_kafka import (
    Consumer,
    ConsumerGroupType,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from kafka import KafkaConsumer

from tests.clients.consumer_protocol import PARTITIONS, Reader, share, wait_for
from tests.clients.librdkafka import create
from tidemark.protocol.errors import ErrorCode

_COMMIT_EVERY = 20
_PASSING = (KafkaError.REBALANCE_IN_PROGRESS, ErrorCode.STALE_MEMBER_EPOCH)
_CONSUMER: dict[str, object] = {"group.protocol": "consumer"}
_CLASSIC: dict[str, object] = {
    "group.protocol": "classic",
    "heartbeat.interval.ms": 200,
    "session.timeout.ms": 6000,
}


class Ledger:
    """What the group's members have read and had acknowledged, all together."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._committed: dict[int, int] = defaultdict(int)
        self.values: set[bytes] = set()
        self.read_behind: list[tuple[int, int]] = []
        self.refused: list[object] = []

    def read(self, message: Message) -> tuple[int, int]:
        partition, offset, value = message.partition(), message.offset(), message.value()
        assert partition is not None
        assert offset is not None
        assert isinstance(value, bytes)
        with self._lock:
            self.values.add(value)
            if offset < self._committed[partition]:
                self.read_behind.append((partition, offset))
        return partition, offset + 1

    def committed(self, ends: dict[int, int]) -> None:
        with self._lock:
            for partition, end in ends.items():
                self._committed[partition] = max(end, self._committed[partition])


class Worker(Reader):
    """A member that commits what it has read: every few, and before it gives partitions up."""

    def __init__(
        self, bootstrap: str, group: str, topic: str, ledger: Ledger, settings: dict[str, object]
    ) -> None:
        super().__init__(bootstrap, group, [topic], **{"enable.auto.commit": False, **settings})
        self._topic, self._ledger = topic, ledger
        self._is_eager = settings.get("partition.assignment.strategy") == "range"
        self._ends: dict[int, int] = {}

    def _poll(self) -> None:
        count = 0
        while not self._is_over.is_set():
            message = self.consumer.poll(0.05)
            if message is None:
                continue
            if (error := message.error()) is not None:
                self.errors.append(error)
                continue
            partition, end = self._ledger.read(message)
            self._ends[partition] = end
            count += 1
            if count % _COMMIT_EVERY == 0:
                self._commit()
        self._commit()

    def _commit(self) -> None:
        ends, self._ends = self._ends, {}
        if not ends:
            return
        offsets = [TopicPartition(self._topic, each, end) for each, end in ends.items()]
        try:
            self.consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException as refused:
            if refused.args[0].code() in _PASSING:
                # Between joining and hearing what is whose, or on the way while a heartbeat has
                # moved the member on: what stays here is committed later.
                self._ends = {**ends, **self._ends}
            else:
                self._ledger.refused.append(refused.args[0])
        else:
            self._ledger.committed(ends)

    def _take(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        if self._is_eager:
            self.parts = {(each.topic, each.partition) for each in partitions}
            consumer.assign(partitions)
        else:
            super()._take(consumer, partitions)

    def _give(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._commit()
        for each in partitions:
            self._ends.pop(each.partition, None)
        if self._is_eager:
            self.parts = set()
            consumer.unassign()
        else:
            super()._give(consumer, partitions)


class Load:
    """Numbered values, to each partition in turn, for as long as its block lasts."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
        self._topic, self.count = topic, 0
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._produce)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _produce(self) -> None:
        while not self._is_over.is_set():
            value = str(self.count).encode()
            self._producer.produce(self._topic, value, partition=self.count % PARTITIONS)
            self.count += 1
            time.sleep(0.002)
        assert self._producer.flush(20) == 0


def is_of(bootstrap: str, group: str, kind: ConsumerGroupType) -> bool:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    listed = admin.list_consumer_groups().result(10)
    return [each.type for each in listed.valid if each.group_id == group] == [kind]


@pytest.mark.parametrize("assignor", ["cooperative-sticky", "range"])
def test_a_group_under_load_goes_to_the_consumer_protocol_and_back(
    bootstrap: str, topic: str, group: str, assignor: str
) -> None:
    create(bootstrap, topic, partitions=PARTITIONS)
    classic = {**_CLASSIC, "partition.assignment.strategy": assignor}
    ledger = Ledger()
    with ExitStack() as stack:
        load = stack.enter_context(Load(bootstrap, topic))
        slots: list[tuple[ExitStack, Worker]] = []

        def start(settings: dict[str, object]) -> tuple[ExitStack, Worker]:
            life = stack.enter_context(ExitStack())
            return life, life.enter_context(Worker(bootstrap, group, topic, ledger, settings))

        slots = [start(classic), start(classic)]
        for settings, kind in (
            (_CONSUMER, ConsumerGroupType.CONSUMER),
            (classic, ConsumerGroupType.CLASSIC),
        ):
            for number in range(2):
                share(topic, *(worker for _, worker in slots))
                slots[number][0].close()
                slots[number] = start(settings)
            share(topic, *(worker for _, worker in slots))
            wait_for(partial(is_of, bootstrap, group, kind))
        load.__exit__()
        wait_for(lambda: len(ledger.values) == load.count)
        assert not ledger.read_behind, "nobody reads what another member has committed"
        assert not ledger.refused
        assert not [error for _, worker in slots for error in worker.errors]


def test_a_member_of_another_library_goes_along(bootstrap: str, topic: str, group: str) -> None:
    create(bootstrap, topic, partitions=PARTITIONS)
    old = KafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=group,
        heartbeat_interval_ms=200,
        session_timeout_ms=6000,
        max_poll_interval_ms=10_000,
    )

    def has(count: int) -> bool:
        old.poll(timeout_ms=100)
        return len(old.assignment()) == count

    try:
        old.partitions_for_topic(topic)  # A leader that learns of them as it joins joins twice.
        wait_for(lambda: has(PARTITIONS))
        with Reader(bootstrap, group, [topic]) as new:
            wait_for(lambda: has(PARTITIONS // 2) and len(new.parts) == PARTITIONS // 2)
            assert {(each.topic, each.partition) for each in old.assignment()}.isdisjoint(new.parts)
            assert is_of(bootstrap, group, ConsumerGroupType.CONSUMER)
        wait_for(lambda: has(PARTITIONS) and is_of(bootstrap, group, ConsumerGroupType.CLASSIC))
    finally:
        old.close()
