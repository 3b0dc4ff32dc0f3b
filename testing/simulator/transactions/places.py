"""Where what is asked for is: partitions, and the coordinators of names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tidemark.partitions.state_machines.groups.placement import partition_of
from tidemark.partitions.state_machines.topic_names import CONSUMER_OFFSETS, TRANSACTION_STATE
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.types import TopicPartition
from tidemark.testing.simulator.groups import INPUTS, TABLE, WORDS, SimulatedGroup


class Places:
    """Of one cluster."""

    def __init__(self, groups: Iterable[SimulatedGroup]) -> None:
        self._keys = {group.partition: group.key for group in groups}
        self.inputs = self._of(INPUTS)
        """What plain producers write, and members of groups read."""
        self.words = self._of(WORDS)
        """Where transactional producers write."""
        self.table = self._of(TABLE)
        """The same, of a compacted topic."""

    def _of(self, topic: str) -> Sequence[TopicPartition]:
        return sorted(partition for partition in self._keys if partition.topic == topic)

    def key(self, partition: TopicPartition) -> PartitionKey:
        return self._keys[partition]

    def coordinator(self, transactional_id: str) -> PartitionKey:
        return self._keys[self._named(TRANSACTION_STATE, transactional_id)]

    def offsets_of(self, group_id: str) -> TopicPartition:
        """Where a group's commits go."""
        return self._named(CONSUMER_OFFSETS, group_id)

    def groups_coordinator(self, group_id: str) -> PartitionKey:
        return self._keys[self.offsets_of(group_id)]

    def _named(self, topic: str, name: str) -> TopicPartition:
        return TopicPartition(topic, partition_of(name, len(self._of(topic))))
