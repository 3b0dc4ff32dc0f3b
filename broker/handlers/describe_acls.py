"""DescribeAcls: the ACLs that match, as this broker knows them.

Without an authorizer it is refused as by Kafka, which tools take for what it is: MirrorMaker, Kafka
UI and others ask for ACLs in ordinary use. They go on without after SECURITY_DISABLED, and take it
for a fault where the API is missing.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Final

from tidemark.broker.network.requests import RequestContext
from tidemark.broker.steps import Steps
from tidemark.partitions.state_machines.access.acls import Acl, filter_of
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)

if TYPE_CHECKING:
    from tidemark.broker.node import Node

NO_ACLS: Final = (
    "there are no ACLs here, and who may connect may do everything: set authorizer.class.name on "
    "each broker"
)


def check_is_on(node: Node) -> None:
    """Raises `RequestError` SECURITY_DISABLED where there is no authorizer."""
    if not node.access.is_on:
        raise RequestError(ErrorCode.SECURITY_DISABLED, NO_ACLS)


async def handle(
    node: Node, request: DescribeAclsRequest, _context: RequestContext
) -> DescribeAclsResponse:
    check_is_on(node)
    wanted = filter_of(
        resource_type=request.resource_type_filter,
        pattern=request.pattern_type_filter,
        name=request.resource_name_filter,
        principal=request.principal_filter,
        host=request.host_filter,
        operation=request.operation,
        permission=request.permission_type,
    )
    steps, found = Steps(), list[Acl]()
    for acl in list(node.cluster.state.acls):
        if wanted.matches(acl):
            found.append(acl)
        await steps.did(1)
    by_resource = groupby(sorted(found), lambda acl: (acl.resource_type, acl.pattern, acl.name))
    return DescribeAclsResponse(
        resources=[
            DescribeAclsResource(
                resource_type=resource_type,
                resource_name=name,
                pattern_type=pattern,
                acls=[_described(acl) for acl in acls],
            )
            for (resource_type, pattern, name), acls in by_resource
        ]
    )


def _described(acl: Acl) -> AclDescription:
    return AclDescription(
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission,
    )
