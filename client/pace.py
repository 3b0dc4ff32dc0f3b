"""How often metadata is asked for while something has no leader, or is not there at all."""

from random import Random
from typing import Final

import trio

from tidemark.client.retries import Backoff

_TIMES: Final = 8
"""How often it is asked after a pause before the pause gets longer: an election takes no more."""


class Pace:
    """Pauses between requests that grow as long as nothing comes of them."""

    def __init__(self, backoff: Backoff, random: Random) -> None:
        self._backoff = backoff
        self._random = random
        self._in_vain = 0
        self._quickened = trio.Event()

    def found(self) -> None:
        """Nothing is missing."""
        self._in_vain = 0

    def quicken(self) -> None:
        """Something else is missing now: ask as often as in the beginning."""
        self._in_vain = 0
        self._quickened.set()

    async def pause(self) -> None:
        """After a request; that it came to nothing is what the next one would say."""
        shortest = self._backoff.delay(1, self._random)
        longer = self._backoff.delay(1 + self._in_vain // _TIMES, self._random) - shortest
        self._in_vain += 1
        self._quickened = trio.Event()
        await trio.sleep(shortest)
        with trio.move_on_after(max(longer, 0)):
            await self._quickened.wait()
