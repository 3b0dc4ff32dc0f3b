"""How often others have their turn on the loop while something is done."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import trio


@dataclass(slots=True)
class Turns:
    count: int = 0


@asynccontextmanager
async def counting_turns() -> AsyncIterator[Turns]:
    """Counts those of another task, as long as the block lasts."""
    turns = Turns()

    async def take_turns() -> None:
        while True:
            turns.count += 1
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as tasks:
        tasks.start_soon(take_turns)
        yield turns
        tasks.cancel_scope.cancel()
