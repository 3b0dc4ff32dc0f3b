"""ApiVersions: what this broker speaks. Clients adapt to what is listed."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Final

from tidemark.broker.network.requests import RequestContext
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from tidemark.protocol.registry import APIS

if TYPE_CHECKING:
    from tidemark.broker.node import Node

_SOFTWARE_SINCE: Final = 3
_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def handle(node: Node, request: ApiVersionsRequest, context: RequestContext) -> ApiVersionsResponse:
    if context.api_version >= _SOFTWARE_SINCE and not (
        _SOFTWARE.fullmatch(request.client_software_name)
        and _SOFTWARE.fullmatch(request.client_software_version)
    ):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST, api_keys=())  # A5
    # No features are listed: clients take some of them for promises about transactions (P14).
    return ApiVersionsResponse(api_keys=advertised())


@cache
def advertised() -> tuple[ApiVersion, ...]:
    """The APIs that have a handler, with the versions of the registry."""
    # The table of handlers imports this module.
    from tidemark.broker.handlers import HANDLERS

    return tuple(
        ApiVersion(
            api_key=key, min_version=APIS[key].min_version, max_version=APIS[key].max_version
        )
        for key in sorted(HANDLERS)
    )
