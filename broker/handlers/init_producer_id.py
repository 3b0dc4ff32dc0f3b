"""InitProducerId: the identity of an idempotent producer, or of a transactional one.

An idempotent one gets it from any broker, without a coordinator (P2). If it already has an id and
asks for the next epoch (KIP-360, trap P9) it gets a new id at epoch 0, as from Kafka: without a
transactional id nobody vouches that the old one is its own, and an epoch given away twice would let
two producers fence each other.

A transactional one gets it from the coordinator of its transactional id, which fences whoever had
the id before and aborts what that left open.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

import trio

from tidemark.broker.handlers.between_brokers import settled
from tidemark.broker.handlers.transaction_errors import in_version
from tidemark.broker.network.requests import RequestContext
from tidemark.broker.peers.asking import ask_broker
from tidemark.partitions.state_machines.transactions.requests import Init, ProducerAnswer
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from tidemark.protocol.types import ProducerId

if TYPE_CHECKING:
    from tidemark.broker.node import Node

WAIT_SECONDS_MAX: Final = 3.0
"""An election takes no longer, where there is a majority to elect somebody."""
_ASKED_SECONDS_MAX: Final = 1.0
_FENCED_SINCE: Final = 4


async def handle(
    node: Node, request: InitProducerIdRequest, context: RequestContext
) -> InitProducerIdResponse:
    try:
        _check(request)
        if request.transactional_id is not None:
            return await _init(node, request, request.transactional_id, context.api_version)
        producer_id = await _take(node, may_ask=context.session.is_clients)
    except RequestError as error:
        code = in_version(error.code, context.api_version, fenced_since=_FENCED_SINCE)
        return InitProducerIdResponse(error_code=code, producer_epoch=-1)
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


async def fresh_id_in_time(node: Node, transactional_id: str) -> ProducerId | None:
    """A producer id that nobody has had, where a request about the transactional id needs one.

    Raises `RequestError`.
    """
    if not node.transactions.needs_fresh_id(transactional_id):
        return None
    return await _take(node, may_ask=True)


async def _init(
    node: Node, request: InitProducerIdRequest, transactional_id: str, version: int
) -> InitProducerIdResponse:
    def respond(answer: ProducerAnswer) -> InitProducerIdResponse:
        return InitProducerIdResponse(
            error_code=in_version(answer.error, version, fenced_since=_FENCED_SINCE),
            producer_id=answer.producer_id,
            producer_epoch=answer.epoch,
        )

    asked = Init(
        transactional_id=transactional_id,
        timeout_ms=request.transaction_timeout_ms,
        producer_id=ProducerId(request.producer_id),
        epoch=request.producer_epoch,
        fresh_id=await fresh_id_in_time(node, transactional_id),
    )
    return await settled(node.transactions.ask(asked, ProducerAnswer, respond))


async def _take(node: Node, *, may_ask: bool) -> ProducerId:
    """An id. Raises `RequestError`, one on which every client asks again, perhaps another broker,
    if the cluster gives none in time: this broker may be cut off from the others.

    `may_ask`: another broker, where this one does not hear who gives out blocks.
    """
    is_lost = node.brokers.controller is None and node.brokers.misses_some
    if may_ask and is_lost and not node.producer_ids.has_some:
        taken = await _take_elsewhere(node)
        if taken is not None:
            return taken
    with trio.move_on_after(WAIT_SECONDS_MAX):
        try:
            return await node.producer_ids.take()
        except RequestError as error:
            if not error.retriable:
                raise
    raise RequestError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)


async def _take_elsewhere(node: Node) -> ProducerId | None:
    """One that another broker had to give away."""
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)
    for broker in list(node.calls.up):
        with trio.move_on_after(_ASKED_SECONDS_MAX), suppress(RequestError):
            answer = await ask_broker(node.calls, broker, request, InitProducerIdResponse)
            if answer.error_code == ErrorCode.NONE:
                return ProducerId(answer.producer_id)
    return None


def _check(request: InitProducerIdRequest) -> None:
    if (request.producer_id < 0) != (request.producer_epoch < 0):
        raise RequestError(
            ErrorCode.INVALID_REQUEST, "a producer id and its epoch come together or not at all"
        )
    if request.transactional_id == "":
        raise RequestError(ErrorCode.INVALID_REQUEST, "an empty transactional id")
