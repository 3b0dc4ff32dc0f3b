"""Reading one partition of `__consumer_offsets` back: the groups as its log has them."""

from __future__ import annotations

import trio

from tidemark.broker.coordinating.reading import read_back
from tidemark.broker.replicas.replica import Replica
from tidemark.partitions.state_machines.groups.reading_back import ReadBack
from tidemark.partitions.state_machines.groups.replay import Replay
from tidemark.protocol.records.control import read_marker
from tidemark.protocol.records.header import BatchHeader
from tidemark.protocol.records.records import decode_batch
from tidemark.protocol.types import ProducerId


async def read_groups(replica: Replica, *, limiter: trio.CapacityLimiter) -> Replay:
    """What the log says up to its end; nothing may be appended meanwhile.

    Raises `RequestError` if the log cannot be read, and `CorruptBatch` or `MalformedMessage` if
    what it holds is not what a coordinator wrote.
    """
    found = ReadBack()

    def take(data: bytes, header: BatchHeader, at: int) -> None:
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

    await read_back(replica, take, limiter=limiter)
    return await trio.to_thread.run_sync(found.replay, limiter=limiter)
