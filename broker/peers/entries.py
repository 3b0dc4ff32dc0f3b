"""Positions and entries of a log, as they travel between brokers: both ways.

What cannot be true of any log raises `MalformedMessage`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise
from typing import Final, cast

from tidemark.partitions.raft.entries import (
    UNVERSIONED,
    Entry,
    EpochStart,
    Run,
    configuration,
    epoch_start,
)
from tidemark.partitions.raft.messages import ResetRequest
from tidemark.protocol.errors import MalformedMessage
from tidemark.protocol.messages.peer.entries import EntryData, EpochRowData, EpochStartData
from tidemark.protocol.messages.peer.resets import ResetData
from tidemark.protocol.types import Epoch, NodeId, Offset, Position

NO_POSITION: Final = Position(-1, -1)  # type: ignore[arg-type]  # no position that a log has


@lru_cache(maxsize=1024)
def position_of(epoch: int, offset: int) -> Position:
    """One for all groups that are there: thousands of idle ones are at the same few places."""
    if epoch < -1 or offset < 0:
        raise MalformedMessage(f"a position of {offset}@{epoch}")
    return Position(Epoch(epoch), Offset(offset))


def position_or_none(epoch: int, offset: int) -> Position | None:
    return None if offset == -1 else position_of(epoch, offset)


def entry_to_wire(entry: Entry) -> EntryData:
    if isinstance(entry, Run):
        return EntryData(
            epoch=entry.epoch,
            base_offset=entry.base_offset,
            end_offset=entry.end_offset,
            begins=None,
            records=cast("bytes", entry.records),  # or a slice, which the encoder takes, too
        )
    return EntryData(
        epoch=entry.epoch,
        base_offset=entry.start_offset,
        end_offset=entry.start_offset,
        begins=_epoch_start_to_wire(entry),
        records=None,
    )


def entries_of(entries: Iterable[EntryData], prev: Position) -> tuple[Entry, ...]:
    """In order, none before the end of another; holes are left to those who know the log."""
    found: list[Entry] = []
    epoch, end = prev
    for data in entries:
        if not (data.base_offset >= end and data.epoch >= max(epoch, 0)):
            raise MalformedMessage(
                f"an entry at {data.base_offset}@{data.epoch} after {end}@{epoch}"
            )
        found.append(_entry_of(data))
        epoch, end = Epoch(data.epoch), Offset(data.end_offset)
    return tuple(found)


def reset_to_wire(message: ResetRequest) -> ResetData:
    return ResetData(
        epoch=message.epoch,
        start_epoch=message.start.epoch,
        start_offset=message.start.offset,
        table=[
            EpochRowData(
                epoch=row.epoch, start_offset=row.start_offset, begins=_epoch_start_to_wire(row)
            )
            for row in message.table
        ],
        snapshot=message.snapshot,
        committed_epoch=message.committed.epoch,
        committed_offset=message.committed.offset,
    )


def reset_of(data: ResetData) -> ResetRequest:
    table = tuple(
        _epoch_start_of(Epoch(r.epoch), Offset(r.start_offset), r.begins) for r in data.table
    )
    for before, after in pairwise(table):
        if not (before.epoch < after.epoch and before.start_offset <= after.start_offset):
            raise MalformedMessage("a table of epochs that is not ascending")
    return ResetRequest(
        Epoch(data.epoch),
        position_of(data.start_epoch, data.start_offset),
        table,
        data.snapshot,
        position_of(data.committed_epoch, data.committed_offset),
    )


def _epoch_start_to_wire(entry: EpochStart) -> EpochStartData:
    config = entry.config
    return EpochStartData(
        leader=entry.leader,
        voters=config.voters,
        outgoing=config.outgoing,
        version=config.version,
    )


def _entry_of(data: EntryData) -> Entry:
    epoch, base, end = Epoch(data.epoch), Offset(data.base_offset), Offset(data.end_offset)
    if data.begins is not None and data.records is None and base == end:
        return _epoch_start_of(epoch, base, data.begins)
    if data.begins is None and data.records is not None and base < end and len(data.records):
        return Run(epoch, base, end, data.records)
    raise MalformedMessage(f"an entry from {base} to {end} that is neither records nor a beginning")


def _epoch_start_of(epoch: Epoch, offset: Offset, data: EpochStartData) -> EpochStart:
    voters, outgoing = _nodes_of(data.voters), _nodes_of(data.outgoing)
    if not voters or min(epoch, offset, data.leader, data.version - UNVERSIONED) < 0:
        raise MalformedMessage(f"an epoch {epoch} at {offset} with {len(voters)} voters")
    config = configuration(voters, outgoing, data.version)
    return epoch_start(epoch, offset, NodeId(data.leader), config)


def _nodes_of(nodes: Iterable[int]) -> tuple[NodeId, ...]:
    found = tuple(map(NodeId, nodes))
    if list(found) != sorted(set(found)) or any(node < 0 for node in found[:1]):
        raise MalformedMessage("voters that are not ascending")
    return found
