"""From the bytes that a fetch brought to what the caller sees. Pure.

Leaves out transaction markers, records before the position (a batch is never cut at its front),
what lies at or beyond the end that was asked for, and, for readers of committed transactions, the
records of aborted ones.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from tidemark.client.offsets import Isolation
from tidemark.client.records import (
    CREATE_TIME,
    LOG_APPEND_TIME,
    ConsumerRecord,
    FetchedBatches,
)
from tidemark.protocol.errors import CorruptBatch
from tidemark.protocol.records.header import BatchHeader, iter_headers
from tidemark.protocol.records.records import decode_batch
from tidemark.protocol.types import BytesLike, Epoch, Offset, TopicPartition

_ABORT: Final = 0
_MARKER_TYPE: Final = slice(2, 4)  # in a marker's key, after its version


def next_offset(data: BytesLike) -> tuple[Offset, Epoch] | None:
    """Where reading goes on after the whole batches in `data`, and the epoch of the last one.

    None if there is no whole batch.
    """
    last = None
    for _, header in iter_headers(data):
        last = header
    if last is None:
        return None
    return last.next_offset, last.partition_leader_epoch


def visible_batches(
    data: BytesLike, aborted: Sequence[tuple[int, Offset]], isolation: Isolation
) -> Iterator[tuple[int, BatchHeader]]:
    """The batches in `data` that hold records for this reader, as positions and headers.

    `aborted` is what the broker said: producer ids, and where their aborted transactions began.
    Each lasts until that producer's abort marker.
    """
    if isolation is Isolation.READ_UNCOMMITTED:
        yield from ((at, header) for at, header in iter_headers(data) if not header.is_control)
        return
    ahead = sorted(aborted, key=lambda transaction: transaction[1], reverse=True)
    open_aborted: set[int] = set()
    for at, header in iter_headers(data):
        while ahead and ahead[-1][1] <= header.last_offset:
            open_aborted.add(ahead.pop()[0])
        if header.is_control:
            if _is_abort(data, header, at):
                open_aborted.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in open_aborted):
            yield at, header


def _is_abort(data: BytesLike, header: BatchHeader, at: int) -> bool:
    markers = decode_batch(data, header, at)
    if not markers or markers[0].key is None or len(markers[0].key) < _MARKER_TYPE.stop:
        raise CorruptBatch(at, "a control batch without a marker")
    return int.from_bytes(markers[0].key[_MARKER_TYPE], "big", signed=True) == _ABORT


def corrupt_at(
    topic_partition: TopicPartition,
    fetch_offset: Offset,
    error: CorruptBatch,
    *,
    go_on: str = "seek is how to go on behind it",
) -> CorruptBatch:
    """The same error, for who knows offsets and no bytes."""
    what = (
        f"{error.what}; it is in what was fetched of {topic_partition} from offset {fetch_offset},"
        f" and {go_on}"
    )
    return CorruptBatch(error.at, what)


def corrupt_in(fetched: FetchedBatches, error: CorruptBatch, *, go_on: str) -> CorruptBatch:
    """As `corrupt_at`, where it begins in what was fetched."""
    whole = before_corrupt(fetched, error)
    at = fetched.fetch_offset if whole is None else whole.next_offset
    return corrupt_at(fetched.topic_partition, at, error, go_on=go_on)


def before_corrupt(fetched: FetchedBatches, error: CorruptBatch) -> FetchedBatches | None:
    """What was fetched, as far as the batch that cannot be read; None if nothing lies before it."""
    data = memoryview(fetched.data)[: error.at]
    following = next_offset(data)
    if following is None or following[0] <= fetched.fetch_offset:
        return None
    return fetched._replace(data=data, next_offset=following[0], last_epoch=following[1])


def read_records(
    fetched: FetchedBatches, end: Offset | None, isolation: Isolation
) -> list[ConsumerRecord]:
    """The records of a fetch from its position on, below `end`. Raises `CorruptBatch`."""
    topic, partition = fetched.topic_partition.topic, fetched.topic_partition.partition
    start = fetched.fetch_offset
    records: list[ConsumerRecord] = []
    for at, header in visible_batches(fetched.data, fetched.aborted, isolation):
        timestamp_type = LOG_APPEND_TIME if header.is_log_append_time else CREATE_TIME
        epoch = header.partition_leader_epoch
        batch = decode_batch(fetched.data, header, at)
        if header.base_offset < start or (end is not None and header.last_offset >= end):
            batch = [
                record
                for record in batch
                if record.offset >= start and (end is None or record.offset < end)
            ]
        records += [
            ConsumerRecord(
                topic, partition, offset, timestamp_ms, timestamp_type, key, value, headers, epoch
            )
            for offset, timestamp_ms, key, value, headers in batch
        ]
    return records
