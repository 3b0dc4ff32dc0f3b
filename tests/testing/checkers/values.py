"""Whom and what the invariants are of, and how one is broken."""

from contextlib import AbstractContextManager

import pytest

from tidemark.protocol.records.header import BatchHeader
from tidemark.protocol.types import Epoch, NodeId, Offset, Position
from tidemark.testing.checkers.violation import Violation

ANN, BEN, CAT = NodeId(1), NodeId(2), NodeId(3)


def breaks(invariant: str) -> AbstractContextManager[object]:
    return pytest.raises(Violation, match=f"^{invariant}: ")


def at(epoch: int, offset: int) -> Position:
    return Position(Epoch(epoch), Offset(offset))


def batch(base: int, count: int, *, epoch: int, crc: int = 0, sequence: int = -1) -> BatchHeader:
    header = BatchHeader.open(
        base_offset=Offset(base),
        epoch=Epoch(epoch),
        attributes=0,
        base_timestamp=0,
        max_timestamp=0,
        producer_id=7 if sequence >= 0 else -1,
        producer_epoch=0,
        base_sequence=sequence,
        record_count=count,
    )
    return header._replace(crc=crc)
