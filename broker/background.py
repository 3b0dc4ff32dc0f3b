"""Tasks that outlive the cancelling of the block they serve, until that block is left in order.

A broker that is cancelled still has to answer what it has taken and to sync what it holds, and for
that its reactor, timers and handlers must run on.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio


@asynccontextmanager
async def open_background() -> AsyncIterator[trio.Nursery]:
    """A nursery that no cancelling from outside reaches; it ends with the block.

    If one of its tasks fails, the block is cancelled, and the failure is raised from it.
    """

    opened: list[trio.Nursery] = []
    is_open = trio.Event()

    async def hold() -> None:
        with trio.CancelScope(shield=True):
            async with trio.open_nursery() as tasks:
                opened.append(tasks)
                is_open.set()
                await trio.sleep_forever()

    async with trio.open_nursery() as outer:
        outer.start_soon(hold)
        # Not by `outer.start`: where cancelling has begun already, as with a broker that is told to
        # stop while it starts, that one waits for the end of a task which nothing reaches any more.
        with trio.CancelScope(shield=True):
            await is_open.wait()
        (tasks,) = opened
        try:
            yield tasks
        finally:
            tasks.cancel_scope.cancel()
