"""The gates of groups: their members, their commits, what is said of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from tidemark.broker.access.gate import (
    CLUSTER,
    GROUP,
    TOPIC,
    TRANSACTIONAL_ID,
    Gate,
    Looking,
    Passed,
    Visitor,
)
from tidemark.broker.access.gates.each import each_named
from tidemark.broker.access.gates.partitions import PartitionGate
from tidemark.broker.network.error_responses import filled, said_of
from tidemark.protocol.acls import Operation
from tidemark.protocol.errors import RequestError
from tidemark.protocol.messages import consumer_group_describe as consumer_groups
from tidemark.protocol.messages import describe_groups as classic_groups
from tidemark.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tidemark.protocol.messages.delete_groups import DeleteGroupsResponse
from tidemark.protocol.messages.describe_rebalances import DescribeRebalancesResponse
from tidemark.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from tidemark.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from tidemark.protocol.messages.offset_commit import OffsetCommitResponse
from tidemark.protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse

_SEVERAL_COORDINATORS_SINCE: Final = 4
_GROUP_MESSAGES_SINCE: Final = 6
_GROUPS: Final = 0
_TRANSACTIONS: Final = 1


def on_group(operation: Operation) -> Gate:
    """What needs one operation on the request's group, and nothing else."""

    def gate(visitor: Visitor, request: Any) -> Passed:  # Any: of whichever API it is
        visitor.demand(operation, GROUP, request.group_id)
        return Passed(request)

    return gate


def consumer_group_heartbeat(visitor: Visitor, request: ConsumerGroupHeartbeatRequest) -> Passed:
    visitor.demand(Operation.READ, GROUP, request.group_id)
    for name in request.subscribed_topic_names or ():
        visitor.demand(Operation.DESCRIBE, TOPIC, name)
    return Passed(request)


def _demand_group(visitor: Visitor, request: Any) -> None:
    visitor.demand(Operation.READ, GROUP, request.group_id)


offset_commit: Final = PartitionGate(
    operation=Operation.READ, response=OffsetCommitResponse, for_all=_demand_group
)

_OFFSET_DELETE: Final = PartitionGate(operation=Operation.READ, response=OffsetDeleteResponse)


def offset_delete(visitor: Visitor, request: OffsetDeleteRequest) -> Looking:
    visitor.demand(Operation.DELETE, GROUP, request.group_id)
    return (yield from _OFFSET_DELETE(visitor, request))


delete_groups: Final = each_named(
    Operation.DELETE,
    GROUP,
    response=DeleteGroupsResponse,
    asked="groups_names",
    answered="results",
    name="group_id",
)

_DESCRIBE_GROUPS: Final = each_named(
    Operation.DESCRIBE,
    GROUP,
    response=classic_groups.DescribeGroupsResponse,
    asked="groups",
    answered="groups",
    name="group_id",
)


def describe_groups(visitor: Visitor, request: classic_groups.DescribeGroupsRequest) -> Looking:
    passed = yield from _DESCRIBE_GROUPS(visitor, request)
    if visitor.api_version >= _GROUP_MESSAGES_SINCE:
        return passed
    return passed.then(
        lambda response: replace(
            response, groups=[replace(each, error_message=None) for each in response.groups]
        )
    )


describe_rebalances: Final = each_named(
    Operation.DESCRIBE,
    GROUP,
    response=DescribeRebalancesResponse,
    asked="groups",
    answered="groups",
    name="group_id",
)

_DESCRIBE_CONSUMER_GROUPS: Final = each_named(
    Operation.DESCRIBE,
    GROUP,
    response=consumer_groups.ConsumerGroupDescribeResponse,
    asked="group_ids",
    answered="groups",
    name="group_id",
)


def consumer_group_describe(
    visitor: Visitor, request: consumer_groups.ConsumerGroupDescribeRequest
) -> Looking:
    """A group of which a member reads a topic that is not to be known is not described."""
    passed = yield from _DESCRIBE_CONSUMER_GROUPS(visitor, request)
    return passed.then(
        lambda response: replace(
            response, groups=[_without_hidden(visitor, each) for each in response.groups]
        )
    )


def _without_hidden(
    visitor: Visitor, group: consumer_groups.DescribedGroup
) -> consumer_groups.DescribedGroup:
    for name in sorted(set(_topics_of(group))):
        error = visitor.refused(Operation.DESCRIBE, TOPIC, name)
        if error is not None:
            # Which topic it is would be told with the error's own words.
            error = RequestError(error.code, "a member reads a topic that may not be described")
            kind = consumer_groups.DescribedGroup
            return filled(kind, group_id=group.group_id, **said_of(kind, error))
    return group


def _topics_of(group: consumer_groups.DescribedGroup) -> Iterable[str]:
    for member in group.members:
        yield from member.subscribed_topic_names
        for assignment in (member.assignment, member.target_assignment):
            yield from (each.topic_name for each in assignment.topic_partitions)


def list_groups(visitor: Visitor, request: ListGroupsRequest) -> Passed:
    """All to who may describe the cluster, to others those that they may describe."""
    if visitor.may(Operation.DESCRIBE, CLUSTER):
        return Passed(request)

    def finish(response: ListGroupsResponse) -> ListGroupsResponse:
        shown = [
            each
            for each in response.groups
            if visitor.may(Operation.DESCRIBE, GROUP, each.group_id)
        ]
        return replace(response, groups=shown)

    return Passed(request, finish)


def find_coordinator(visitor: Visitor, request: FindCoordinatorRequest) -> Looking:
    resource_type = _COORDINATED.get(request.key_type)
    if resource_type is None:
        return Passed(request)  # The handler says what there is.
    if visitor.api_version < _SEVERAL_COORDINATORS_SINCE:
        visitor.demand(Operation.DESCRIBE, resource_type, request.key)
        return Passed(request)
    return (yield from _FIND_COORDINATORS[resource_type](visitor, request))


_COORDINATED: Final = {_GROUPS: GROUP, _TRANSACTIONS: TRANSACTIONAL_ID}
_FIND_COORDINATORS: Final = {
    each: each_named(
        Operation.DESCRIBE,
        each,
        response=FindCoordinatorResponse,
        asked="coordinator_keys",
        answered="coordinators",
        name="key",
    )
    for each in _COORDINATED.values()
}
