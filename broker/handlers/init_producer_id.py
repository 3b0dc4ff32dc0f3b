"""InitProducerId: an id for an idempotent producer, from any broker, without a coordinator (P2).

A producer that already has an id and asks for the next epoch (KIP-360, trap P9) gets a new id at
epoch 0, as from Kafka: without a transactional id nobody vouches that the old one is its own, and
an epoch given away twice would let two producers fence each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemark.broker.network.requests import RequestContext
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)

if TYPE_CHECKING:
    from tidemark.broker.node import Node


async def handle(
    node: Node, request: InitProducerIdRequest, context: RequestContext
) -> InitProducerIdResponse:
    try:
        _check(request, node.settings.transaction_max_timeout_ms)
        producer_id = await node.producer_ids.take()
    except RequestError as error:
        return InitProducerIdResponse(error_code=error.code, producer_epoch=-1)
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


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
