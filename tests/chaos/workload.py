"""What clients do meanwhile: librdkafka's idempotent producers and consumers, and their history.

Every value is unique. A producer keeps a few batches in flight; whatever is not acknowledged, for
whatever reason, counts as *may have happened*. Consumers read all partitions, each from the start.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, TypeVar

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tidemark.protocol import types
from tidemark.protocol.types import Offset
from tidemark.testing.checkers import History, Outcome, Poll, Polled, Send

_SENDS_PER_SECOND: Final = 300.0
_IN_FLIGHT_MAX: Final = 500
_POLL_RECORDS: Final = 500
_POLL_SECONDS: Final = 0.2
_END_SECONDS: Final = 120.0
T = TypeVar("T")


class Workload:
    """Clients in threads. The history is complete once the block of `running` has ended."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self.history = History()
        self.acknowledged_at = time.monotonic()
        """When the last acknowledgement came: what shows that the cluster serves."""
        self._bootstrap = bootstrap
        self._topic = topic
        self._partitions = partitions
        self._stop = threading.Event()
        self._lock = threading.Lock()

    def create_topic(self, *, replicas: int, configs: dict[str, str]) -> None:
        """Raises `KafkaException` if the cluster does not make it."""
        admin = AdminClient({"bootstrap.servers": self._bootstrap})
        topic = NewTopic(self._topic, self._partitions, replicas, config=configs)
        for future in admin.create_topics([topic]).values():
            future.result(30)

    @contextmanager
    def running(self, *, producers: int, consumers: int) -> Iterator[None]:
        """Run the clients; at the end, what is in flight is waited for."""
        work = [self._produce_as(f"p{n}") for n in range(producers)]
        work += [self._consume_as(f"c{n}") for n in range(consumers)]
        threads = [threading.Thread(target=each, daemon=True) for each in work]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            for thread in threads:
                thread.join(_END_SECONDS)

    def acknowledges_within(self, seconds: float) -> float | None:
        """How long it takes from now until a send is acknowledged; `None` if it takes longer."""
        started = time.monotonic()
        while self.acknowledged_at < started:
            if time.monotonic() - started > seconds:
                return None
            time.sleep(0.02)
        return self.acknowledged_at - started

    def read_to_the_end(self) -> None:
        """A last consumer reads everything, when nobody sends any more."""
        consumer = self._consumer()
        ends = {
            n: consumer.get_watermark_offsets(TopicPartition(self._topic, n), timeout=60)[1]
            for n in range(self._partitions)
        }
        deadline = time.monotonic() + _END_SECONDS
        while time.monotonic() < deadline:
            positions = consumer.position([self._partition(n) for n in ends])
            if all(each.offset >= ends[each.partition] for each in positions):
                break
            self._poll(consumer, "final")
        consumer.close()

    def _produce_as(self, client: str) -> Callable[[], None]:
        def work() -> None:
            producer = Producer(
                {
                    "bootstrap.servers": self._bootstrap,
                    "enable.idempotence": True,
                    "linger.ms": 2,
                    "message.timeout.ms": 60_000,
                    "socket.timeout.ms": 5_000,
                    "reconnect.backoff.max.ms": 500,
                    "log_level": 0,
                }
            )
            number = 0
            while not self._stop.is_set():
                if len(producer) < _IN_FLIGHT_MAX:
                    self._send(producer, client, number)
                    number += 1
                producer.poll(1 / _SENDS_PER_SECOND)
            producer.flush(_END_SECONDS)

        return work

    def _send(self, producer: Producer, client: str, number: int) -> None:
        value = f"{client}-{number}"
        started = time.monotonic()
        partition = number % self._partitions
        sends, place = self._reserve(client, partition, value, started)

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is None:
                now = time.monotonic()
                self.acknowledged_at = now
                sends[place] = self._sent(client, partition, value, started, now, message.offset())

        producer.produce(self._topic, value, partition=partition, on_delivery=delivered)

    def _reserve(
        self, client: str, partition: int, value: str, started: float
    ) -> tuple[list[Send], int]:
        """A place in the history, in the order of beginning; it may have happened until told."""
        send = Send(
            client=client,
            partition=types.TopicPartition(self._topic, partition),
            values=(value,),
            started=started,
            ended=float("inf"),
            outcome=Outcome.INFO,
        )
        with self._lock:
            self.history.sends.append(send)
            return self.history.sends, len(self.history.sends) - 1

    def _sent(
        self,
        client: str,
        partition: int,
        value: str,
        started: float,
        ended: float,
        offset: int | None,
    ) -> Send:
        return Send(
            client=client,
            partition=types.TopicPartition(self._topic, partition),
            values=(value,),
            started=started,
            ended=ended,
            outcome=Outcome.OK,
            offsets=() if offset is None or offset < 0 else (Offset(offset),),
        )

    def _consume_as(self, client: str) -> Callable[[], None]:
        def work() -> None:
            consumer = self._consumer()
            while not self._stop.is_set():
                self._poll(consumer, client)
            consumer.close()

        return work

    def _consumer(self) -> Consumer:
        consumer = Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": "not used",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "socket.timeout.ms": 5_000,
                "reconnect.backoff.max.ms": 500,
                "log_level": 0,
            }
        )
        consumer.assign([self._partition(n, offset=0) for n in range(self._partitions)])
        return consumer

    def _partition(self, number: int, *, offset: int | None = None) -> TopicPartition:
        if offset is None:
            return TopicPartition(self._topic, number)
        return TopicPartition(self._topic, number, offset)

    def _poll(self, consumer: Consumer, client: str) -> None:
        started = time.monotonic()
        messages: Sequence[Message] = consumer.consume(_POLL_RECORDS, _POLL_SECONDS)
        records = tuple(
            Polled(
                types.TopicPartition(self._topic, _known(message.partition())),
                Offset(_known(message.offset())),
                _known(message.value()).decode(),
            )
            for message in messages
            if message.error() is None
        )
        if records:
            poll = Poll(client=client, started=started, ended=time.monotonic(), records=records)
            with self._lock:
                self.history.polls.append(poll)


def _known(value: T | None) -> T:
    assert value is not None, "a message without error is complete"
    return value
