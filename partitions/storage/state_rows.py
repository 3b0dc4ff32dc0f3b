"""A partition's values as rows of `state.db`, and back."""

import sqlite3
from collections import defaultdict
from collections.abc import Iterable
from typing import Final, TypeAlias
from uuid import UUID

from tidemark.partitions.raft.entries import Configuration, EpochStart, epoch_start
from tidemark.partitions.raft.messages import HardState
from tidemark.partitions.storage.state_values import Condition, PartitionKey, PartitionState
from tidemark.protocol.types import Epoch, NodeId, Offset

Epochs: TypeAlias = defaultdict[tuple[bytes, int], list[EpochStart]]
"""The epochs of partitions, by what `key_row` makes of their keys."""
_CONDITIONS: Final = {condition.value: condition for condition in Condition}


def key_row(key: PartitionKey) -> tuple[bytes, int]:
    return key.topic_id.bytes, key.partition


def delete_of(connection: sqlite3.Connection, table: str, key: PartitionKey) -> None:
    connection.execute(f"DELETE FROM {table} WHERE topic_id = ? AND partition = ?", key_row(key))


def partition_row(state: PartitionState) -> tuple[bytes | int | str | None, ...]:
    return (
        *key_row(state.key),
        state.name,
        state.log_start,
        state.recovery_point,
        state.hard_state.epoch,
        state.hard_state.voted_for,
        state.condition,
        state.is_journaled,
    )


class TopicIds(dict[bytes, UUID]):
    """Topics' ids by their bytes: one for all partitions of a topic."""

    def __missing__(self, topic_id: bytes) -> UUID:
        made = self[topic_id] = UUID(bytes=topic_id)
        return made


class StateRows:
    """Partitions' states from their rows, given the epochs of all."""

    def __init__(self, epochs: Epochs) -> None:
        self._epochs = epochs
        self._topics = TopicIds()
        self._votes: dict[tuple[Epoch, NodeId | None], HardState] = {}

    def state(
        self,
        topic_id: bytes,
        partition: int,
        name: str,
        log_start: Offset,
        recovery_point: Offset,
        vote_epoch: Epoch,
        voted_for: NodeId | None,
        condition: int,
        is_journaled: int,
    ) -> PartitionState:
        vote = self._votes.get((vote_epoch, voted_for))
        if vote is None:
            vote = self._votes[vote_epoch, voted_for] = HardState(vote_epoch, voted_for)
        return PartitionState(
            key=PartitionKey(self._topics[topic_id], partition),
            name=name,
            log_start=log_start,
            recovery_point=recovery_point,
            hard_state=vote,
            epochs=tuple(self._epochs.get((topic_id, partition), ())),
            condition=_CONDITIONS[condition],
            is_journaled=bool(is_journaled),
        )


def epoch_row(key: PartitionKey, start: EpochStart) -> tuple[bytes | int | str, ...]:
    config = start.config
    voters, outgoing = _as_text(config.voters), _as_text(config.outgoing)
    begins = (start.epoch, start.start_offset, start.leader)
    return (*key_row(key), *begins, voters, outgoing, config.version)


def _as_text(ids: Iterable[NodeId]) -> str:
    """Node ids as somebody who opens the file with `sqlite3` would like to read them."""
    return ",".join(map(str, ids))


def epoch_of_row(
    epoch: Epoch, start_offset: Offset, leader: NodeId, voters: str, outgoing: str, version: int
) -> EpochStart:
    config = Configuration(_voters_of_text(voters), _voters_of_text(outgoing), version)
    return epoch_start(epoch, start_offset, leader, config)


def _voters_of_text(ids: str) -> tuple[NodeId, ...]:
    return tuple(NodeId(int(node_id)) for node_id in ids.split(",") if node_id)
