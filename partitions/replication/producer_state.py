"""Which producers' batches and transactions are in a log: a function of it, and of nothing else.

A snapshot may be *ahead* of the place where it lies. When a log's start moves, what the batches
below said of producers is kept beside it, and what is at hand is the state at the log's end: that
is kept, once all of it is committed and can never be cut. It is taken up at the start, and the
batches between the two, which it knows already, change nothing.

What was committed may be lost all the same, with page caches (`flush=os`): then others come in the
place of batches that it knows. They are of other epochs than those were, so it says which:

| part   | layout, big-endian                                                      |
|--------|-------------------------------------------------------------------------|
| ahead  | int64: batches below this offset are in the table; int32: how many epochs |
| epochs | int32 leader epoch, int64 offset from which on those batches were of it |
| table  | as in `state_machines.producers`                                        |
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from operator import attrgetter
from struct import Struct
from typing import Final, NamedTuple

from tidemark.partitions.state_machines.producers import ProducerTable
from tidemark.partitions.storage.log import Log
from tidemark.protocol.errors import CorruptBatch, StorageError
from tidemark.protocol.records.control import read_marker
from tidemark.protocol.records.header import CONTROL_BIT, BatchHeader, iter_headers
from tidemark.protocol.types import BytesLike, Epoch, Offset

_AHEAD: Final = Struct(">qi")
_EPOCH: Final = Struct(">iq")


class EpochFrom(NamedTuple):
    """The leader epoch of a log's batches, from an offset on up to where the next one begins."""

    epoch: Epoch
    offset: Offset


_OFFSET: Final = attrgetter("offset")


class ProducerState:
    """Follows the batches of one log, from its opening on, through truncations."""

    __slots__ = ("_epochs", "is_stale", "known_end", "table")

    def __init__(self) -> None:
        self.table = ProducerTable()
        self.known_end = Offset(0)
        """All batches below are in the table, those too that the log is yet to get."""
        # Of these, ascending, where there may be some that the log is yet to get.
        self._epochs: Sequence[EpochFrom] = ()
        self.is_stale = False
        """Whether the log was cut, and it was not rebuilt since, or not to the end."""

    def load(self, payload: bytes) -> None:
        """Go on from a snapshot. Raises `StorageError` if it is none."""
        if len(payload) < _AHEAD.size:
            raise StorageError("a producer snapshot that is cut off")
        known_end, count = _AHEAD.unpack_from(payload)
        table_at = _AHEAD.size + max(0, count) * _EPOCH.size
        self.table = ProducerTable.decode(payload[table_at:])
        epochs = _EPOCH.iter_unpack(payload[_AHEAD.size : table_at])
        self.known_end, self._epochs = Offset(known_end), [EpochFrom(*each) for each in epochs]

    def on_batch(self, header: BatchHeader, heard_ms: int | None = None) -> None:
        if not self._is_known(header):
            self.table.append(header, header.base_offset, heard_ms=heard_ms)

    def on_control(self, header: BatchHeader, batch: bytes, heard_ms: int | None = None) -> None:
        """Take in a control batch. Raises `StorageError` if its bytes are none."""
        if self._is_known(header):
            return
        try:
            marker = read_marker(batch, header)
        except CorruptBatch as error:
            raise StorageError(f"a marker at offset {header.base_offset}: {error.what}") from error
        if marker is not None:
            self.table.append_marker(header, header.base_offset, marker, heard_ms=heard_ms)

    def _is_known(self, header: BatchHeader) -> bool:
        """Whether the table has it. If it has another one in its place, that was lost, and so was
        all that came after it."""
        if header.base_offset >= self.known_end:
            return False
        epochs = self._epochs
        # The log's start may be within a batch, which begins before the first of them does.
        at = max(0, bisect_right(epochs, header.base_offset, key=_OFFSET) - 1)
        if not epochs or epochs[at].epoch == header.partition_leader_epoch:
            return True
        self.end_at(header.base_offset)
        return False

    def on_run(self, batches: BytesLike, heard_ms: int) -> None:
        """Take in batches that were appended. Raises `StorageError` as `on_control` does."""
        for at, header in iter_headers(batches):
            if header.attributes & CONTROL_BIT:
                self.on_control(header, bytes(batches[at : at + header.size_bytes]), heard_ms)
            elif header.producer_id >= 0:
                self.on_batch(header, heard_ms)

    def on_control_within(self, header: BatchHeader, run: BytesLike, heard_ms: int) -> None:
        """As `on_control`, of a batch that is somewhere in a run."""
        for at, found in iter_headers(run):
            if found.base_offset == header.base_offset:
                self.on_control(header, bytes(run[at : at + header.size_bytes]), heard_ms)

    def start_at(self, log_start: Offset) -> None:
        """Keep nothing of what readers cannot come across any more."""
        self.table.transactions.trim(log_start)

    def take(self) -> bytes:
        """A snapshot that lies where the log ends."""
        return self._encode(self.known_end, self._epochs)

    def take_ahead(self, end_offset: Offset, epochs: Sequence[EpochFrom]) -> bytes:
        """A snapshot of the log up to its end, to lie further back. `epochs` are the log's from
        there on, ascending."""
        if self.known_end > end_offset:
            return self._encode(self.known_end, self._epochs)
        return self._encode(end_offset, epochs)

    def _encode(self, known_end: Offset, epochs: Sequence[EpochFrom]) -> bytes:
        parts = [_AHEAD.pack(known_end, len(epochs)), *(_EPOCH.pack(*each) for each in epochs)]
        return b"".join((*parts, self.table.encode()))

    def rebuild(self, log: Log) -> None:
        """The table as of the end of a log that was cut, or reset to what comes with that. Raises
        what the log does; then it is `is_stale`."""
        self.is_stale = True
        self.table, self.known_end, self._epochs = ProducerTable(), Offset(0), ()
        log.observe(load_snapshot=self.load, on_batch=self.on_batch, on_control=self.on_control)
        self.start_at(log.start_offset)
        self.is_stale = False

    def end_at(self, end_offset: Offset) -> None:
        """Know of no batch that the log does not have: none will come that is known already."""
        if self.known_end > end_offset:
            self.table.forget_from(end_offset)
            self.known_end = end_offset
