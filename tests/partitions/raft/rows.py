"""Places in a log, in short."""

from __future__ import annotations

from tidemark.partitions.raft.entries import Configuration, EpochStart
from tidemark.protocol.types import Epoch, NodeId, Offset, Position

ONE = Configuration((NodeId(1),))


def at(epoch: int, offset: int) -> Position:
    return Position(Epoch(epoch), Offset(offset))


def row(epoch: int, start: int, config: Configuration = ONE) -> EpochStart:
    return EpochStart(Epoch(epoch), Offset(start), NodeId(1), config)
