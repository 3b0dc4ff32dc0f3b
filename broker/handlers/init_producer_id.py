"""InitProducerId: an id for an idempotent producer, from any broker, without a coordinator (P2).

A producer that already has an id and asks for the next epoch (KIP-360, trap P9) gets a new id at
epoch 0, as from Kafka: without a transactional id nobody vouches that the old one is its own, and
an epoch given away twice would let two producers fence each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

from tidemark.broker.network.requests import RequestContext
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


async def handle(
    node: Node, request: InitProducerIdRequest, context: RequestContext
) -> InitProducerIdResponse:
    try:
        _check(request, node.settings.transaction_max_timeout_ms)
        producer_id = await _take(node)
    except RequestError as error:
        return InitProducerIdResponse(error_code=error.code, producer_epoch=-1)
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


async def _take(node: Node) -> ProducerId:
    """An id. Raises `RequestError`, one on which every client asks again, perhaps another broker,
    if the cluster gives none in time: this broker may be cut off from the others."""
    with trio.move_on_after(WAIT_SECONDS_MAX):
        try:
            return await node.producer_ids.take()
        except RequestError as error:
            if not error.retriable:
                raise
    raise RequestError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)


def _check(request: InitProducerIdRequest, timeout_ms_max: int) -> None:
    if (request.producer_id < 0) != (request.producer_epoch < 0):
        raise RequestError(
            ErrorCode.INVALID_REQUEST, "a producer id and its epoch come together or not at all"
        )
    if request.transactional_id is None:
        return
    if request.transactional_id == "":
        raise RequestError(ErrorCode.INVALID_REQUEST, "an empty transactional id")
    if not 0 < request.transaction_timeout_ms <= timeout_ms_max:
        raise RequestError(ErrorCode.INVALID_TRANSACTION_TIMEOUT)  # P13
    raise RequestError(ErrorCode.UNSUPPORTED_VERSION, "this broker does not offer transactions yet")
