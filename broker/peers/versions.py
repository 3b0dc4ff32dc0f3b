"""What brokers say whose releases have no version of the protocol between brokers in common.

They say it in greetings, which all versions have alike, and go on without each other: a broker
that is refused waits, for the other one may be next to be upgraded.
"""

from __future__ import annotations

from typing import Final

from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages.peer.hello import HelloRequest
from tidemark.protocol.messages.peer.join import JoinRequest, JoinResponse
from tidemark.protocol.messages.peer.versions import FIRST_VERSION, LAST_VERSION
from tidemark.protocol.types import NodeId
from tidemark.protocol.values import dataclass

_NOBODY: Final = NodeId(-1)
_WHAT_TO_DO: Final = (
    "brokers of one cluster need releases that have a version in common. Stop the brokers of the "
    "older release, install the newer one there, and start them on the directories they have"
)


@dataclass(frozen=True, slots=True)
class Spoken:
    """The versions that a broker speaks, inclusive."""

    oldest: int
    newest: int

    def __str__(self) -> str:
        if self.oldest == self.newest:
            return f"version {self.newest}"
        return f"versions {self.oldest} to {self.newest}"

    def has_common(self, other: Spoken) -> bool:
        return self.newest >= other.oldest and self.oldest <= other.newest


OWN: Final = Spoken(FIRST_VERSION, LAST_VERSION)


def nothing_in_common(node: int, theirs: Spoken, own: int) -> str:
    """The sentence that both sides log about broker `node`, which has come to broker `own`."""
    return with_what_to_do(
        f"broker {node} speaks {theirs} of the protocol between brokers, broker {own} {OWN}"
    )


def with_what_to_do(reason: str) -> str:
    """Builds of version 1 say what is wrong, and not what to do."""
    return reason if reason.endswith(_WHAT_TO_DO) else f"{reason}: {_WHAT_TO_DO}"


def refused_join(request: JoinRequest, version: int, own: int) -> JoinResponse:
    """The answer to a Join that came in a version that is not spoken here. It is final there."""
    return JoinResponse(
        error_code=int(ErrorCode.INVALID_REQUEST),
        error_message=nothing_in_common(request.node_id, Spoken(version, version), own),
        node_id=own,
    )


def hello_of(request: JoinRequest) -> HelloRequest:
    """A Hello to be refused, for what the refusal says: whoever is there has hung up on `request`,
    as builds do that know no Join but their own version's. They look at versions first."""
    return HelloRequest(
        oldest_version=FIRST_VERSION,
        newest_version=LAST_VERSION,
        cluster_id=request.cluster_id or "",
        to_node_id=_NOBODY,
        node_id=request.node_id,
        directory_id=request.directory_id,
        incarnation=request.incarnation,
        rack=request.rack,
        endpoints=request.endpoints,
    )
