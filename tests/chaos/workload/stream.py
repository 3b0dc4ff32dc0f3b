"""One topic: its producers, the consumers that read it from the start, and what they saw.

Every value is unique. A producer keeps some records in flight; whatever is not acknowledged, for
whatever reason, counts as *may have happened*.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.chaos.workload.deadlocks import deadlocked_clients, line_of
from tests.chaos.workload.promise import Promise, record_of
from tests.chaos.workload.reader import Reader
from tidemark.protocol.types import Offset, TopicPartition
from tidemark.testing.checkers import History, Outcome, Poll, Send

_IN_FLIGHT_MAX: Final = 300
_END_SECONDS: Final = 120.0
_CREATE_SECONDS: Final = 60.0
PARTITIONS: Final = 4

TimeOut = tuple[str, float]
"""Which producer gave a record up because it had waited too long, and when."""


class Stream:
    """A topic under load, from `start` to `stop`."""

    def __init__(self, bootstrap: str, topic: str, promise: Promise) -> None:
        self.topic = topic
        self.promise = promise
        self.history = History()
        self.acknowledged = [0.0] * PARTITIONS
        """By partition: when the newest of the acknowledged sends began."""
        self.lost_power_at: float | None = None
        """When so many brokers lost their power that no more is promised than until then."""
        self.timeouts: list[TimeOut] = []
        self.corrupt: list[str] = []
        """Which consumer has met a batch that is not what was written, and of which partition."""
        self.deadlocked = 0
        """How many clients could not be closed because librdkafka had locked itself out."""
        self.unread: dict[int, str] = {}
        """By partition: why the last reader has not read it to its end, where it has not."""
        self._found: list[str] = []
        self._given_up: list[tuple[float, str]] = []
        """When a producer met what librdkafka calls fatal."""
        self._bootstrap = bootstrap
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []

    def create(self, replicas: int) -> None:
        """Raises `KafkaException` or `TimeoutError` if the cluster does not make the topic."""
        admin = AdminClient({"bootstrap.servers": self._bootstrap, "log_level": 0})
        configs = dict(self.promise.configs)
        if replicas == 1:
            configs.pop("min.insync.replicas", None)
        deadline = time.monotonic() + _CREATE_SECONDS
        while True:
            topic = NewTopic(self.topic, PARTITIONS, replicas, config=configs)
            try:
                admin.create_topics([topic])[self.topic].result(15)
            except (KafkaException, TimeoutError) as error:
                if _says_that_it_is_there(error):
                    return  # An attempt that was not answered.
                if time.monotonic() > deadline:
                    raise
            else:
                return

    def start(
        self,
        *,
        producers: int,
        racks: Sequence[str],
        sends_per_second: float,
        one_partition_each: bool = False,
    ) -> None:
        """With a consumer in each of the racks, and one that is in none."""
        rate = sends_per_second / producers
        work = dict[str, Callable[[], None]]()
        for number in range(producers):
            partitions = (number,) if one_partition_each else range(PARTITIONS)
            work[f"p{number}"] = self._producing(f"p{number}", rate, partitions)
        for number, rack in enumerate(["", *racks]):
            work[f"c{number}"] = self._consuming(f"c{number}", rack)
        self._threads = [
            threading.Thread(target=each, name=client, daemon=True) for client, each in work.items()
        ]
        for thread in self._threads:
            thread.start()

    def unserved_since(self, started: float) -> list[str]:
        """The partitions that have not acknowledged what was sent since then."""
        return [
            f"{self.topic}-{number}"
            for number, newest in enumerate(self.acknowledged)
            if newest < started
        ]

    @property
    def problems(self) -> list[str]:
        """What clients should not have met."""
        at = self.lost_power_at
        given_up = [what for when, what in self._given_up if at is None or when < at]
        unread = [f"the last reader: {self.topic}-{n}: {why}" for n, why in self.unread.items()]
        return [*self._found, *given_up, *unread]

    def lose(self, at: float) -> None:
        """Nothing is promised any more but what was so until then: let all go that is in flight."""
        self.lost_power_at = at
        self._stopping.set()

    def stop(self) -> None:
        """What is in flight is waited for."""
        self._stopping.set()
        for thread in self._threads:
            thread.join(_END_SECONDS)
        alive = [thread for thread in self._threads if thread.is_alive()]
        if not alive:
            return
        self.deadlocked = min(len(alive), deadlocked_clients())
        if self.deadlocked < len(alive):
            for thread in alive:
                self._found.append(f"{thread.name} does not come to an end: {line_of(thread)}")

    def read_to_the_end(self) -> None:
        """A last consumer reads everything, when nobody sends any more."""
        reader = Reader(self._bootstrap, self.topic, PARTITIONS, "final", self._add_poll)
        self.unread = reader.read_to_the_end(_END_SECONDS)

    def _meet_corrupt(self, client: str, partition: int) -> None:
        with self._lock:
            self.corrupt.append(f"{client} in {self.topic}-{partition}")

    def _add_poll(self, poll: Poll) -> None:
        with self._lock:
            self.history.polls.append(poll)

    def _consuming(self, client: str, rack: str) -> Callable[[], None]:
        def work() -> None:
            reader = Reader(
                self._bootstrap,
                self.topic,
                PARTITIONS,
                client,
                self._add_poll,
                rack=rack,
                met_corrupt=lambda partition: self._meet_corrupt(client, partition),
            )
            while not self._stopping.is_set():
                reader.poll()
            reader.close()

        return work

    def _producing(
        self, client: str, sends_per_second: float, partitions: Sequence[int]
    ) -> Callable[[], None]:
        def work() -> None:
            producer = Producer(
                {
                    "bootstrap.servers": self._bootstrap,
                    "linger.ms": 2,
                    "message.timeout.ms": 60_000,
                    "socket.timeout.ms": 5_000,
                    "reconnect.backoff.max.ms": 500,
                    "log_level": 0,
                    **self.promise.producer,
                }
            )
            try:
                self._produce(producer, client, sends_per_second, partitions)
            except KafkaException as error:
                # What was lost with the power may be missed before it is known to be lost.
                self._given_up.append((time.monotonic(), f"{client} gives up: {error}"))

        return work

    def _produce(
        self, producer: Producer, client: str, sends_per_second: float, partitions: Sequence[int]
    ) -> None:
        """Until it is told to stop. Raises `KafkaException` for what librdkafka calls fatal."""
        number, due = 0, time.monotonic()
        while not self._stopping.is_set():
            if len(producer) < _IN_FLIGHT_MAX:
                self._send(producer, client, number, partitions[number % len(partitions)])
                number += 1
            due = max(due + 1 / sends_per_second, time.monotonic())
            while (left := due - time.monotonic()) > 0 and not self._stopping.is_set():
                producer.poll(left)
        if self.lost_power_at is None:
            producer.flush(_END_SECONDS)
        else:
            producer.purge()
            producer.flush(1)

    def _send(self, producer: Producer, client: str, number: int, partition: int) -> None:
        value = f"{client}-{number}"
        started = time.monotonic()
        sends, place = self._reserve(client, partition, value, started)

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is None:
                newest = self.acknowledged[partition]
                self.acknowledged[partition] = max(newest, started)
                sends[place] = self._sent(client, partition, value, started, message.offset())
            elif error.code() == KafkaError._MSG_TIMED_OUT:
                self.timeouts.append((client, time.monotonic()))

        every = self.promise.large_every
        record = record_of(value, is_large=every > 0 and number % every == 0)
        producer.produce(self.topic, record, partition=partition, on_delivery=delivered)

    def _reserve(
        self, client: str, partition: int, value: str, started: float
    ) -> tuple[list[Send], int]:
        """A place in the history, in the order of beginning; it may have happened until told."""
        send = Send(
            client=client,
            partition=TopicPartition(self.topic, partition),
            values=(value,),
            started=started,
            ended=float("inf"),
            outcome=Outcome.INFO,
        )
        with self._lock:
            self.history.sends.append(send)
            return self.history.sends, len(self.history.sends) - 1

    def _sent(
        self, client: str, partition: int, value: str, started: float, offset: int | None
    ) -> Send:
        return Send(
            client=client,
            partition=TopicPartition(self.topic, partition),
            values=(value,),
            started=started,
            ended=time.monotonic(),
            outcome=Outcome.OK,
            offsets=() if offset is None or offset < 0 else (Offset(offset),),
        )


def _says_that_it_is_there(error: Exception) -> bool:
    kafka_error = error.args[0] if isinstance(error, KafkaException) else None
    return kafka_error is not None and kafka_error.code() == KafkaError.TOPIC_ALREADY_EXISTS
