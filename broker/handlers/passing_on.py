"""Handlers of requests for the leader of the cluster's metadata: passed on, unless it is here.

Any broker takes any of these requests, and clients see no difference (trap M7).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from tidemark.broker.handlers import (
    alter_client_quotas,
    alter_configs,
    alter_partition_reassignments,
    balance_leaders,
    create_partitions,
    create_topics,
    delete_topics,
    describe_brokers,
    describe_quorum,
    elect_leaders,
    incremental_alter_configs,
    list_partition_reassignments,
    move_leaders,
    set_broker_state,
    set_observers,
)
from tidemark.broker.network.requests import RequestContext
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages import alter_configs as alter_configs_messages
from tidemark.protocol.messages import incremental_alter_configs as incremental_messages
from tidemark.protocol.messages.alter_client_quotas_response import AlterClientQuotasResponse
from tidemark.protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from tidemark.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsResponse,
)
from tidemark.protocol.messages.balance_leaders import BalanceLeadersResponse
from tidemark.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from tidemark.protocol.messages.create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from tidemark.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from tidemark.protocol.messages.describe_brokers import DescribeBrokersResponse
from tidemark.protocol.messages.describe_quorum import DescribeQuorumRequest
from tidemark.protocol.messages.describe_quorum_response import DescribeQuorumResponse
from tidemark.protocol.messages.elect_leaders import ElectLeadersResponse
from tidemark.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from tidemark.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsResponse,
)
from tidemark.protocol.messages.move_leaders import MoveLeadersResponse
from tidemark.protocol.messages.peer.forward import ForwardRequest, ForwardResponse
from tidemark.protocol.messages.set_broker_state import SetBrokerStateResponse
from tidemark.protocol.messages.set_observers import SetObserversResponse
from tidemark.protocol.registry import api_of
from tidemark.protocol.schema import Message
from tidemark.protocol.types import NodeId
from tidemark.protocol.values import dataclass

if TYPE_CHECKING:
    from tidemark.broker.node import Node
    from tidemark.broker.peers.calls import PeerHandler

_DEFAULT_TIMEOUT_MS: Final = 30_000
"""Of requests that state none."""


# Any: one table holds the handlers of several APIs; each function below states its own messages.
@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One API that changes the metadata, or asks how their group is."""

    handle: Callable[[Node, Any, RequestContext], Coroutine[Any, Any, Any]]
    """Answers on the leader."""
    response: type[Message]
    refuse: Callable[[Any, RequestError], Any] | None = None
    """The response to a request that came to nothing as a whole; one of a response that has an
    error code for the whole needs none."""
    may_repeat: bool = False
    """Whether a second time does no harm, if nobody knows about the first."""
    afterwards: Callable[[Node, Any, Any], Awaitable[Any]] | None = None
    """What the broker that was asked makes of the answer; it may wait there for what is to come."""

    async def answer(self, node: Node, request: Any, context: RequestContext) -> Any:
        """For any broker's clients: the handler of this API."""

        async def here() -> Any:
            return await self.handle(node, request, context)

        try:
            response = await node.controller.answer(
                request,
                context,
                here,
                response=self.response,
                timeout_ms=getattr(request, "timeout_ms", _DEFAULT_TIMEOUT_MS),
                may_repeat=self.may_repeat,
            )
        except RequestError as error:
            if self.refuse is None:
                raise
            return self.refuse(request, error)
        return (
            response if self.afterwards is None else await self.afterwards(node, request, response)
        )


def _no_topics(request: CreateTopicsRequest, error: RequestError) -> CreateTopicsResponse:
    return CreateTopicsResponse(
        topics=[
            CreatableTopicResult(name=name, error_code=error.code, error_message=error.message)
            for name in dict.fromkeys(topic.name for topic in request.topics)
        ]
    )


def _no_deletions(request: DeleteTopicsRequest, error: RequestError) -> DeleteTopicsResponse:
    by_name = [DeleteTopicState(name=name) for name in request.topic_names]
    return DeleteTopicsResponse(
        responses=[
            DeletableTopicResult(
                name=each.name,
                topic_id=each.topic_id,
                error_code=error.code,
                error_message=error.message,
            )
            for each in [*request.topics, *by_name]
        ]
    )


def _no_growth(request: CreatePartitionsRequest, error: RequestError) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(
        results=[
            CreatePartitionsTopicResult(
                name=name, error_code=error.code, error_message=error.message
            )
            for name in dict.fromkeys(topic.name for topic in request.topics)
        ]
    )


def _nothing_replaced(request: AlterConfigsRequest, error: RequestError) -> AlterConfigsResponse:
    return AlterConfigsResponse(
        responses=[
            alter_configs_messages.AlterConfigsResourceResponse(
                error_code=error.code,
                error_message=error.message,
                resource_type=each.resource_type,
                resource_name=each.resource_name,
            )
            for each in request.resources
        ]
    )


def _nothing_altered(
    request: IncrementalAlterConfigsRequest, error: RequestError
) -> IncrementalAlterConfigsResponse:
    return IncrementalAlterConfigsResponse(
        responses=[
            incremental_messages.AlterConfigsResourceResponse(
                error_code=error.code,
                error_message=error.message,
                resource_type=each.resource_type,
                resource_name=each.resource_name,
            )
            for each in request.resources
        ]
    )


CHANGES: Final[Mapping[int, Change]] = MappingProxyType(
    {
        19: Change(handle=create_topics.handle, refuse=_no_topics, response=CreateTopicsResponse),
        20: Change(
            handle=delete_topics.handle, refuse=_no_deletions, response=DeleteTopicsResponse
        ),
        33: Change(
            handle=alter_configs.handle,
            refuse=_nothing_replaced,
            response=AlterConfigsResponse,
            may_repeat=True,
        ),
        37: Change(
            handle=create_partitions.handle,
            refuse=_no_growth,
            response=CreatePartitionsResponse,
        ),
        43: Change(
            handle=elect_leaders.handle,
            refuse=elect_leaders.refuse,
            response=ElectLeadersResponse,
            may_repeat=True,
            afterwards=elect_leaders.wait_over,
        ),
        45: Change(
            handle=alter_partition_reassignments.handle,
            refuse=alter_partition_reassignments.refuse,
            response=AlterPartitionReassignmentsResponse,
        ),
        46: Change(
            handle=list_partition_reassignments.handle,
            refuse=list_partition_reassignments.refuse,
            response=ListPartitionReassignmentsResponse,
            may_repeat=True,
        ),
        55: Change(
            handle=describe_quorum.handle,
            refuse=describe_quorum.refuse,
            response=DescribeQuorumResponse,
            may_repeat=True,
        ),
        44: Change(
            handle=incremental_alter_configs.handle,
            refuse=_nothing_altered,
            response=IncrementalAlterConfigsResponse,
        ),
        49: Change(
            handle=alter_client_quotas.handle,
            refuse=alter_client_quotas.refuse,
            response=AlterClientQuotasResponse,
            may_repeat=True,
        ),
        20_000: Change(
            handle=move_leaders.handle,
            response=MoveLeadersResponse,
            may_repeat=True,
            afterwards=move_leaders.wait_over,
        ),
        20_001: Change(
            handle=balance_leaders.handle, response=BalanceLeadersResponse, may_repeat=True
        ),
        20_002: Change(
            handle=set_broker_state.handle, response=SetBrokerStateResponse, may_repeat=True
        ),
        20_003: Change(
            handle=describe_brokers.handle, response=DescribeBrokersResponse, may_repeat=True
        ),
        20_004: Change(handle=set_observers.handle, response=SetObserversResponse, may_repeat=True),
    }
)
"""By API key."""


def forwarded_to(node: Node) -> PeerHandler:
    """What answers other brokers that pass their clients' requests on to this one."""

    async def answer(_: NodeId | None, request: ForwardRequest) -> ForwardResponse:
        return await node.controller.serve_forward(request, partial(answer_here, node))

    return answer


async def not_yet(_: NodeId | None, request: Message) -> ForwardResponse:
    """The answer of a broker that is starting: it may lead the metadata before it serves."""
    del request
    return ForwardResponse(error_code=ErrorCode.NOT_CONTROLLER)


async def describe_any_quorum(
    node: Node, request: DescribeQuorumRequest, context: RequestContext
) -> DescribeQuorumResponse:
    """The leader of the metadata is asked about them; of other groups this broker says its own."""
    if describe_quorum.asks_about_metadata(request):
        response: DescribeQuorumResponse = await CHANGES[55].answer(node, request, context)
        return response
    return await describe_quorum.handle(node, request, context)


async def answer_here(node: Node, request: Message, context: RequestContext) -> Message:
    """The leader's answer to a request that another broker has passed on."""
    change = CHANGES.get(api_of(type(request)).key)
    if change is None:
        raise RequestError(ErrorCode.INVALID_REQUEST, "that is answered by any broker")
    response: Message = await change.handle(node, request, context)
    return response
