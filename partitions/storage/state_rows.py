"""A partition's values as rows of `state.db`, and back."""

import sqlite3
from collections import defaultdict
from collections.abc import Iterable
from typing import TypeAlias
from uuid import UUID

from tidemark.partitions.raft.entries import EpochStart
from tidemark.partitions.raft.messages import HardState
from tidemark.partitions.storage.state_values import Condition, PartitionKey, PartitionState
from tidemark.protocol.types import Epoch, NodeId, Offset

Epochs: TypeAlias = defaultdict[tuple[bytes, int], list[EpochStart]]
"""The epochs of partitions, by what `key_row` makes of their keys."""


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


def state_of_row(
    epochs: Epochs,
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
    key = PartitionKey(UUID(bytes=topic_id), partition)
    return PartitionState(
        key=key,
        name=name,
        log_start=log_start,
        recovery_point=recovery_point,
        hard_state=HardState(vote_epoch, voted_for),
        epochs=tuple(epochs.get((topic_id, partition), ())),
        condition=Condition(condition),
        is_journaled=bool(is_journaled),
    )


def epoch_row(key: PartitionKey, start: EpochStart) -> tuple[bytes | int | str, ...]:
    voters, outgoing = _as_text(start.config.voters), _as_text(start.config.outgoing)
    return (*key_row(key), start.epoch, start.start_offset, start.leader, voters, outgoing)


def _as_text(ids: Iterable[NodeId]) -> str:
    """Node ids as somebody who opens the file with `sqlite3` would like to read them."""
    return ",".join(map(str, ids))


def voters_of_text(ids: str) -> tuple[NodeId, ...]:
    return tuple(NodeId(int(node_id)) for node_id in ids.split(",") if node_id)
