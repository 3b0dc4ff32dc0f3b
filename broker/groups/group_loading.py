"""Reading one partition of `__consumer_offsets` back: the groups as its log has them."""

from __future__ import annotations

import trio

from tidemark.broker.replicas.replica import Replica
from tidemark.partitions.state_machines.groups.records import decode_record
from tidemark.partitions.state_machines.groups.replay import Replay
from tidemark.partitions.storage.slices import LogSlice
from tidemark.protocol.errors import CorruptBatch
from tidemark.protocol.records.header import iter_headers
from tidemark.protocol.records.records import decode_records
from tidemark.protocol.types import Offset

_CHUNK_BYTES = 1024 * 1024

Latest = dict[bytes, bytes | None]
"""The last value of each key. Older ones say nothing any more, so they are not decoded."""


async def read_groups(replica: Replica, *, limiter: trio.CapacityLimiter) -> Replay:
    """What the log says up to its end; nothing may be appended meanwhile.

    Raises `RequestError` if the log cannot be read, and `CorruptBatch` or `MalformedMessage` if
    what it holds is not what a coordinator wrote.
    """
    latest: Latest = {}
    offset = replica.log_start
    while offset < replica.high_watermark:
        chunk = replica.read(offset, bytes_max=_CHUNK_BYTES, at_least_one=True)
        try:
            offset = await trio.to_thread.run_sync(_take_in, chunk, latest, limiter=limiter)
        finally:
            chunk.release()
    return await trio.to_thread.run_sync(_replay, latest, limiter=limiter)


def _take_in(chunk: LogSlice, latest: Latest) -> Offset:
    """On a thread. Returns where the next chunk begins."""
    data = chunk.read()
    end_offset = None
    for _, header in iter_headers(data):
        end_offset = header.next_offset
    if end_offset is None:
        raise CorruptBatch(0, "a log that ends before its end offset")
    for record in decode_records(data):
        if record.key is not None:
            # Taken out first, so that the order is that of the last writes.
            latest.pop(record.key, None)
            latest[record.key] = record.value
    return end_offset


def _replay(latest: Latest) -> Replay:
    """On a thread."""
    replay = Replay()
    for key, value in latest.items():
        record = decode_record(key, value)
        if record is not None:
            replay.apply(record)
    return replay
