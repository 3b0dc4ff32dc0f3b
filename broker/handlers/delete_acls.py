"""DeleteAcls: refused, as DescribeAcls is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemark.broker.handlers.describe_acls import NO_ACLS
from tidemark.broker.network.requests import RequestContext
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsRequest,
    DeleteAclsResponse,
)

if TYPE_CHECKING:
    from tidemark.broker.node import Node


def handle(node: Node, request: DeleteAclsRequest, context: RequestContext) -> DeleteAclsResponse:
    del node, context
    refused = DeleteAclsFilterResult(
        error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_ACLS, matching_acls=()
    )
    return DeleteAclsResponse(filter_results=[refused] * len(request.filters))
