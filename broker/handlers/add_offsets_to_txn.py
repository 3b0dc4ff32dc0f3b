"""AddOffsetsToTxn: put the partition of a group's offsets into a transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tidemark.broker.handlers.between_brokers import settled
from tidemark.broker.handlers.transaction_errors import in_version
from tidemark.broker.network.requests import RequestContext
from tidemark.partitions.state_machines.transactions.requests import Add, Answer
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from tidemark.protocol.types import ProducerId

if TYPE_CHECKING:
    from tidemark.broker.node import Node

_FENCED_SINCE: Final = 2


async def handle(
    node: Node, request: AddOffsetsToTxnRequest, context: RequestContext
) -> AddOffsetsToTxnResponse:
    def respond(answer: Answer) -> AddOffsetsToTxnResponse:
        code = in_version(answer.error, context.api_version, fenced_since=_FENCED_SINCE)
        return AddOffsetsToTxnResponse(error_code=code)

    try:
        if not request.group_id:
            raise RequestError(ErrorCode.INVALID_GROUP_ID)
        await node.coordinator.ensure_topic()
        partition = node.coordinator.partition_of(request.group_id)
        if partition is None:
            raise RequestError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        asked = Add(
            transactional_id=request.transactional_id,
            producer_id=ProducerId(request.producer_id),
            epoch=request.producer_epoch,
            partitions=frozenset({partition}),
        )
        return await settled(node.transactions.ask(asked, Answer, respond))
    except RequestError as error:
        return respond(Answer(error=error.code))
