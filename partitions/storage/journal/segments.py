"""Redoing one log: its segments are made to hold what the journal says."""

from collections.abc import Iterable
from typing import NamedTuple

from tidemark.partitions.storage.files import Files
from tidemark.partitions.storage.journal.replay import PartitionReplay, Piece
from tidemark.partitions.storage.log import Log
from tidemark.partitions.storage.names import LOG_SUFFIX, offset_in
from tidemark.partitions.storage.settings import LogSettings
from tidemark.partitions.storage.snapshots import Snapshots
from tidemark.protocol.errors import StorageError
from tidemark.protocol.records.header import iter_headers, read_header
from tidemark.protocol.types import Offset


class RedoneLog(NamedTuple):
    """A log that is on the disk, all of it."""

    start_offset: Offset
    end_offset: Offset
    appended_bytes: int


def redo_log(files: Files, path: str, replay: PartitionReplay) -> RedoneLog:
    """Bring the log in a directory up to the journal, and sync it.

    What the log holds behind the journal's last batch stays, if it is sound and of the log's
    epochs: the process may have died with it in the page cache, where `flush=os` has it. Raises
    `StorageError` if the log ends before the journal goes on with it.
    """
    state = replay.state
    if replay.reset is not None and state.log_start == replay.reset.start.offset:
        _give_up(files, path, state.log_start)
    log = Log.open(
        files,
        path,
        LogSettings(),
        start_offset=_floor(replay.pieces, state.log_start),
        recovery_point=state.recovery_point,
        epochs=state.epochs,
    )
    appended_bytes = 0
    for piece in replay.pieces:
        appended_bytes += _put(log, piece)
    end_offset = log.sync()
    start_offset = log.start_offset
    log.abandon()
    if replay.below_start is not None:
        # Last: the opening removes snapshots that are ahead of what it finds.
        offset, snapshot = replay.below_start
        Snapshots(files, path).save(offset, snapshot, log_start=offset)
        files.sync_directory(path)
    return RedoneLog(start_offset, end_offset, appended_bytes)


def _floor(pieces: Iterable[Piece], log_start: Offset) -> Offset:
    """The log's start, or where the batch begins that holds it: a log consists of whole ones."""
    for piece in pieces:
        if piece.base < log_start < piece.end:
            for _, header in iter_headers(piece.place.read()):
                if header.base_offset < log_start < header.next_offset:
                    return header.base_offset
    return log_start


def _give_up(files: Files, path: str, start_offset: Offset) -> None:
    """Remove the log that was there before a reset, if it begins above the new start.

    Any other is known by its epochs. Where the start has moved since the reset, it was done.
    """
    names = sorted(files.sizes(path), reverse=True)
    bases = [base for name in names if (base := offset_in(name, LOG_SUFFIX)) is not None]
    if bases and min(bases) > start_offset:
        # The last first: what a crash leaves of it begins where it began.
        for name in names:
            files.remove(f"{path}/{name}")
            files.sync_directory(path)


def _put(log: Log, piece: Piece) -> int:
    """Append those batches of a piece that the log does not hold; how many bytes.

    It was checked from the first of them on, by CRC and by epoch. So a batch that it holds at
    their offsets is the same: an epoch's leader gives an offset once.
    """
    data = memoryview(piece.place.read())
    begin = end = 0
    for at, header in iter_headers(data):
        if header.next_offset <= log.end_offset:
            begin = at + header.size_bytes
        if header.next_offset <= piece.end:
            end = at + header.size_bytes
    if begin >= end:
        return 0
    offset = read_header(data, begin).base_offset
    if offset != log.end_offset:
        raise StorageError(f"its log ends at {log.end_offset}, and the journal goes on at {offset}")
    log.append(data[begin:end])
    return end - begin
