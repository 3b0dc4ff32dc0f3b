"""ApiVersions: what this broker speaks. Clients adapt to what is listed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from tidemark.broker.network.requests import RequestContext
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from tidemark.protocol.registry import APIS

if TYPE_CHECKING:
    from tidemark.broker.node import Node

FEATURES: Final[Mapping[str, tuple[int, int]]] = MappingProxyType(
    {"group.version": (0, 1), "metadata.version": (25, 25), "transaction.version": (0, 2)}
)
"""Kafka's names for what a cluster can do together, from which level to which; the last is in
force. Clients take them for promises. From `transaction.version` 2 on they leave it to leaders to
put their partitions into transactions, and go on with the epoch that an end has raised (P14).

`metadata.version` is how tools learn which Kafka they talk to: 25 is 4.0-IV3, the newest that those
of 2025 know. Without it Kafbat UI takes a cluster for one from before 2.3, and has neither quotas
nor changes of ACLs there."""

_FEATURES_EPOCH: Final = 1
"""The features are those of the program, so the list of them has one version."""
_FEATURES_FROM_ZERO_SINCE: Final = 4
_SOFTWARE_SINCE: Final = 3
# Possessive: a name is as long as its frame, and is not gone through twice.
_SOFTWARE: Final = re.compile(r"(?![\-.])[a-zA-Z0-9\-.]++(?<![\-.])")


def handle(node: Node, request: ApiVersionsRequest, context: RequestContext) -> ApiVersionsResponse:
    if context.api_version >= _SOFTWARE_SINCE and not (
        _SOFTWARE.fullmatch(request.client_software_name)
        and _SOFTWARE.fullmatch(request.client_software_version)
    ):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST, api_keys=())  # A5
    return ApiVersionsResponse(
        api_keys=advertised(),
        supported_features=[
            SupportedFeatureKey(name=name, min_version=least, max_version=most)
            for name, (least, most) in FEATURES.items()
            if least > 0 or context.api_version >= _FEATURES_FROM_ZERO_SINCE
        ],
        finalized_features_epoch=_FEATURES_EPOCH,
        finalized_features=[
            FinalizedFeatureKey(name=name, max_version_level=most, min_version_level=most)
            for name, (_, most) in FEATURES.items()
        ],
    )


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
