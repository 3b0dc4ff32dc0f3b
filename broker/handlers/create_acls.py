"""CreateAcls: each ACL by itself; one that is there already is as good as made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from tidemark.broker.handlers.change import Change
from tidemark.broker.handlers.describe_acls import check_is_on
from tidemark.broker.network.requests import RequestContext
from tidemark.broker.steps import Steps, portions
from tidemark.partitions.state_machines.access.acls import Acl, acl_of
from tidemark.partitions.state_machines.cluster import ClusterState
from tidemark.partitions.state_machines.cluster_commands import AlterAcls
from tidemark.protocol.errors import RequestError
from tidemark.protocol.messages.create_acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)

if TYPE_CHECKING:
    from tidemark.broker.node import Node


async def handle(
    node: Node, request: CreateAclsRequest, _context: RequestContext
) -> CreateAclsResponse:
    check_is_on(node)
    steps = Steps()
    outcomes = await steps.each(request.creations, _acl_of)
    wanted = [each for each in dict.fromkeys(outcomes) if isinstance(each, Acl)]
    refused = dict[Acl, RequestError]()
    for portion in portions(wanted):
        try:
            await _create(node, portion)
        except RequestError as error:
            refused.update(dict.fromkeys(portion, error))
    results = [_result(refused.get(each) if isinstance(each, Acl) else each) for each in outcomes]
    return CreateAclsResponse(results=results)


async def _create(node: Node, acls: Sequence[Acl]) -> None:
    there = node.cluster.state.acls
    if all(acl in there for acl in acls):
        return

    def decide(state: ClusterState) -> AlterAcls:
        new = tuple(acl for acl in acls if acl not in state.acls)
        return AlterAcls(at_version=state.version, added=new, removed=())

    await node.cluster.propose(decide)


def _acl_of(asked: AclCreation) -> Acl | RequestError:
    try:
        return acl_of(
            resource_type=asked.resource_type,
            pattern=asked.resource_pattern_type,
            name=asked.resource_name,
            principal=asked.principal,
            host=asked.host,
            operation=asked.operation,
            permission=asked.permission_type,
        )
    except RequestError as error:
        return error


def _result(error: RequestError | None) -> AclCreationResult:
    if error is None:
        return AclCreationResult()
    return AclCreationResult(error_code=error.code, error_message=error.message)


def refuse(request: CreateAclsRequest, error: RequestError) -> CreateAclsResponse:
    return CreateAclsResponse(results=[_result(error)] * len(request.creations))


CHANGE: Final = Change(handle=handle, refuse=refuse, response=CreateAclsResponse, may_repeat=True)
