"""Producer ids, each given away once in the life of a cluster.

They come in blocks that the cluster's metadata records. What is left of a block when the broker
stops is lost; there are enough.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import trio

from tidemark.partitions.state_machines.cluster_commands import ProducerIdBlock
from tidemark.protocol.errors import RequestError
from tidemark.protocol.types import ProducerId

BLOCK_SIZE: Final = 1000


class ProducerIds:
    """Gives ids away one by one."""

    def __init__(self, allocate: Callable[[int], Awaitable[ProducerIdBlock]]) -> None:
        self._allocate = allocate
        self._next = ProducerId(0)
        self._end = ProducerId(0)
        self._refilling = trio.Lock()
        self._refusals = 0
        """How many times no block could be had."""
        self._refusal: RequestError | None = None

    @property
    def has_some(self) -> bool:
        """Whether one can be had without asking anybody."""
        return self._next < self._end

    async def take(self) -> ProducerId:
        """An id that nobody has had. Raises `RequestError` if no block can be had."""
        refusals = self._refusals
        async with self._refilling:
            if self._next == self._end:
                if refusals != self._refusals and self._refusal is not None:
                    # Who has waited for somebody else's block, in vain, does not wait for another:
                    # of hundreds each would take as long as it takes to see that nobody leads.
                    raise RequestError(self._refusal.code, self._refusal.message)
                await self._refill()
            taken = self._next
            self._next = ProducerId(taken + 1)
            return taken

    async def _refill(self) -> None:
        try:
            block = await self._allocate(BLOCK_SIZE)
        except RequestError as error:
            self._refusals += 1
            self._refusal = error
            raise
        self._next, self._end = block.first, block.end
