"""Reading one partition of `__transaction_state` back: the ids as its log has them."""

from __future__ import annotations

import trio

from tidemark.broker.coordinating.reading import read_back
from tidemark.broker.replicas.replica import Replica
from tidemark.partitions.state_machines.transactions.records import decode_record
from tidemark.partitions.state_machines.transactions.transaction import Transaction
from tidemark.protocol.records.header import BatchHeader
from tidemark.protocol.records.records import decode_batch


async def read_transactions(
    replica: Replica, *, limiter: trio.CapacityLimiter
) -> dict[str, Transaction]:
    """What the log says up to its end; nothing may be appended meanwhile.

    Raises `RequestError` if the log cannot be read, and `CorruptBatch` or `MalformedMessage` if
    what it holds is not what a coordinator wrote.
    """
    latest: dict[bytes, bytes | None] = {}

    def take(data: bytes, header: BatchHeader, at: int) -> None:
        for record in () if header.is_control else decode_batch(data, header, at):
            if record.key is not None:
                latest[record.key] = record.value

    await read_back(replica, take, limiter=limiter)
    return await trio.to_thread.run_sync(_decoded, latest, limiter=limiter)


def _decoded(latest: dict[bytes, bytes | None]) -> dict[str, Transaction]:
    """On a thread. Only the last record of each id is decoded."""
    values = {}
    for key, value in latest.items():
        record = decode_record(key, value)
        if record is not None and record[1] is not None:
            values[record[0]] = record[1]
    return values
