"""Reading one partition of `__consumer_offsets` back: the groups as its log has them."""

from __future__ import annotations

import trio

from tidemark.broker.replicas.replica import Replica
from tidemark.partitions.state_machines.groups.reading_back import ReadBack
from tidemark.partitions.state_machines.groups.replay import Replay
from tidemark.partitions.storage.slices import LogSlice
from tidemark.protocol.errors import CorruptBatch
from tidemark.protocol.records.control import read_marker
from tidemark.protocol.records.header import BatchHeader, iter_headers
from tidemark.protocol.records.records import decode_batch
from tidemark.protocol.types import Offset, ProducerId

_CHUNK_BYTES = 1024 * 1024


async def read_groups(replica: Replica, *, limiter: trio.CapacityLimiter) -> Replay:
    """What the log says up to its end; nothing may be appended meanwhile.

    Raises `RequestError` if the log cannot be read, and `CorruptBatch` or `MalformedMessage` if
    what it holds is not what a coordinator wrote.
    """
    found = ReadBack()
    offset = replica.log_start
    while offset < replica.high_watermark:
        chunk = replica.read(offset, bytes_max=_CHUNK_BYTES, at_least_one=True)
        try:
            offset = await trio.to_thread.run_sync(_take_in, chunk, found, limiter=limiter)
        finally:
            chunk.release()
    return await trio.to_thread.run_sync(found.replay, limiter=limiter)


def _take_in(chunk: LogSlice, found: ReadBack) -> Offset:
    """On a thread. Returns where the next chunk begins."""
    data = chunk.read()
    end_offset = None
    for at, header in iter_headers(data):
        _take_batch(data, header, at, found)
        end_offset = header.next_offset
    if end_offset is None:
        raise CorruptBatch(0, "a log that ends before its end offset")
    return end_offset


def _take_batch(data: bytes, header: BatchHeader, at: int, found: ReadBack) -> None:
    producer_id = ProducerId(header.producer_id)
    if header.is_control:
        marker = read_marker(data, header, at)
        if marker is not None:
            found.end_transaction(producer_id, is_commit=marker.is_commit)
        return
    for record in decode_batch(data, header, at):
        if record.key is None:
            continue
        if header.is_transactional:
            found.take_undecided(producer_id, record.key, record.value)
        else:
            found.take(record.key, record.value)
