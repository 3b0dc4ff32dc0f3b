"""Who answers calls between brokers."""

from __future__ import annotations

from uuid import UUID

import trio
import trio.testing

from tidemark.broker.peers.calls import PeerHandler
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.peer.forward import ForwardRequest, ForwardResponse
from tidemark.protocol.messages.peer.join import JoinRequest, JoinResponse
from tidemark.protocol.schema import Message
from tidemark.protocol.types import NodeId

JOIN = JoinRequest(
    cluster_id=None,
    node_id=9,
    directory_id=UUID(int=9),
    incarnation=1,
    rack=None,
    endpoints=(),
)


class Answering:
    """Handlers that a test scripts by the body of what is forwarded."""

    def __init__(self) -> None:
        self.asked: list[tuple[NodeId | None, Message]] = []
        self.arrived = trio.Event()
        self.go_on = trio.Event()
        self.handlers: dict[type[Message], PeerHandler] = {
            ForwardRequest: self.forwarded,
            JoinRequest: self.joins,
        }

    async def forwarded(self, caller: NodeId | None, request: ForwardRequest) -> ForwardResponse:
        self.asked.append((caller, request))
        self.arrived.set()
        match request.body:
            case b"wait":
                await self.go_on.wait()
            case b"refuse":
                raise RequestError(ErrorCode.NOT_CONTROLLER, "not here")
            case b"break":
                raise ValueError("a bug")
            case b"large":
                return ForwardResponse(body=bytes(40_000_000))
        return ForwardResponse(body=request.body[::-1], metadata_version=5)

    async def joins(self, caller: NodeId | None, request: JoinRequest) -> JoinResponse:
        self.asked.append((caller, request))
        return JoinResponse(cluster_id="cluster", node_id=2, voters=(1, 2))
