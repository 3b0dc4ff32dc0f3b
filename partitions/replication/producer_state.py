"""Which producers' batches and transactions are in a log: a function of it, and of nothing else.

A snapshot may be *ahead* of the place where it lies. When a log's start moves, what the batches
below said of producers is kept beside it, and what is at hand is the state at the log's end: that
is kept, once all of it is committed and can never be cut. It is taken up at the start, and the
batches between the two, which it knows already, change nothing:

| part  | layout, big-endian                                                   |
|-------|----------------------------------------------------------------------|
| ahead | int64: batches below this offset are in the table                    |
| table | as in `state_machines.producers`                                     |
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from tidemark.partitions.state_machines.producers import ProducerTable
from tidemark.partitions.storage.log import Log
from tidemark.protocol.errors import CorruptBatch, StorageError
from tidemark.protocol.records.control import read_marker
from tidemark.protocol.records.header import CONTROL_BIT, BatchHeader, iter_headers
from tidemark.protocol.types import BytesLike, Offset

_AHEAD: Final = Struct(">q")


class ProducerState:
    """Follows the batches of one log, from its opening on, through truncations."""

    __slots__ = ("known_end", "table")

    def __init__(self) -> None:
        self.table = ProducerTable()
        self.known_end = Offset(0)
        """All batches below are in the table, those too that the log is yet to get."""

    def load(self, payload: bytes) -> None:
        """Go on from a snapshot. Raises `StorageError` if it is none."""
        if len(payload) < _AHEAD.size:
            raise StorageError("a producer snapshot that is cut off")
        table = ProducerTable.decode(payload[_AHEAD.size :])
        self.table, self.known_end = table, Offset(_AHEAD.unpack_from(payload)[0])

    def on_batch(self, header: BatchHeader, heard_ms: int | None = None) -> None:
        if header.base_offset >= self.known_end:
            self.table.append(header, header.base_offset, heard_ms=heard_ms)

    def on_control(self, header: BatchHeader, batch: bytes, heard_ms: int | None = None) -> None:
        """Take in a control batch. Raises `StorageError` if its bytes are none."""
        if header.base_offset < self.known_end:
            return
        try:
            marker = read_marker(batch, header)
        except CorruptBatch as error:
            raise StorageError(f"a marker at offset {header.base_offset}: {error.what}") from error
        if marker is not None:
            self.table.append_marker(header, header.base_offset, marker, heard_ms=heard_ms)

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
        return _AHEAD.pack(self.known_end) + self.table.encode()

    def take_ahead(self, end_offset: Offset) -> bytes:
        """A snapshot of the log up to its end, to lie further back."""
        return _AHEAD.pack(max(self.known_end, end_offset)) + self.table.encode()

    def rebuild(self, log: Log) -> None:
        """The table as of the end of a log that was cut, or reset to what comes with that."""
        self.table, self.known_end = ProducerTable(), Offset(0)
        log.observe(load_snapshot=self.load, on_batch=self.on_batch, on_control=self.on_control)
        self.start_at(log.start_offset)

    def end_at(self, end_offset: Offset) -> None:
        """Know of no batch that the log does not have: none will come that is known already."""
        if self.known_end > end_offset:
            self.table.forget_from(end_offset)
            self.known_end = end_offset
