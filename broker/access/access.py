"""What clients may do on this broker, by its settings and the ACLs in the cluster's metadata.

Without an authorizer everybody may do everything, and requests do not pass by here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from tidemark.broker.access.operations import ALL_BITS, bits
from tidemark.partitions.state_machines.access.hosts import host_of
from tidemark.partitions.state_machines.access.table import AclTable
from tidemark.protocol.acls import CLUSTER_NAME, OPERATIONS, Operation, ResourceType
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.values import dataclass

if TYPE_CHECKING:
    from tidemark.broker.network.requests import Session
    from tidemark.partitions.state_machines.cluster import ClusterState

ANONYMOUS: Final = "ANONYMOUS"
"""The user of a client that has not authenticated, as in Kafka."""
_REMEMBERED_MAX: Final = 50_000
"""Answers that are remembered at most."""
_NAME_CHARS_MAX: Final = 300
"""Of what an answer is remembered about: names of topics are no longer, others are what clients
make them."""

_REFUSALS: Final = {
    ResourceType.TOPIC: (ErrorCode.TOPIC_AUTHORIZATION_FAILED, "topic"),
    ResourceType.GROUP: (ErrorCode.GROUP_AUTHORIZATION_FAILED, "group"),
    ResourceType.CLUSTER: (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "the cluster"),
    ResourceType.TRANSACTIONAL_ID: (
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        "transactional id",
    ),
}


class Cluster(Protocol):
    """The cluster's metadata."""

    @property
    def state(self) -> ClusterState: ...

    def when_changed(self, callback: Callable[[], None]) -> None: ...


class Client(Protocol):
    """Who asks. A `Session`, or what is left of one."""

    @property
    def user(self) -> str | None: ...

    @property
    def client_host(self) -> str: ...


@dataclass(frozen=True, slots=True)
class TopicsKnown:
    """Whether a client may know of a topic: for those who remember it longer than its connection
    lasts. Those of the same user at the same host are equal."""

    access: Access
    user: str | None
    client_host: str

    def __call__(self, name: str) -> bool:
        return self.access.may(self, Operation.DESCRIBE, ResourceType.TOPIC, name)


class Access:
    """Used on the loop's thread."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        is_on: bool,
        super_users: tuple[str, ...],
        allows_without_acls: bool,
    ) -> None:
        self.is_on = is_on
        self.revision = 0
        """Another one whenever the ACLs may have changed."""
        self.on_refused: Callable[[RequestError], None] = _not_told
        """Called with each refusal that a client is given."""
        self.on_changed: Callable[[], None] = _nobody_told
        """Called when the ACLs may have changed."""
        self._cluster = cluster
        self._super_users = frozenset(super_users)
        self._allows_without_acls = allows_without_acls
        self._followed: tuple[AclTable, int] | None = None
        self._answers: dict[tuple[str, str, Operation, ResourceType, str], bool] = {}
        if is_on:
            cluster.when_changed(self._follow)
            self._follow()

    def may(
        self, session: Client, operation: Operation, resource_type: ResourceType, name: str
    ) -> bool:
        """Whether a client may do that with that resource, whether there is one or not."""
        if not self.is_on:
            return True
        asked = (session.user or ANONYMOUS, session.client_host, operation, resource_type, name)
        try:
            return self._answers[asked]
        except KeyError:
            return self._find_out(asked)

    def may_somewhere(
        self, session: Session, operation: Operation, resource_type: ResourceType
    ) -> bool:
        """Whether a client may do that with some resource of the type."""
        principal = principal_of(session)
        return (
            not self.is_on
            or principal in self._super_users
            or self._cluster.state.acls.allows_some(
                principal,
                _host_of(session.client_host),
                operation,
                resource_type,
                otherwise=self._allows_without_acls,
            )
        )

    def topics_known(self, session: Session) -> TopicsKnown | None:
        """Of which topics a client may know; `None`: of all of them."""
        if not self.is_on:
            return None
        return TopicsKnown(self, session.user, session.client_host)

    def operations(
        self, session: Session, resource_type: ResourceType, name: str = CLUSTER_NAME
    ) -> int:
        """What a client may do with a resource, a bit for each operation (KIP-430)."""
        if not self.is_on:
            return ALL_BITS[resource_type]
        return bits(
            operation
            for operation in OPERATIONS[resource_type]
            if self.may(session, operation, resource_type, name)
        )

    def _find_out(self, asked: tuple[str, str, Operation, ResourceType, str]) -> bool:
        user, host, operation, resource_type, name = asked
        principal = f"User:{user}"
        answer = principal in self._super_users or self._cluster.state.acls.allows(
            principal,
            _host_of(host),
            operation,
            resource_type,
            name,
            otherwise=self._allows_without_acls,
        )
        if len(name) <= _NAME_CHARS_MAX:
            if len(self._answers) >= _REMEMBERED_MAX:
                self._answers.clear()
            self._answers[asked] = answer
        return answer

    def _follow(self) -> None:
        acls = self._cluster.state.acls
        followed = self._followed
        if followed is None or followed[0] is not acls or followed[1] != acls.revision:
            self._followed = (acls, acls.revision)
            self.revision += 1
            self._answers.clear()
            self.on_changed()


def _host_of(client_host: str) -> str:
    """As ACLs write it; what is no address, such as nothing, is no host of any ACL."""
    try:
        return host_of(client_host)
    except ValueError:
        return client_host


def _nobody_told() -> None:
    pass


def _not_told(_error: RequestError) -> None:
    pass


def principal_of(session: Session) -> str:
    """As ACLs call the client."""
    return f"User:{session.user or ANONYMOUS}"


def refusal(
    session: Session, operation: Operation, resource_type: ResourceType, name: str
) -> RequestError:
    code, kind = _REFUSALS[resource_type]
    what = kind if resource_type is ResourceType.CLUSTER else f"{kind} {name[:_NAME_CHARS_MAX]!r}"
    return RequestError(
        code,
        f"{principal_of(session)} from {session.client_host} may not {operation.name} on {what}",
    )
