"""What a peer sends is checked before the core believes it.

The core goes by what an entry's envelope says: its epoch, and from where to where it reaches. Here
the batches inside are held against that, header by header, with their CRC. A peer that lies, or a
disk or wire that garbled it, is refused as a whole, and nothing of it is stored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

from tidemark.partitions.raft.entries import Entry, EpochStart, Run
from tidemark.partitions.raft.messages import (
    AppendRequest,
    Message,
    PullRequest,
    PullResponse,
    ResetRequest,
)
from tidemark.partitions.storage.slices import LogSlice
from tidemark.protocol.crc32c import crc32c
from tidemark.protocol.errors import CorruptBatch
from tidemark.protocol.records.header import (
    ATTRIBUTES_AT,
    HEADER_BYTES,
    LOG_OVERHEAD,
    BatchHeader,
    Fields,
    check_crc,
    read_fields,
    read_header,
)
from tidemark.protocol.types import BytesLike, Epoch, Offset, Position

# Made for every batch: calling the class takes twice the time.
_header: Final[Callable[[Fields], BatchHeader]] = partial(tuple.__new__, BatchHeader)
_ELECTIONS_MAX: Final = 1 << 28
"""More than any replica can have missed."""


class RefusedMessage(Exception):
    """A message whose parts contradict each other."""


def checked(message: Message, epoch: Epoch) -> Message:
    """The message, with the bytes of its batches at hand. Raises `RefusedMessage`.

    `epoch` is the newest that is known here.
    """
    if not isinstance(message, PullRequest) and not is_within_reach(message.epoch, epoch):
        raise RefusedMessage(f"epoch {message.epoch}, where {epoch} is the newest")
    match message:
        case AppendRequest():
            entries = _check_entries(message.prev, message.entries, message.epoch)
            return message if entries is message.entries else replace(message, entries=entries)
        case PullResponse():
            if message.reset is not None:
                _check_reset(message.reset)
            entries = _check_entries(message.prev, message.entries, message.committed.epoch)
            return message if entries is message.entries else replace(message, entries=entries)
        case ResetRequest():
            _check_reset(message)
            return message
        case _:
            return message


def is_within_reach(epoch: Epoch, newest: Epoch) -> bool:
    """Whether there can have been so many elections. Who followed to an epoch near the largest
    number there is could never elect anybody again."""
    return epoch <= newest + _ELECTIONS_MAX


def bytes_of(run: Run) -> BytesLike:
    """The batches of a run that was checked, or that this broker made."""
    assert isinstance(run.records, bytes | bytearray | memoryview)
    return run.records


def _check_entries(
    prev: Position, entries: tuple[Entry, ...], epoch_max: Epoch
) -> tuple[Entry, ...]:
    epoch, end = prev
    found: list[Entry] = []
    is_changed = False
    for entry in entries:
        if isinstance(entry, EpochStart):
            if entry.epoch <= epoch or entry.start_offset != end:
                raise RefusedMessage(f"epoch {entry.epoch} at {entry.start_offset} after {prev}")
            epoch = entry.epoch
            found.append(entry)
        else:
            run = _with_bytes(entry)
            is_changed |= run is not entry
            if run.epoch != epoch or run.base_offset != end:
                raise RefusedMessage(
                    f"batches from {run.base_offset}@{run.epoch} where {end}@{epoch} is due"
                )
            _check_run(run)
            end = run.end_offset
            found.append(run)
    if epoch > epoch_max and entries:
        raise RefusedMessage(f"an entry of epoch {epoch} from epoch {epoch_max}")
    return tuple(found) if is_changed else entries


def _with_bytes(run: Run) -> Run:
    if isinstance(run.records, bytes | bytearray | memoryview):
        return run
    if isinstance(run.records, LogSlice):
        return replace(run, records=run.records.read())
    raise RefusedMessage(f"batches in a {type(run.records).__name__}")


def checked_headers(
    records: BytesLike, epoch: Epoch, base: Offset, end: Offset
) -> list[BatchHeader] | None:
    """The headers of batches that are just what a run of these offsets has; `None` if not."""
    found, at, due, size = list[Fields](), 0, base, len(records)
    view = memoryview(records)
    try:
        while at < size:
            fields = read_fields(records, at)
            base_offset, length, its_epoch, _, crc, _, delta, _, _, _, _, _, _ = fields
            batch_end = at + length + LOG_OVERHEAD
            if base_offset != due or its_epoch != epoch or batch_end > size:
                return None
            if crc32c(view[at + ATTRIBUTES_AT : batch_end]) != crc:
                return None
            found.append(fields)
            due = Offset(due + delta + 1)
            at = batch_end
    except CorruptBatch:
        return None
    return list(map(_header, found)) if due == end and found else None


def _check_run(run: Run) -> None:
    data, at, offset = bytes_of(run), 0, run.base_offset
    size = len(data)
    try:
        while at < size:
            header = read_header(data, at)
            if header.base_offset != offset or header.partition_leader_epoch != run.epoch:
                raise RefusedMessage(
                    f"a batch at {header.base_offset}@{header.partition_leader_epoch} "
                    f"where {offset}@{run.epoch} is due"
                )
            check_crc(data, header, at)
            offset = header.next_offset
            at += header.size_bytes
    except CorruptBatch as error:
        raise RefusedMessage(f"in batches from {run.base_offset}@{run.epoch}: {error}") from None
    if offset != run.end_offset or size < HEADER_BYTES:
        raise RefusedMessage(f"batches up to {offset} that were to end at {run.end_offset}")


def _check_reset(reset: ResetRequest) -> None:
    last = None
    for row in reset.table:
        if last is not None and (row.epoch <= last.epoch or row.start_offset < last.start_offset):
            raise RefusedMessage("a table of epochs that are not in order")
        last = row
    if last is not None and (
        last.epoch != reset.start.epoch or last.start_offset > reset.start.offset
    ):
        raise RefusedMessage(f"a table up to epoch {last.epoch} for a reset at {reset.start}")
    if reset.start.epoch > reset.epoch or reset.start.offset < 0:
        raise RefusedMessage(f"a reset at {reset.start} from epoch {reset.epoch}")
