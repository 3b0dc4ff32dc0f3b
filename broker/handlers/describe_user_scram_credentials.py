"""DescribeUserScramCredentials: by which mechanisms of SCRAM users can prove who they are, those of
the cluster and those in this broker's settings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tidemark.broker.network.requests import RequestContext
from tidemark.broker.network.sasl import ITERATIONS
from tidemark.broker.steps import Steps
from tidemark.partitions.state_machines.access.users import BY_LABEL
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)

if TYPE_CHECKING:
    from tidemark.broker.node import Node


async def handle(
    node: Node, request: DescribeUserScramCredentialsRequest, _context: RequestContext
) -> DescribeUserScramCredentialsResponse:
    users, enabled = node.cluster.state.users, node.settings.sasl_enabled_mechanisms
    of_settings = [
        CredentialInfo(mechanism=BY_LABEL[each], iterations=ITERATIONS)
        for each in enabled
        if each in BY_LABEL
    ]
    configured = dict.fromkeys(user.name for user in node.settings.users)

    def infos_of(name: str) -> list[CredentialInfo]:
        if name in configured:
            return of_settings
        return [
            CredentialInfo(mechanism=mechanism, iterations=each.iterations)
            for mechanism, each in users.credentials(name).items()
        ]

    def described(asked: tuple[str, int]) -> DescribeUserScramCredentialsResult:
        name, times = asked
        return _result(name, times, infos_of(name))

    known = [name for name in dict.fromkeys([*configured, *users]) if infos_of(name)]
    asked = Counter(user.name for user in request.users or ()) or dict.fromkeys(known, 1)
    return DescribeUserScramCredentialsResponse(
        results=await Steps().each(asked.items(), described)
    )


def _result(
    name: str, times_asked: int, infos: Sequence[CredentialInfo]
) -> DescribeUserScramCredentialsResult:
    """Each user once, as Kafka does: one that was named twice is refused."""
    if times_asked > 1:
        code, why = ErrorCode.DUPLICATE_RESOURCE, f"user {name} is asked about more than once"
    elif not infos:
        code, why = ErrorCode.RESOURCE_NOT_FOUND, f"there is no user {name} with SCRAM"
    else:
        return DescribeUserScramCredentialsResult(user=name, credential_infos=infos)
    return DescribeUserScramCredentialsResult(
        user=name, error_code=code, error_message=why, credential_infos=()
    )
