"""Reading a coordinator's partition back: its batches, in order, on a thread."""

from __future__ import annotations

from collections.abc import Callable

import trio

from tidemark.broker.replicas.replica import Replica
from tidemark.broker.threads import run_in_thread
from tidemark.partitions.storage.slices import LogSlice
from tidemark.protocol.errors import CorruptBatch
from tidemark.protocol.records.header import BatchHeader, iter_headers
from tidemark.protocol.types import Offset

_CHUNK_BYTES = 1024 * 1024

TakeBatch = Callable[[bytes, BatchHeader, int], None]
"""Takes the batch with that header, which lies there in the bytes."""


async def read_back(replica: Replica, take: TakeBatch, *, limiter: trio.CapacityLimiter) -> None:
    """All that the log has up to its end; nothing may be appended meanwhile.

    Raises `RequestError` if the log cannot be read, `CorruptBatch` if it is no log, and what `take`
    raises.
    """
    offset = replica.log_start
    while offset < replica.high_watermark:
        chunk = replica.read(offset, bytes_max=_CHUNK_BYTES, at_least_one=True)
        try:
            offset = await run_in_thread(_take_in, chunk, take, limiter=limiter)
        finally:
            chunk.release()


def _take_in(chunk: LogSlice, take: TakeBatch) -> Offset:
    """On a thread. Returns where the next chunk begins."""
    data = chunk.read()
    end_offset = None
    for at, header in iter_headers(data):
        take(data, header, at)
        end_offset = header.next_offset
    if end_offset is None:
        raise CorruptBatch(0, "a log that ends before its end offset")
    return end_offset
