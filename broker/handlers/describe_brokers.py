"""DescribeBrokers: what each broker leads and holds, what is wanted of it, and how far that is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tidemark.broker.balancing.descriptions import Description
from tidemark.broker.handlers.change import Change
from tidemark.broker.network.requests import RequestContext
from tidemark.protocol.messages.describe_brokers import (
    DescribeBrokersRequest,
    DescribeBrokersResponse,
    DescribedBroker,
)

if TYPE_CHECKING:
    from tidemark.broker.node import Node

_UNKNOWN: Final = -1


async def handle(
    node: Node, request: DescribeBrokersRequest, _context: RequestContext
) -> DescribeBrokersResponse:
    """Answers on the leader of the metadata, to which the others report."""
    found, now_ms = await node.balancing.describe(node.node_id, request.node_ids)
    return DescribeBrokersResponse(brokers=[_described(each, now_ms) for each in found])


def _described(one: Description, now_ms: int) -> DescribedBroker:
    broker = one.broker
    return DescribedBroker(
        node_id=broker.node_id,
        rack=broker.rack,
        is_alive=broker.is_alive,
        up_ms=now_ms - broker.up_since_ms if broker.is_alive else _UNKNOWN,
        state=one.state,
        is_controller=one.is_controller,
        leaders=one.leaders,
        replicas=one.replicas,
        size_bytes=one.size_bytes,
        bytes_in_per_second=round(one.bytes_in_per_second),
        bytes_out_per_second=round(one.bytes_out_per_second),
        leaders_coming=one.leaders_coming,
        leaders_going=one.leaders_going,
        replicas_going=one.replicas_going,
        left_ms=_UNKNOWN if one.left_ms is None else one.left_ms,
        stuck=one.stuck,
    )


CHANGE: Final = Change(handle=handle, response=DescribeBrokersResponse, may_repeat=True)
