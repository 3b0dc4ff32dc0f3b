"""DescribeAcls: refused as by a Kafka without an authorizer, which tools take for what it is.

MirrorMaker, Kafka UI and others ask for ACLs in ordinary use. They go on without after
SECURITY_DISABLED, and take it for a fault where the API is missing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tidemark.broker.network.requests import RequestContext
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse

if TYPE_CHECKING:
    from tidemark.broker.node import Node

NO_ACLS: Final = "there are no ACLs here: who may connect may do everything"


def handle(
    node: Node, request: DescribeAclsRequest, context: RequestContext
) -> DescribeAclsResponse:
    del node, request, context
    return DescribeAclsResponse(
        error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_ACLS, resources=()
    )
