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

    async def hold(task_status: trio.TaskStatus[trio.Nursery]) -> None:
        with trio.CancelScope(shield=True):
            async with trio.open_nursery() as tasks:
                task_status.started(tasks)
                await trio.sleep_forever()

    async with trio.open_nursery() as outer:
        tasks = await outer.start(hold)
        try:
            yield tasks
        finally:
            tasks.cancel_scope.cancel()
