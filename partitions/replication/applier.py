"""A state machine that lives on a group's committed batches."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, Protocol

from tidemark.partitions.raft.messages import Message, PullResponse, ResetRequest
from tidemark.partitions.storage.log import Log
from tidemark.protocol.records.header import BatchHeader, iter_headers
from tidemark.protocol.types import BytesLike, Offset, Position

_READ_BYTES_MAX: Final = 1 << 20


class Known(Protocol):
    """Where a snapshot is to be had for a replica that begins where this one's log does."""

    def snapshot_at(self, start: Offset) -> bytes:
        """At the log's start; empty if there is nothing to be known."""
        ...


class Applier(Protocol):
    """What a state machine offers to the group that replicates it."""

    @property
    def applied(self) -> Offset:
        """All batches below it are in the state."""
        ...

    def apply(self, header: BatchHeader, batch: BytesLike) -> None:
        """Take in the next committed batch: each once, in order, before anybody hears that it
        is committed."""
        ...

    def snapshot_at(self, start: Offset) -> bytes:
        """The state at exactly the log's start, for a replica that needs what is below it."""
        ...

    def restore(self, snapshot: bytes, start: Position) -> None:
        """Replace the state by another replica's; what follows is applied from there on."""
        ...


def apply_committed(applier: Applier, log: Log, committed: Offset) -> None:
    """Hand over all that is committed and not yet applied."""
    while applier.applied < committed:
        found = log.read(applier.applied, bytes_max=_READ_BYTES_MAX, end_offset=committed)
        data = memoryview(found.read())
        if not data:
            return
        for at, header in iter_headers(data):
            applier.apply(header, data[at : at + header.size_bytes])


def with_snapshot(message: Message, known: Known) -> Message:
    """The core knows where a reset begins, and `known` what follows from the batches below."""
    if isinstance(message, ResetRequest):
        return replace(message, snapshot=known.snapshot_at(message.start.offset))
    if isinstance(message, PullResponse) and message.reset is not None:
        snapshot = known.snapshot_at(message.reset.start.offset)
        return replace(message, reset=replace(message.reset, snapshot=snapshot))
    return message
