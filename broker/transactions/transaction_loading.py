"""Reading one partition of `__transaction_state` back: the ids as its log has them."""

from __future__ import annotations

import trio

from tidemark.broker.coordinating.reading import read_back
from tidemark.broker.replicas.replica import Replica
from tidemark.broker.threads import run_in_thread
from tidemark.partitions.state_machines.transactions.reading_back import ReadBack
from tidemark.partitions.state_machines.transactions.transaction import Transaction


async def read_transactions(
    replica: Replica, *, limiter: trio.CapacityLimiter
) -> dict[str, Transaction]:
    """What the log says up to its end; nothing may be appended meanwhile.

    Raises `RequestError` if the log cannot be read, and `CorruptBatch` or `MalformedMessage` if
    what it holds is not what a coordinator wrote.
    """
    found = ReadBack()
    await read_back(replica, found.take_batch, limiter=limiter)
    return await run_in_thread(found.values, limiter=limiter)
