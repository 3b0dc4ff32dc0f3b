"""A consumer group whose members come and go, and commit what they have worked through."""

from __future__ import annotations

import threading
import time
from random import Random
from typing import Final

from confluent_kafka import Consumer, KafkaException, TopicPartition

from tests.chaos.commits import Commit, Commits, Committed
from tests.chaos.workload.reader import (
    CONSUMER,
    POLL_RECORDS,
    POLL_SECONDS,
    corrupt_in,
    records_in,
)
from tidemark.testing.checkers import Poll

_NAME: Final = "workers"
_MEMBER_SECONDS: Final = (8.0, 40.0)
_JOIN_SECONDS: Final = 30.0
_ASK_SECONDS: Final = 0.5


class GroupRun:
    """The group of one topic. Every record has to be polled by a member, at least once."""

    def __init__(self, bootstrap: str, topic: str, partitions: int, rng: Random) -> None:
        self.polls: list[Poll] = []
        self.commits = Commits()
        self.members = 0
        self.rebalances = 0
        self._bootstrap = bootstrap
        self._topic = topic
        self._partitions = partitions
        self._rng = rng
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self, members: int) -> None:
        self._threads = [
            threading.Thread(target=self._members, daemon=True) for _ in range(members)
        ]
        self._threads.append(threading.Thread(target=self._ask_commits, daemon=True))
        for thread in self._threads:
            thread.start()

    def finish(self, ends: dict[int, int], seconds: float) -> bool:
        """Let the members read up to `ends`, and stop. Whether they came so far in time."""
        deadline = time.monotonic() + seconds
        while not (is_there := self._has_committed(ends)) and time.monotonic() < deadline:
            time.sleep(_ASK_SECONDS)
        self._stopping.set()
        for thread in self._threads:
            thread.join(_JOIN_SECONDS)
        return is_there

    def _has_committed(self, ends: dict[int, int]) -> bool:
        with self._lock:
            newest = {each.partition: each.offset for each in self.commits.seen}
        return all(newest.get(n, 0) >= end for n, end in ends.items() if end)

    def _members(self) -> None:
        """One member after the other."""
        while not self._stopping.is_set():
            with self._lock:
                self.members += 1
                client, lives = f"m{self.members}", self._rng.uniform(*_MEMBER_SECONDS)
            self._live(client, time.monotonic() + lives)

    def _live(self, client: str, until: float) -> None:
        consumer = self._consumer(client)
        position: dict[int, int] = {}

        def assigned(_: Consumer, partitions: list[TopicPartition]) -> None:
            position.clear()
            if partitions:
                with self._lock:
                    self.rebalances += 1

        consumer.subscribe([self._topic], on_assign=assigned)
        while not self._stopping.is_set() and time.monotonic() < until:
            started = time.monotonic()
            messages = consumer.consume(POLL_RECORDS, POLL_SECONDS)
            records = records_in(messages)
            for record in records:
                position[record.partition.partition] = record.offset + 1
            for partition in corrupt_in(messages):
                self._go_back(consumer, partition, position)
            if records:
                poll = Poll(client=client, started=started, ended=time.monotonic(), records=records)
                with self._lock:
                    self.polls.append(poll)
                self._commit(consumer, client, position)
        consumer.close()

    def _go_back(self, consumer: Consumer, partition: int, position: dict[int, int]) -> None:
        at = position.get(partition)
        if at is None:
            (committed,) = consumer.committed([TopicPartition(self._topic, partition)], timeout=30)
            at = max(0, committed.offset)
        consumer.seek(TopicPartition(self._topic, partition, at))
        time.sleep(POLL_SECONDS)

    def _consumer(self, client: str) -> Consumer:
        return Consumer(
            {
                **CONSUMER,
                "bootstrap.servers": self._bootstrap,
                "client.id": client,
                "group.id": _NAME,
                "auto.offset.reset": "earliest",
                "session.timeout.ms": 6_000,
                "heartbeat.interval.ms": 500,
            }
        )

    def _commit(self, consumer: Consumer, client: str, position: dict[int, int]) -> None:
        started = time.monotonic()
        offsets = [TopicPartition(self._topic, n, offset) for n, offset in position.items()]
        try:
            done = consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException:  # It may have happened, or happen yet; nothing is promised.
            ended = time.monotonic()
            unanswered = [Commit(client, n, at, started, ended) for n, at in position.items()]
            with self._lock:
                self.commits.unanswered += unanswered
            return
        ended = time.monotonic()
        with self._lock:
            for each in done or ():
                if each.error is None:
                    commit = Commit(client, each.partition, each.offset, started, ended)
                    self.commits.made.append(commit)

    def _ask_commits(self) -> None:
        """Somebody looks on, all the time."""
        consumer = self._consumer("onlooker")
        asked = [TopicPartition(self._topic, n) for n in range(self._partitions)]
        while not self._stopping.is_set():
            started = time.monotonic()
            try:
                answered = consumer.committed(asked, timeout=10)
            except KafkaException:
                continue
            ended = time.monotonic()
            with self._lock:
                for each in answered:
                    if each.error is None:
                        seen = Committed(each.partition, max(0, each.offset), started, ended)
                        self.commits.seen.append(seen)
            self._stopping.wait(_ASK_SECONDS)
        consumer.close()
