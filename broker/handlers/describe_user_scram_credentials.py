"""DescribeUserScramCredentials: by which mechanisms of SCRAM the users of this broker can prove who
they are. None can be added or changed by a request: users are in the brokers' files.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from tidemark.broker.network.requests import RequestContext
from tidemark.broker.network.sasl import ITERATIONS
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)

if TYPE_CHECKING:
    from tidemark.broker.node import Node

_NUMBERS: Final = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
"""Kafka's, by mechanism."""


def handle(
    node: Node, request: DescribeUserScramCredentialsRequest, context: RequestContext
) -> DescribeUserScramCredentialsResponse:
    del context
    numbers = [_NUMBERS[each] for each in node.settings.sasl_enabled_mechanisms if each in _NUMBERS]
    infos = [CredentialInfo(mechanism=number, iterations=ITERATIONS) for number in numbers]
    names = [user.name for user in node.settings.users] if infos else []
    known = frozenset(names)
    asked = Counter(user.name for user in request.users or ()) or dict.fromkeys(names, 1)
    return DescribeUserScramCredentialsResponse(
        results=[_result(name, count, name in known, infos) for name, count in asked.items()]
    )


def _result(
    name: str, times_asked: int, is_known: bool, infos: list[CredentialInfo]
) -> DescribeUserScramCredentialsResult:
    """Each user once, as Kafka does: one that was named twice is refused."""
    if times_asked > 1:
        code, why = ErrorCode.DUPLICATE_RESOURCE, f"user {name} is asked about more than once"
    elif not is_known:
        code, why = ErrorCode.RESOURCE_NOT_FOUND, f"there is no user {name} with SCRAM"
    else:
        return DescribeUserScramCredentialsResult(user=name, credential_infos=infos)
    return DescribeUserScramCredentialsResult(
        user=name, error_code=code, error_message=why, credential_infos=()
    )
