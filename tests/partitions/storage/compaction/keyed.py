"""Logs of records with keys, and what a reader sees of them."""

from collections.abc import Sequence

from tidemark.partitions.storage.compaction.at_once import compact_at_once
from tidemark.partitions.storage.compaction.job import Tally
from tidemark.partitions.storage.compaction.settings import CompactionLimits, CompactionSettings
from tidemark.partitions.storage.log import Log
from tidemark.partitions.storage.settings import LogSettings
from tidemark.protocol.records.compression import Compression
from tidemark.protocol.records.header import BatchHeader, iter_headers, place
from tidemark.protocol.records.records import Record, decode_batch, encode_batch
from tidemark.protocol.types import Epoch, Offset, ProducerId
from tidemark.testing.memory_files import MemoryFiles

DIRECTORY = "/p-0"
SETTINGS = LogSettings(segment_bytes=1000, index_interval_bytes=100, retention_ms=-1)
AT_ONCE = CompactionSettings(min_cleanable_dirty_ratio=0.0, delete_retention_ms=1000)
NOW_MS = 1_000_000
IN_TIME = NOW_MS + AT_ONCE.delete_retention_ms
BEFORE_ITS_TIME = IN_TIME - 1
"""When what was first compacted at `NOW_MS` may go, and may not yet."""

Row = tuple[int, bytes | None, bytes | None]
"""Offset, key and value of a record."""


def new_log(settings: LogSettings = SETTINGS) -> tuple[MemoryFiles, Log]:
    files = MemoryFiles()
    files.make_directory(DIRECTORY)
    files.sync_directory("/")
    return files, Log.open(files, DIRECTORY, settings)


def keyed_batch(
    log: Log,
    pairs: Sequence[tuple[bytes | None, bytes | None]],
    *,
    epoch: int = 1,
    timestamp_ms: int = 1000,
    compression: Compression = Compression.NONE,
    producer: tuple[int, int, int] = (-1, -1, -1),
    is_transactional: bool = False,
    headers: tuple[tuple[str, bytes | None], ...] = (),
) -> bytes:
    """A batch that is to be appended to `log`; `producer` is id, epoch and base sequence."""
    records = [
        Record(key=key, value=value, timestamp_ms=timestamp_ms + number, headers=headers)
        for number, (key, value) in enumerate(pairs)
    ]
    data = bytearray(
        encode_batch(
            records,
            compression=compression,
            producer_id=producer[0],
            producer_epoch=producer[1],
            base_sequence=producer[2],
            is_transactional=is_transactional,
        )
    )
    place(data, 0, base_offset=log.end_offset, epoch=Epoch(epoch))
    return bytes(data)


def marker(log: Log, producer_id: int, *, commits: bool, epoch: int = 1) -> bytes:
    key = bytes((0, 0, 0, 1 if commits else 0))
    data = bytearray(
        encode_batch(
            [Record(key=key, value=bytes(6), timestamp_ms=1000)],
            producer_id=producer_id,
            producer_epoch=0,
            is_transactional=True,
            is_control=True,
        )
    )
    place(data, 0, base_offset=log.end_offset, epoch=Epoch(epoch))
    return bytes(data)


def put(log: Log, *pairs: tuple[bytes | None, bytes | None]) -> None:
    log.append(keyed_batch(log, pairs))


def seal(log: Log) -> None:
    """Close the segment that is written to, so that all that is there may be compacted."""
    if log._active.size_bytes:  # an empty one is never closed
        log._roll()
    log.sync()


def compact(
    files: MemoryFiles,
    log: Log,
    settings: CompactionSettings = AT_ONCE,
    *,
    now_ms: int = NOW_MS,
    end_offset: int | None = None,
    producers: Sequence[int] = (),
    limits: CompactionLimits | None = None,
) -> Tally | None:
    return compact_at_once(
        files,
        log,
        settings,
        end_offset=log.end_offset if end_offset is None else Offset(end_offset),
        now_ms=now_ms,
        producers=map(ProducerId, producers),
        limits=limits,
    )


def batches(log: Log) -> list[tuple[BatchHeader, bytes]]:
    """All batches, as a follower would read them."""
    found, offset = [], log.start_offset
    while offset < log.end_offset:
        data = log.read(offset, bytes_max=1, end_offset=log.end_offset).read()
        ((_, header),) = iter_headers(data)
        found.append((header, data))
        offset = header.next_offset
    return found


def rows(log: Log) -> list[Row]:
    """What a reader gets, markers left out."""
    return [
        (record.offset, record.key, record.value)
        for header, data in batches(log)
        if not header.is_control
        for record in decode_batch(data, header)
    ]


def values(log: Log) -> dict[bytes | None, bytes | None]:
    """What a reader has in the end who starts at the beginning: deleted keys are not in it."""
    last = {key: value for _, key, value in rows(log)}
    return {key: value for key, value in last.items() if value is not None}
