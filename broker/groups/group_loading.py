"""Reading one partition of `__consumer_offsets` back: the groups as its log has them."""

from __future__ import annotations

import trio

from tidemark.broker.coordinating.reading import read_back
from tidemark.broker.replicas.replica import Replica
from tidemark.broker.threads import run_in_thread
from tidemark.partitions.state_machines.groups.reading_back import ReadBack
from tidemark.partitions.state_machines.groups.replay import Replay


async def read_groups(replica: Replica, *, limiter: trio.CapacityLimiter) -> Replay:
    """What the log says up to its end; nothing may be appended meanwhile.

    Raises `RequestError` if the log cannot be read, and `CorruptBatch` or `MalformedMessage` if
    what it holds is not what a coordinator wrote.
    """
    found = ReadBack()
    await read_back(replica, found.take_batch, limiter=limiter)
    return await run_in_thread(found.replay, limiter=limiter)
