"""A group whose coordinator's broker is killed while it reads and commits.

Every client's `test_group_failover` is the same story: three partitions are full of numbered
values; a member reads them, and commits after every few what it has read. After a third of them the
broker that coordinates its group is killed. The member finds the new coordinator by itself, reads
every value (some perhaps twice: what was read since the last commit), and is never set back behind
a commit that was acknowledged; in the end the coordinator has exactly what it committed last.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Final

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from tests.clients import failover
from tidemark.testing.process_cluster import ProcessCluster

PARTITIONS: Final = failover.PARTITIONS
COUNT: Final = 900
KILL_AT: Final = 300
COMMIT_EVERY: Final = 20
SECONDS_MAX: Final = 40.0
_COORDINATOR_SECONDS_MAX: Final = 20.0


def fill(cluster: ProcessCluster, topic: str) -> None:
    failover.create(cluster, topic)
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True})
    for number in range(COUNT):
        partition = failover.partition_of(number)
        producer.produce(topic, failover.value_of(number), partition=partition)
    assert producer.flush(30) == 0


def kill_coordinator(cluster: ProcessCluster, group: str) -> int:
    """`kill -9` of the broker that coordinates the group; which it was."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    deadline = time.monotonic() + _COORDINATOR_SECONDS_MAX
    while time.monotonic() < deadline:
        described = admin.describe_consumer_groups([group])[group].result(10)
        coordinator: int = described.coordinator.id
        if coordinator in cluster.brokers and cluster.brokers[coordinator].is_running:
            cluster.brokers[coordinator].kill()
            return coordinator
        time.sleep(0.05)
    raise AssertionError("the group has no coordinator")


class Witness:
    """What a group's members have read and had acknowledged; complains at once of what is wrong."""

    def __init__(self) -> None:
        self._ends = dict.fromkeys(range(PARTITIONS), 0)
        self._committed = dict.fromkeys(range(PARTITIONS), 0)
        self._deadline = time.monotonic() + SECONDS_MAX
        self.commits_failed = 0

    @property
    def count(self) -> int:
        """How many different values have been read."""
        return sum(self._ends.values())

    @property
    def is_done(self) -> bool:
        """Whether all have been; fails if that takes too long."""
        assert time.monotonic() < self._deadline, f"{self.count} of {COUNT} values in time"
        return self.count == COUNT

    @property
    def is_committed(self) -> bool:
        """Whether all that has been read has been committed."""
        return self._committed == self._ends

    @property
    def positions(self) -> dict[int, int]:
        """What there is to commit, by partition."""
        return dict(self._ends)

    def read(self, partition: int, offset: int, value: bytes | None) -> None:
        assert value == failover.value_of(offset * PARTITIONS + partition)
        assert offset <= self._ends[partition], "values were skipped"
        assert offset >= self._committed[partition], "it was set back behind its commit"
        self._ends[partition] = max(self._ends[partition], offset + 1)

    def acknowledged(self, offsets: Iterable[tuple[int, int]]) -> None:
        """A commit of these has been acknowledged."""
        for partition, offset in offsets:
            self._committed[partition] = max(self._committed[partition], offset)

    def check_commits(self, offsets: Iterable[tuple[int, int | None]]) -> None:
        """These are the group's commits as the coordinator has them when all has been read."""
        assert dict(offsets) == self._committed == self._ends
