"""Producer ids, each given away once in the life of a cluster.

They come in blocks that the cluster's metadata records. What is left of a block when the broker
stops is lost; there are enough.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import trio

from tidemark.partitions.state_machines.cluster_commands import ProducerIdBlock
from tidemark.protocol.types import ProducerId

BLOCK_SIZE: Final = 1000


class ProducerIds:
    """Gives ids away one by one."""

    def __init__(self, allocate: Callable[[int], Awaitable[ProducerIdBlock]]) -> None:
        self._allocate = allocate
        self._next = ProducerId(0)
        self._end = ProducerId(0)
        self._refilling = trio.Lock()

    async def take(self) -> ProducerId:
        """An id that nobody has had. Raises `RequestError` if no block can be had."""
        async with self._refilling:
            if self._next == self._end:
                block = await self._allocate(BLOCK_SIZE)
                self._next, self._end = block.first, block.end
            taken = self._next
            self._next = ProducerId(taken + 1)
            return taken
