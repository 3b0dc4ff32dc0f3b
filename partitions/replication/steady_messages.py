"""What brokers tell each other about many groups at once that are in step.

A row stands for a message of one group: as tuples of numbers, because there is one for every batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from struct import Struct
from typing import Final, NamedTuple, NewType
from uuid import UUID

from tidemark.partitions.raft.entries import Run
from tidemark.partitions.raft.messages import AppendRequest, AppendResponse
from tidemark.partitions.storage.slices import LogSlice
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.types import BytesLike, Epoch, Offset, Position

RowKey = NewType("RowKey", bytes)
"""A group, as it is found by a row: the topic's id and the partition, packed."""

_KEY: Final = Struct(">16si")


class AppendRow(NamedTuple):
    """A run of records, for a follower whose log ends where it begins, in the same epoch."""

    key: RowKey
    epoch: Epoch
    base: Offset
    end: Offset
    committed: Offset
    """The leader's, in that epoch."""
    size_bytes: int
    """Of the run's batches."""

    def message(self, records: BytesLike | LogSlice) -> AppendRequest:
        """What it stands for."""
        prev = Position(self.epoch, self.base)
        run = Run(self.epoch, self.base, self.end, records)
        return AppendRequest(self.epoch, prev, (run,), Position(self.epoch, self.committed))


class AnswerRow(NamedTuple):
    """A follower that is clean has taken a run, and it is durable."""

    key: RowKey
    epoch: Epoch
    base: Offset
    """Of the run."""
    match: Offset
    """Up to here the logs are the same, in that epoch."""

    @property
    def message(self) -> AppendResponse:
        """What it stands for."""
        epoch = self.epoch
        return AppendResponse(epoch, Position(epoch, self.base), Position(epoch, self.match))


class SteadyAppends(NamedTuple):
    """Runs of many groups, and as many pieces of records; or one run that lies in a file."""

    rows: Sequence[AppendRow]
    records: Sequence[BytesLike | LogSlice]

    def messages(self) -> Iterator[tuple[RowKey, AppendRequest]]:
        """What the rows stand for."""
        for row, records in zip(self.rows, self.records, strict=True):
            row = AppendRow(*row)
            yield row.key, row.message(records)


class SteadyAnswers(NamedTuple):
    """Answers of many groups."""

    rows: Sequence[AnswerRow]

    def messages(self) -> Iterator[tuple[RowKey, AppendResponse]]:
        """What the rows stand for."""
        for row in self.rows:
            row = AnswerRow(*row)
            yield row.key, row.message


def row_key(key: PartitionKey) -> RowKey:
    return RowKey(_KEY.pack(key.topic_id.bytes, key.partition))


def partition_key(key: RowKey) -> PartitionKey:
    topic_id, partition = _KEY.unpack(key)
    return PartitionKey(UUID(bytes=topic_id), partition)
