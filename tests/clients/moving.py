"""A leader that is moved to and fro while a client produces.

Every client's `test_moving` is the same story: it sends numbered values to one partition while that
is moved from broker to broker; each must be acknowledged, and reading from the start gives each of
them once, in order.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from confluent_kafka.admin import AdminClient, NewTopic

from tidemark.client.blocking import open_client
from tidemark.testing.process_cluster import ProcessCluster

MOVES: Final = 10
REST_SECONDS: Final = 0.05
"""Between two moves, for the client to find the new leader."""
_SECONDS_MAX: Final = 30.0


def value_of(number: int) -> bytes:
    return b"%08d" % number


def create(cluster: ProcessCluster, topic: str) -> None:
    """One partition with three replicas."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([NewTopic(topic, 1, len(cluster.brokers))])[topic].result(20)


class Moving:
    """The moves, in a thread of their own."""

    def __init__(self, cluster: ProcessCluster, topic: str) -> None:
        self._cluster = cluster
        self._topic = topic
        self.is_over = threading.Event()
        self.targets: list[int] = []
        self.pauses_seconds: list[float] = []

    def run(self) -> None:
        try:
            with open_client(self._cluster.bootstrap) as client:
                nodes = sorted(self._cluster.brokers)
                for turn in range(MOVES):
                    (partition,) = client.run(client.admin.describe_topic, self._topic).partitions
                    others = [node for node in nodes if node != partition.leader]
                    target = others[turn % len(others)]
                    moved = client.run(client.admin.move_leader, self._topic, 0, to=target)
                    self.targets.append(target)
                    self.pauses_seconds.append(moved.pause_seconds)
                    time.sleep(REST_SECONDS)
        finally:
            self.is_over.set()

    def numbers(self) -> Iterator[int]:
        """What to send: one after the other, until the moves are over."""
        deadline, number = time.monotonic() + _SECONDS_MAX, 0
        while not self.is_over.is_set() and time.monotonic() < deadline:
            yield number
            number += 1


@contextmanager
def moving(cluster: ProcessCluster, topic: str) -> Iterator[Moving]:
    """Moves the partition's leader while the block lasts, and waits for the last move after it."""
    create(cluster, topic)
    moves = Moving(cluster, topic)
    thread = threading.Thread(target=moves.run)
    thread.start()
    try:
        yield moves
    finally:
        thread.join(_SECONDS_MAX)
    assert len(moves.targets) == MOVES


def leader_of(cluster: ProcessCluster, topic: str) -> int:
    """Who leads the partition, as soon as somebody does."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    deadline = time.monotonic() + _SECONDS_MAX
    while time.monotonic() < deadline:
        leader = admin.list_topics(topic, timeout=10).topics[topic].partitions[0].leader
        if leader > 0:
            return leader
        time.sleep(0.02)
    raise AssertionError("nobody leads")


def leave_home(cluster: ProcessCluster, topic: str) -> tuple[int, int]:
    """Have another replica lead than the preferred one; the preferred leader, and the other."""
    with open_client(cluster.bootstrap) as client:
        (partition,) = client.run(client.admin.describe_topic, topic).partitions
        home, other, *_ = partition.replicas
        client.run(client.admin.move_leader, topic, 0, to=other)
    return home, other


def check_each_once(count: int, read: Iterable[bytes | None]) -> None:
    assert count > MOVES
    assert list(read) == [value_of(number) for number in range(count)]
