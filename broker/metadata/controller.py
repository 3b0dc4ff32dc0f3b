"""Changes of the cluster's metadata from any broker: they are passed on to the one that leads it.

A request that the leader has to answer goes there as the client sent it; its answer comes back with
the version of the metadata that it made. Before the answer is given the state here has reached that
version: a client finds what it has changed, whichever broker it asks next, if that is this one.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final, TypeVar

import trio

from tidemark.broker.config.addresses import Address
from tidemark.broker.metadata.metadata_leader import (
    WAIT_SECONDS_MAX,
    WAIT_SECONDS_MIN,
    Cluster,
    MetadataLeader,
    unknown_outcome,
)
from tidemark.broker.network.requests import RequestContext, Session
from tidemark.broker.peers.asking import Calls
from tidemark.partitions.state_machines.cluster import ClusterState
from tidemark.partitions.state_machines.cluster_commands import (
    AllocateProducerIds,
    EndMoves,
    FinishReassignments,
    ProducerIdBlock,
    decode_command,
    encode_command,
)
from tidemark.protocol.codec import decode, encode
from tidemark.protocol.errors import ErrorCode, RequestError, StorageError
from tidemark.protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from tidemark.protocol.messages.peer.forward import (
    ForwardRequest,
    ForwardResponse,
    ProposeRequest,
    ProposeResponse,
)
from tidemark.protocol.registry import APIS, api_of
from tidemark.protocol.schema import Message
from tidemark.protocol.types import NodeId, ProducerId

R = TypeVar("R", bound=Message)

WISH_SECONDS_MAX: Final = 30.0
"""For what a broker wants for itself."""
NO_CONNECTION: Final = 0
"""The connection of a client that is another broker's; connections here count from 1."""


class Controller:
    """The leader of the cluster's metadata, wherever it is."""

    def __init__(self, node_id: NodeId, cluster: Cluster, calls: Calls) -> None:
        self._node_id = node_id
        self._cluster = cluster
        self._leader = MetadataLeader(cluster, calls)

    @property
    def is_here(self) -> bool:
        return self._cluster.leads

    async def answer(
        self,
        request: Message,
        context: RequestContext,
        here: Callable[[], Awaitable[R]],
        *,
        response: type[R],
        timeout_ms: int,
        may_repeat: bool,
    ) -> R:
        """The answer of `here` if this broker leads the metadata, else the leader's.

        `may_repeat` says that a request may be sent again though it may have been carried out.
        Raises `RequestError` NOT_CONTROLLER if nobody takes it in time, REQUEST_TIMED_OUT where
        nobody knows whether it was carried out.
        """
        seconds = min(max(timeout_ms / 1000, WAIT_SECONDS_MIN), WAIT_SECONDS_MAX)
        answered = None
        if not self._cluster.leads:
            forwarded = _forwarded(request, context, timeout_ms)
            answered = await self._leader.ask(forwarded, seconds, may_repeat=may_repeat)
        if answered is None:
            with trio.move_on_after(seconds):
                return await here()
            raise unknown_outcome()
        # If this broker is slow to hear of the change, it is made all the same.
        with trio.move_on_after(WAIT_SECONDS_MIN):
            await self._cluster.wait_version(answered.metadata_version)
        return decode(response, context.api_version, answered.body)

    async def allocate_producer_ids(self, count: int) -> ProducerIdBlock:
        """Producer ids that no producer has had before. Raises `RequestError`."""

        def wish(state: ClusterState) -> AllocateProducerIds:
            return AllocateProducerIds(at_version=state.version, node_id=self._node_id, count=count)

        request = ProposeRequest(command=encode_command(wish(self._cluster.state)))
        # Ids that are allocated and never heard of are lost, and there are enough.
        answered = await self._leader.ask(request, WISH_SECONDS_MAX, may_repeat=True)
        if answered is not None:
            return _decode_block(answered.result)
        with trio.move_on_after(WISH_SECONDS_MAX):
            block = await self._cluster.propose(wish)
            assert isinstance(block, ProducerIdBlock)
            return block
        raise unknown_outcome()

    async def tell(self, command: EndMoves | FinishReassignments) -> None:
        """Have it noted what became of wishes that this broker has carried out.

        It does no harm a second time. When this returns, it is noted here too. Raises
        `RequestError`.
        """
        # Not longer: if it comes to nothing, whoever tells it looks whether it is still to be told.
        answered = await self._leader.ask(
            ProposeRequest(command=encode_command(command)), WAIT_SECONDS_MIN, may_repeat=True
        )
        with trio.move_on_after(WAIT_SECONDS_MIN):
            if answered is not None:
                await self._cluster.wait_version(answered.metadata_version)
            else:
                await self._cluster.propose(
                    lambda state: replace(command, at_version=state.version)
                )
            return
        raise unknown_outcome()

    async def create_topic(self, name: str) -> None:
        """Have the leader, another broker, make a topic as its settings say.

        Raises `RequestError`, also if there is one by now.
        """
        topic = CreatableTopic(
            name=name, num_partitions=-1, replication_factor=-1, assignments=(), configs=()
        )
        timeout_ms = int(WAIT_SECONDS_MIN * 1000)
        asked = CreateTopicsRequest(topics=(topic,), timeout_ms=timeout_ms, validate_only=False)
        version = CreateTopicsRequest.last_version
        forwarded = ForwardRequest(
            api_key=api_of(CreateTopicsRequest).key,
            api_version=version,
            timeout_ms=timeout_ms,
            body=encode(asked, version),
        )
        # Not longer: a client waits for it, who may have better luck with another broker.
        answered = await self._leader.ask(forwarded, WAIT_SECONDS_MIN, may_repeat=True)
        if answered is None:
            raise RequestError(ErrorCode.NOT_CONTROLLER, "this broker leads the metadata now")
        with trio.move_on_after(WAIT_SECONDS_MIN):
            await self._cluster.wait_version(answered.metadata_version)
        (made,) = decode(CreateTopicsResponse, version, answered.body).topics
        if made.error_code != ErrorCode.NONE:
            raise RequestError(ErrorCode(made.error_code), made.error_message)

    # What other brokers ask

    async def serve_forward(
        self,
        request: ForwardRequest,
        answer: Callable[[Message, RequestContext], Awaitable[Message]],
    ) -> ForwardResponse:
        """Another broker's client's request, answered by `answer` if this broker leads."""
        if not self._cluster.leads:
            return ForwardResponse(error_code=ErrorCode.NOT_CONTROLLER)
        api = APIS.get(request.api_key)
        if api is None or not api.speaks(request.api_version):
            return ForwardResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
        session = Session(
            connection_id=NO_CONNECTION,
            client_host=request.client_host,
            listener=Address("", 0),
            listener_name=request.listener_name,
            user=request.principal,
        )
        context = RequestContext(request.api_version, request.client_id, session)
        try:
            asked = decode(api.request, request.api_version, request.body)
            answered = await answer(asked, context)
        except RequestError as error:
            return ForwardResponse(error_code=error.code, error_message=error.message)
        return ForwardResponse(
            metadata_version=self._cluster.state.version,
            body=encode(answered, request.api_version),
        )

    async def serve_propose(self, request: ProposeRequest) -> ProposeResponse:
        """Another broker's wish for itself; it is decided on the state as it is here."""
        try:
            command = _wish_of(request.command)
            result = await self._cluster.propose(
                lambda state: replace(command, at_version=state.version)
            )
        except RequestError as error:
            return ProposeResponse(error_code=error.code, error_message=error.message)
        return ProposeResponse(
            metadata_version=self._cluster.state.version,
            result=_encode_block(result) if isinstance(result, ProducerIdBlock) else b"",
        )


def _forwarded(request: Message, context: RequestContext, timeout_ms: int) -> ForwardRequest:
    return ForwardRequest(
        api_key=api_of(type(request)).key,
        api_version=context.api_version,
        client_id=context.client_id,
        principal=context.session.user,
        client_host=context.client_host,
        listener_name=context.session.listener_name,
        timeout_ms=timeout_ms,
        body=encode(request, context.api_version),
    )


def _wish_of(data: bytes) -> AllocateProducerIds | EndMoves | FinishReassignments:
    """What a broker wants for itself. Raises `RequestError` if these bytes are no such thing."""
    try:
        command = decode_command(data)
    except StorageError as error:
        raise RequestError(ErrorCode.INVALID_REQUEST, str(error)) from error
    if not isinstance(command, AllocateProducerIds | EndMoves | FinishReassignments):
        raise RequestError(ErrorCode.INVALID_REQUEST, "that is no wish of a broker")
    return command


def _encode_block(result: ProducerIdBlock) -> bytes:
    return json.dumps({"first": result.first, "end": result.end}).encode()


def _decode_block(data: bytes) -> ProducerIdBlock:
    body = json.loads(data)
    return ProducerIdBlock(first=ProducerId(body["first"]), end=ProducerId(body["end"]))
