"""AlterUserScramCredentials: users get credentials by which they log in, and lose them (KIP-554).

The password does not come here, but its hash, with which one could log in as well: of that only the
two keys are kept.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from tidemark.broker.handlers.change import Change
from tidemark.broker.network.requests import RequestContext
from tidemark.broker.network.sasl import is_name
from tidemark.broker.steps import Steps, portions
from tidemark.partitions.state_machines.access.users import (
    Credential,
    Mechanism,
    UserChange,
    UserTable,
)
from tidemark.partitions.state_machines.cluster import ClusterState
from tidemark.partitions.state_machines.cluster_commands import AlterUsers
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)

if TYPE_CHECKING:
    from tidemark.broker.node import Node

ITERATIONS_MIN: Final = 4_096
ITERATIONS_MAX: Final = 16_384
"""Kafka's bounds: what each login costs its client."""
SALT_BYTES_MAX: Final = 256
_HASHES: Final = {
    Mechanism.SCRAM_SHA_256: hashlib.sha256,
    Mechanism.SCRAM_SHA_512: hashlib.sha512,
}
_SECRET_BYTES: Final = 32

_Asked: TypeAlias = ScramCredentialDeletion | ScramCredentialUpsertion
_OfUser: TypeAlias = tuple[str, Sequence[UserChange]]


async def handle(
    node: Node, request: AlterUserScramCredentialsRequest, _context: RequestContext
) -> AlterUserScramCredentialsResponse:
    """Each user by itself: one that is refused does not keep the others."""
    configured, users = {user.name for user in node.settings.users}, node.cluster.state.users
    refused, changes, steps = dict[str, RequestError](), list[_OfUser](), Steps()
    asked = _by_user(request)
    for name, of_user in asked.items():
        try:
            if name in configured:
                _check_left_over(name, of_user, users)
            changes.append((name, _changes(name, of_user)))
        except RequestError as error:
            refused[name] = error
        await steps.did(1)
    for portion in portions(changes):
        await _alter(node, portion, refused)
    return AlterUserScramCredentialsResponse(
        results=[_result(name, refused.get(name)) for name in asked]
    )


def _by_user(request: AlterUserScramCredentialsRequest) -> dict[str, list[_Asked]]:
    asked = dict[str, list[_Asked]]()
    changes: list[_Asked] = [*request.deletions, *request.upsertions]
    for each in changes:
        asked.setdefault(each.name, []).append(each)
    return asked


async def _alter(node: Node, portion: Sequence[_OfUser], refused: dict[str, RequestError]) -> None:
    """Change what can be changed, and add to `refused` whose credentials were not."""

    def decide(state: ClusterState) -> AlterUsers:
        taken = list[UserChange]()
        for name, changes in portion:
            try:
                state.users.check(changes)
            except RequestError as error:
                refused[name] = error
            else:
                taken += changes
        if not taken:
            raise refused[portion[0][0]]
        return AlterUsers(
            at_version=state.version,
            credentials=tuple(taken),
            salt_secret=state.users.salt_secret or secrets.token_bytes(_SECRET_BYTES),
        )

    try:
        await node.cluster.propose(decide)
    except RequestError as error:
        for name, _ in portion:
            refused.setdefault(name, error)


def _check_left_over(name: str, asked: Sequence[_Asked], users: UserTable) -> None:
    """Raises `RequestError` POLICY_VIOLATION, unless it is about what there is of a user from
    before it was in the settings: that may go."""
    sets = any(isinstance(each, ScramCredentialUpsertion) for each in asked)
    if sets or not users.credentials(name):
        raise RequestError(
            ErrorCode.POLICY_VIOLATION,
            f"user {name} is in the brokers' settings: it is changed there",
        )


def _changes(name: str, asked: Sequence[_Asked]) -> list[UserChange]:
    """What is to become of one user. Raises `RequestError` for what cannot."""
    if not is_name(name):
        raise _unacceptable(
            "a user's name has 1 to 995 bytes and no control characters, and is as SASLprep "
            "writes it"
        )
    mechanisms = [_mechanism(each.mechanism) for each in asked]
    if len(mechanisms) > len(set(mechanisms)):
        raise RequestError(
            ErrorCode.DUPLICATE_RESOURCE,
            f"user {name} has a credential that is changed more than once: send one change",
        )
    return [_change(each, mechanism) for each, mechanism in zip(asked, mechanisms, strict=True)]


def _mechanism(number: int) -> Mechanism:
    try:
        return Mechanism(number)
    except ValueError:
        raise RequestError(
            ErrorCode.UNSUPPORTED_SASL_MECHANISM,
            f"there is no mechanism {number}: 1 is SCRAM-SHA-256, 2 is SCRAM-SHA-512",
        ) from None


def _change(asked: _Asked, mechanism: Mechanism) -> UserChange:
    credential = None
    if isinstance(asked, ScramCredentialUpsertion):
        credential = _credential(asked, mechanism)
    return UserChange(name=asked.name, mechanism=mechanism, credential=credential)


def _credential(asked: ScramCredentialUpsertion, mechanism: Mechanism) -> Credential:
    salt, salted = bytes(asked.salt), bytes(asked.salted_password)
    if not ITERATIONS_MIN <= asked.iterations <= ITERATIONS_MAX:
        raise _unacceptable(
            f"{asked.iterations} iterations: {ITERATIONS_MIN} to {ITERATIONS_MAX} are taken"
        )
    if not 0 < len(salt) <= SALT_BYTES_MAX:
        raise _unacceptable(f"a salt of {len(salt)} bytes: 1 to {SALT_BYTES_MAX} are taken")
    hashed = _HASHES[mechanism]
    # Of one that is empty, say, everybody could make the proof.
    if len(salted) != hashed().digest_size:
        raise _unacceptable(
            f"a salted password of {len(salted)} bytes: {mechanism.label} gives "
            f"{hashed().digest_size}"
        )
    return Credential(
        iterations=asked.iterations,
        salt=salt,
        stored_key=hashed(hmac.digest(salted, b"Client Key", hashed)).digest(),
        server_key=hmac.digest(salted, b"Server Key", hashed),
    )


def _unacceptable(sentence: str) -> RequestError:
    return RequestError(ErrorCode.UNACCEPTABLE_CREDENTIAL, sentence)


def _result(name: str, error: RequestError | None) -> AlterUserScramCredentialsResult:
    if error is None:
        return AlterUserScramCredentialsResult(user=name)
    return AlterUserScramCredentialsResult(
        user=name, error_code=error.code, error_message=error.message
    )


def refuse(
    request: AlterUserScramCredentialsRequest, error: RequestError
) -> AlterUserScramCredentialsResponse:
    return AlterUserScramCredentialsResponse(
        results=[_result(name, error) for name in _by_user(request)]
    )


CHANGE: Final = Change(handle=handle, refuse=refuse, response=AlterUserScramCredentialsResponse)
