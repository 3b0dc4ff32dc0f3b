"""ListGroups: the groups that this broker coordinates."""

from tidemark.broker.network.requests import RequestContext
from tidemark.broker.node import Node
from tidemark.protocol.messages.list_groups import (
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)


def handle(node: Node, request: ListGroupsRequest, context: RequestContext) -> ListGroupsResponse:
    """Names in the filters count whatever their case."""
    states = {name.lower() for name in request.states_filter}
    types = {name.lower() for name in request.types_filter}
    return ListGroupsResponse(
        groups=[
            ListedGroup(
                group_id=group.group_id,
                protocol_type=group.protocol_type,
                group_state=group.state,
                group_type=group.kind,
            )
            for group in node.coordinator.list_groups()
            if (not states or group.state.lower() in states) and (not types or group.kind in types)
        ]
    )
