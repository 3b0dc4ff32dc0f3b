"""DeleteAcls: the ACLs that match a filter go, and the answer says which these were."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tidemark.broker.handlers.change import Change
from tidemark.broker.handlers.describe_acls import check_is_on
from tidemark.broker.network.requests import RequestContext
from tidemark.broker.steps import Steps, portions
from tidemark.partitions.state_machines.access.acls import Acl, filter_of
from tidemark.partitions.state_machines.cluster import ClusterState
from tidemark.partitions.state_machines.cluster_commands import AlterAcls
from tidemark.protocol.errors import RequestError
from tidemark.protocol.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)

if TYPE_CHECKING:
    from tidemark.broker.node import Node


async def handle(
    node: Node, request: DeleteAclsRequest, _context: RequestContext
) -> DeleteAclsResponse:
    check_is_on(node)
    # What two filters match is in the answer of both, as with Kafka.
    before = list(node.cluster.state.acls)
    steps, results = Steps(), list[DeleteAclsFilterResult]()
    for asked in request.filters:
        try:
            results.append(_deleted(await _delete(node, asked, before, steps)))
        except RequestError as error:
            results.append(_refused(error))
    return DeleteAclsResponse(filter_results=results)


async def _delete(
    node: Node, asked: DeleteAclsFilter, before: list[Acl], steps: Steps
) -> list[Acl]:
    wanted = filter_of(
        resource_type=asked.resource_type_filter,
        pattern=asked.pattern_type_filter,
        name=asked.resource_name_filter,
        principal=asked.principal_filter,
        host=asked.host_filter,
        operation=asked.operation,
        permission=asked.permission_type,
    )
    matches = await steps.each(before, wanted.matches)
    matching = [acl for acl, is_meant in zip(before, matches, strict=True) if is_meant]
    for portion in portions(matching):
        gone = tuple(portion)

        def decide(state: ClusterState, gone: tuple[Acl, ...] = gone) -> AlterAcls:
            return AlterAcls(at_version=state.version, added=(), removed=gone)

        await node.cluster.propose(decide)
    return matching


def _deleted(acls: list[Acl]) -> DeleteAclsFilterResult:
    return DeleteAclsFilterResult(
        matching_acls=[
            DeleteAclsMatchingAcl(
                resource_type=acl.resource_type,
                resource_name=acl.name,
                pattern_type=acl.pattern,
                principal=acl.principal,
                host=acl.host,
                operation=acl.operation,
                permission_type=acl.permission,
            )
            for acl in acls
        ]
    )


def _refused(error: RequestError) -> DeleteAclsFilterResult:
    return DeleteAclsFilterResult(
        error_code=error.code, error_message=error.message, matching_acls=()
    )


def refuse(request: DeleteAclsRequest, error: RequestError) -> DeleteAclsResponse:
    return DeleteAclsResponse(filter_results=[_refused(error)] * len(request.filters))


CHANGE: Final = Change(handle=handle, refuse=refuse, response=DeleteAclsResponse)
