"""A nursery for helpers that never fail by themselves."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio


@asynccontextmanager
async def open_background() -> AsyncIterator[trio.Nursery]:
    """A nursery whose tasks are cancelled when the block ends.

    What the block raises leaves it as itself: users of a library should not have to unwrap an
    exception group because the library has tasks. That is only sound because the tasks raise
    nothing of their own but what a callback of the user's has raised, after which the block is
    cancelled. If two raise something, it is a bug, and the group goes out whole.
    """
    try:
        async with trio.open_nursery() as nursery:
            try:
                yield nursery
            finally:
                nursery.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        others = group.split(trio.Cancelled)[1]
        if others is None or len(others.exceptions) > 1:
            raise
        alone = others.exceptions[0]
        # As it was raised, and not as something that came of its group.
        context = alone.__context__
        try:
            raise alone
        finally:
            alone.__context__ = context


class Signal:
    """Something to wait for again and again: set by many, waited for by one.

    Setting it while nobody waits is remembered, once.
    """

    __slots__ = ("_event",)

    def __init__(self) -> None:
        self._event = trio.Event()

    def set(self) -> None:
        self._event.set()

    async def wait(self) -> None:
        """Until it has been set since the last wait."""
        await self._event.wait()
        self._event = trio.Event()

    async def wait_until(self, deadline: float) -> None:
        """As `wait`, but not beyond `deadline` (of trio's clock)."""
        with trio.move_on_at(deadline):
            await self.wait()
