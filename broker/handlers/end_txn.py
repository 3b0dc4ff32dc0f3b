"""EndTxn: commit or abort; answered once the decision is durable, before the markers are written.

From version 5 on each end raises the producer's epoch (KIP-890), and the answer says to what.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tidemark.broker.handlers.between_brokers import settled
from tidemark.broker.handlers.init_producer_id import fresh_id_in_time
from tidemark.broker.handlers.transaction_errors import in_version
from tidemark.broker.network.requests import RequestContext
from tidemark.partitions.state_machines.transactions.requests import End, ProducerAnswer
from tidemark.protocol.errors import RequestError
from tidemark.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from tidemark.protocol.types import ProducerId

if TYPE_CHECKING:
    from tidemark.broker.node import Node

_FENCED_SINCE: Final = 2
_BUMPS_SINCE: Final = 5


async def handle(node: Node, request: EndTxnRequest, context: RequestContext) -> EndTxnResponse:
    version = context.api_version

    def respond(answer: ProducerAnswer) -> EndTxnResponse:
        return EndTxnResponse(
            error_code=in_version(answer.error, version, fenced_since=_FENCED_SINCE),
            producer_id=answer.producer_id,
            producer_epoch=answer.epoch,
        )

    try:
        bumps_epoch = version >= _BUMPS_SINCE
        fresh_id = None
        if bumps_epoch:
            fresh_id = await fresh_id_in_time(node, request.transactional_id)
        asked = End(
            transactional_id=request.transactional_id,
            producer_id=ProducerId(request.producer_id),
            epoch=request.producer_epoch,
            is_commit=request.committed,
            bumps_epoch=bumps_epoch,
            fresh_id=fresh_id,
        )
        return await settled(node.transactions.ask(asked, ProducerAnswer, respond))
    except RequestError as error:
        return respond(ProducerAnswer(error=error.code))
