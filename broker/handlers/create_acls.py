"""CreateAcls: refused, as DescribeAcls is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemark.broker.handlers.describe_acls import NO_ACLS
from tidemark.broker.network.requests import RequestContext
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages.create_acls import (
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)

if TYPE_CHECKING:
    from tidemark.broker.node import Node


def handle(node: Node, request: CreateAclsRequest, context: RequestContext) -> CreateAclsResponse:
    del node, context
    refused = AclCreationResult(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_ACLS)
    return CreateAclsResponse(results=[refused] * len(request.creations))
