"""A consumer that reads all partitions of a topic from the start, and does not believe bad CRCs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from tests.chaos.workload.promise import value_of
from tidemark.protocol import types
from tidemark.protocol.types import Offset
from tidemark.testing.checkers import Poll, Polled

POLL_RECORDS: Final = 500
POLL_SECONDS: Final = 0.2
_ASK_SECONDS: Final = 2.0
T = TypeVar("T")

CONSUMER: Final[dict[str, str | int | bool]] = {
    "check.crcs": True,
    "enable.auto.commit": False,
    "socket.timeout.ms": 5_000,
    "reconnect.backoff.max.ms": 500,
    "fetch.wait.max.ms": 200,
    "log_level": 0,
}


class Reader:
    """Gives its polls to `add`. One with a rack reads from the replica or observer in it."""

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        partitions: int,
        client: str,
        add: Callable[[Poll], None],
        *,
        rack: str = "",
        met_corrupt: Callable[[int], None] = lambda partition: None,
    ) -> None:
        self._topic = topic
        self._client = client
        self._add = add
        self._met_corrupt = met_corrupt
        self._next = [0] * partitions
        self._consumer = Consumer(
            {
                **CONSUMER,
                "bootstrap.servers": bootstrap,
                "group.id": "not used",
                "auto.offset.reset": "error",
                "client.rack": rack,
            }
        )
        self._consumer.assign([TopicPartition(topic, n, 0) for n in range(partitions)])

    def poll(self) -> None:
        started = time.monotonic()
        messages = self._consumer.consume(POLL_RECORDS, POLL_SECONDS)
        records = records_in(messages)
        for record in records:
            self._next[record.partition.partition] = record.offset + 1
        if records:
            self._add(
                Poll(client=self._client, started=started, ended=time.monotonic(), records=records)
            )
        for partition in corrupt_in(messages):
            self._met_corrupt(partition)
            # librdkafka goes on behind what is corrupt. Rather ask again, of another leader.
            self._consumer.seek(TopicPartition(self._topic, partition, self._next[partition]))
            time.sleep(POLL_SECONDS)

    def read_to_the_end(self, seconds: float) -> dict[int, str]:
        """By partition, why it was not read to its end in time. Closes the consumer."""
        deadline = time.monotonic() + seconds
        ends: dict[int, int] = {}
        try:
            while (unread := self._unread(ends)) and time.monotonic() < deadline:
                self._ask_ends(ends)
                self.poll()  # also while nobody tells the end of another
            return unread
        finally:
            self.close()

    def _unread(self, ends: Mapping[int, int]) -> dict[int, str]:
        return {
            number: f"read up to {at} of {ends[number]}"
            if number in ends
            else f"read up to {at}, and nobody told its end"
            for number, at in enumerate(self._next)
            if at < ends.get(number, at + 1)
        }

    def _ask_ends(self, ends: dict[int, int]) -> None:
        for number in range(len(self._next)):
            if number in ends:
                continue
            with suppress(KafkaException):
                _, ends[number] = self._consumer.get_watermark_offsets(
                    TopicPartition(self._topic, number), timeout=_ASK_SECONDS
                )

    def close(self) -> None:
        self._consumer.close()


def records_in(messages: Iterable[Message]) -> tuple[Polled, ...]:
    return tuple(
        Polled(
            types.TopicPartition(_known(message.topic()), _known(message.partition())),
            Offset(_known(message.offset())),
            value_of(_known(message.value()).decode()),
        )
        for message in messages
        if message.error() is None
    )


def corrupt_in(messages: Sequence[Message]) -> set[int]:
    """The partitions of which a batch was not what was written."""
    return {
        _known(message.partition())
        for message in messages
        if (error := message.error()) is not None and error.code() == KafkaError._BAD_MSG
    }


def _known(value: T | None) -> T:
    assert value is not None, "a message without error is complete"
    return value
