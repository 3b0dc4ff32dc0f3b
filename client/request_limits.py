"""How large a request each broker takes, as far as that had to be found out.

A broker that is sent more than its `socket.request.max.bytes` closes the connection without a word,
which looks as if it had died. So after a connection was lost with a request that is larger than any
it has answered, it is asked for that setting.
"""

from contextlib import suppress
from typing import Final

import trio

from tidemark.client.network import Network, address_of
from tidemark.protocol.errors import MalformedMessage, RequestError
from tidemark.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from tidemark.protocol.types import NodeId

NAME: Final = "socket.request.max.bytes"
OVERHEAD_BYTES: Final = 1024
"""Of a request that holds one batch: at most that much more than the batch."""
_LEAST_BYTES: Final = 64 * 1024
"""What every broker is believed to take."""
_BROKER: Final = 4


class RequestLimits:
    """See the module. Asks in tasks of its own, in the nursery."""

    def __init__(self, network: Network, nursery: trio.Nursery) -> None:
        self._network = network
        self._nursery = nursery
        self._answered: dict[NodeId, int] = {}
        self._asking: set[NodeId] = set()
        self._known: dict[NodeId, tuple[int, float]] = {}
        """With the time until when it counts: the broker may be set otherwise when it starts."""

    def room_bytes(self, node_id: NodeId) -> int | None:
        """How large a batch it takes, if that is known."""
        limit, until = self._known.get(node_id, (0, 0.0))
        return limit - OVERHEAD_BYTES if trio.current_time() < until else None

    def answered(self, node_id: NodeId, size_bytes: int) -> None:
        """It takes as much as that."""
        if size_bytes > self._answered.get(node_id, _LEAST_BYTES):
            self._answered[node_id] = size_bytes

    def lost(self, node_id: NodeId, size_bytes: int) -> None:
        """The connection was lost with that."""
        if self._nursery.cancel_scope.cancel_called:
            return  # The producer is closing, and its connections with it: nobody asks any more.
        known_bytes = self._answered.get(node_id, _LEAST_BYTES)
        if size_bytes > known_bytes and node_id not in self._asking:
            self._asking.add(node_id)
            self._nursery.start_soon(self._ask, node_id)

    async def _ask(self, node_id: NodeId) -> None:
        settings = self._network.settings
        try:
            # Without an answer it is asked again when the next connection is lost.
            with (
                trio.move_on_after(settings.request_timeout_seconds),
                suppress(OSError, RequestError, MalformedMessage, ValueError),
            ):
                limit = await self._describe(node_id)
                if limit is not None:
                    until = trio.current_time() + settings.metadata_max_age_seconds
                    self._known[node_id] = limit, until
        finally:
            self._asking.discard(node_id)

    async def _describe(self, node_id: NodeId) -> int | None:
        address = address_of(self._network.broker(node_id))
        connection = await self._network.pool.connection(address)
        broker = DescribeConfigsResource(
            resource_type=_BROKER, resource_name=str(node_id), configuration_keys=[NAME]
        )
        request = DescribeConfigsRequest(resources=[broker])
        answer = await connection.request(request, DescribeConfigsResponse)
        for result in answer.results:
            for config in result.configs:
                if config.name == NAME and config.value is not None:
                    return int(config.value)
        return None
