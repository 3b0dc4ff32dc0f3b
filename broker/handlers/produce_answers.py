"""What produce requests are answered with: responses, and what is in one that is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tidemark.broker.network.requests import Session
from tidemark.broker.replicas.admission import InvalidRecords
from tidemark.broker.replicas.leadership import NOBODY, NotLeader
from tidemark.protocol.errors import RequestError
from tidemark.protocol.messages.node_endpoint import NodeEndpoint
from tidemark.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from tidemark.protocol.schema import maker_of
from tidemark.protocol.types import NO_OFFSET

if TYPE_CHECKING:
    from tidemark.broker.node import Node

# Made at every request.
made_response: Final = maker_of(ProduceResponse)
made_topic_response: Final = maker_of(TopicProduceResponse)
made_partition_response: Final = maker_of(PartitionProduceResponse)

_LEADER_SINCE: Final = 10
_UNKNOWN_LEADER: Final = LeaderIdAndEpoch()


def with_leaders(node: Node, response: ProduceResponse, session: Session) -> ProduceResponse:
    """The response with the addresses of the leaders that it names (KIP-951)."""
    answers = (each for topic in response.responses for each in topic.partition_responses)
    leaders = {each.current_leader.leader_id for each in answers} - {NOBODY}
    if not leaders:
        return response
    return replace(
        response,
        node_endpoints=[
            NodeEndpoint(
                node_id=broker.node_id,
                host=broker.address.host,
                port=broker.address.port,
                rack=broker.rack,
            )
            for broker in node.brokers.shown_to(session)
            if broker.node_id in leaders
        ],
    )


def refusal(index: int, error: RequestError, api_version: int) -> PartitionProduceResponse:
    leader = _UNKNOWN_LEADER
    # librdkafka complains of a leader -1; one that is not named it looks for.
    if isinstance(error, NotLeader) and error.leader != NOBODY and api_version >= _LEADER_SINCE:
        leader = LeaderIdAndEpoch(leader_id=error.leader, leader_epoch=error.epoch)
    indexes = error.record_indexes if isinstance(error, InvalidRecords) else []
    return PartitionProduceResponse(
        index=index,
        error_code=error.code,
        base_offset=NO_OFFSET,
        record_errors=[
            BatchIndexAndErrorMessage(batch_index=at, batch_index_error_message=error.message)
            for at in indexes
        ],
        error_message=error.message,
        current_leader=leader,
    )
