"""Readers in a group of the consumer protocol."""

import threading
import time
from collections.abc import Callable
from typing import Self

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

PARTITIONS = 6
CONSUMER = {"group.protocol": "consumer", "auto.offset.reset": "earliest"}


class Reader:
    """A member that polls on a thread, and knows what it reads. Leaves with its block."""

    def __init__(self, bootstrap: str, group: str, topics: list[str], **settings: object) -> None:
        self._settings = {"bootstrap.servers": bootstrap, "group.id": group, **CONSUMER, **settings}
        self._topics = topics
        self.parts: set[tuple[str, int]] = set()
        self.errors: list[KafkaError] = []
        self.moves = 0
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._poll)

    def __enter__(self) -> Self:
        self.consumer = Consumer(self._settings)
        self.consumer.subscribe(self._topics, on_assign=self._take, on_revoke=self._give)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()
        self.consumer.close()

    def _poll(self) -> None:
        while not self._is_over.is_set():
            try:
                message = self.consumer.poll(0.1)
            except KafkaException as fatal:
                self.errors.append(fatal.args[0])
                return
            if message is not None and (error := message.error()) is not None:
                self.errors.append(error)

    def _take(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self.parts |= {(each.topic, each.partition) for each in partitions}
        consumer.incremental_assign(partitions)

    def _give(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self.moves += len(partitions)
        self.parts -= {(each.topic, each.partition) for each in partitions}
        consumer.incremental_unassign(partitions)


def wait_for(is_so: Callable[[], bool], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def share(topic: str, *readers: Reader) -> None:
    """Wait until the readers share all partitions evenly."""

    def is_shared() -> bool:
        everything = [part for reader in readers for part in reader.parts]
        loads = [len(reader.parts) for reader in readers]
        return (
            sorted(everything) == [(topic, number) for number in range(PARTITIONS)]
            and max(loads) - min(loads) <= 1
        )

    wait_for(is_shared)
