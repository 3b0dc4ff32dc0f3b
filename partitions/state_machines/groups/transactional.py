"""Commits in transactions (TxnOffsetCommit), by group, until the marker of their producer comes."""

from collections.abc import Iterator

from tidemark.partitions.state_machines.groups.undecided import Undecided
from tidemark.protocol.messages.consumer_offsets import OffsetCommitValue
from tidemark.protocol.types import ProducerId, TopicPartition


class TransactionalOffsets:
    """What the log has of them. Invariant: a group that is named here has at least one."""

    def __init__(self) -> None:
        self._by_group: dict[str, Undecided[TopicPartition, OffsetCommitValue]] = {}
        self._groups_of: dict[ProducerId, dict[str, None]] = {}

    def groups(self) -> Iterator[str]:
        return iter(self._by_group)

    def partitions(self, group_id: str) -> Iterator[TopicPartition]:
        return iter(self._by_group.get(group_id, ()))

    def has(self, group_id: str, partition: TopicPartition) -> bool:
        return partition in self._by_group.get(group_id, ())

    def add(
        self,
        producer_id: ProducerId,
        group_id: str,
        partition: TopicPartition,
        value: OffsetCommitValue,
    ) -> None:
        self._by_group.setdefault(group_id, Undecided()).add(producer_id, partition, value)
        self._groups_of.setdefault(producer_id, {})[group_id] = None

    def supersede(self, group_id: str, partition: TopicPartition) -> None:
        """A commit that is in no transaction, or a tombstone, comes later in the log."""
        undecided = self._by_group.get(group_id)
        if undecided is not None:
            undecided.supersede(partition)
            self._forget_if_empty(group_id)

    def end(
        self, producer_id: ProducerId, *, is_commit: bool
    ) -> dict[str, list[tuple[TopicPartition, OffsetCommitValue]]]:
        """The commits that count from now on, by group; each group that the transaction was in has
        an entry."""
        ended = {}
        for group_id in self._groups_of.pop(producer_id, ()):
            undecided = self._by_group.get(group_id)
            ended[group_id] = (
                [] if undecided is None else undecided.end(producer_id, is_commit=is_commit)
            )
            self._forget_if_empty(group_id)
        return ended

    def _forget_if_empty(self, group_id: str) -> None:
        undecided = self._by_group.get(group_id)
        if undecided is not None and not any(True for _ in undecided):
            del self._by_group[group_id]
