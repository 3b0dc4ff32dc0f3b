"""ACLs: what a principal is allowed or denied to do with the resources of a name.

As with Kafka, an ACL is of one resource, or of all whose name is `*`, or of those whose names begin
with something (KIP-11, KIP-290).
"""

import re
from enum import IntEnum
from typing import Any, Final, NamedTuple, TypeVar

from tidemark.partitions.state_machines.access.hosts import host_of
from tidemark.protocol.acls import (
    ANY,
    CLUSTER_NAME,
    WILDCARD,
    AclNumber,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from tidemark.protocol.errors import ErrorCode, RequestError

N = TypeVar("N", bound=AclNumber)


EVERYBODY: Final = "User:*"
"""The principal that everybody is."""
NAME_BYTES_MAX: Final = 1_000
"""Of a resource or a principal that has an ACL."""
_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
"""What no listing shows: control characters, and halves of characters."""


class Acl(NamedTuple):
    """One of them. The order of the fields is that in which they are listed."""

    resource_type: ResourceType
    pattern: PatternType
    name: str
    principal: str
    """As Kafka writes it: a type, a colon and a name, `User:alice`."""
    host: str
    """As `host_of` writes it, or `*`."""
    operation: Operation
    permission: Permission

    def holds_for(self, resource_type: ResourceType, name: str) -> bool:
        """Whether it is about that resource."""
        if self.resource_type is not resource_type:
            return False
        if self.pattern is PatternType.PREFIXED:
            return name.startswith(self.name)
        return self.name in (name, WILDCARD)

    def __str__(self) -> str:
        which = f"{self.pattern.name.lower()} {self.name!r}"
        verb = "allowed" if self.permission is Permission.ALLOW else "denied"
        return (
            f"{self.principal} from {self.host} is {verb} {self.operation.name} on "
            f"{self.resource_type.name} {which}"
        )


def acl_of(
    *,
    resource_type: int,
    pattern: int,
    name: str,
    principal: str,
    host: str,
    operation: int,
    permission: int,
) -> Acl:
    """The ACL that a client names. Raises `RequestError` INVALID_REQUEST."""
    acl = Acl(
        _known(ResourceType.TOPIC, resource_type, "resource type"),
        _known(PatternType.LITERAL, pattern, "pattern type"),
        name,
        principal,
        _known_host(host),
        _known(Operation.ALL, operation, "operation"),
        _known(Permission.DENY, permission, "permission"),
    )
    if not is_shown(name):
        raise _invalid(f"a name here has 1 to {NAME_BYTES_MAX} bytes and no control characters")
    if acl.resource_type is ResourceType.CLUSTER and name != CLUSTER_NAME:
        raise _invalid(
            f"the only resource of type cluster is called {CLUSTER_NAME!r}, not {name!r}"
        )
    kind, colon, who = principal.partition(":")
    if not (kind and colon and who and is_shown(principal)):
        raise _invalid(
            f"{principal[:100]!r} is no principal of {NAME_BYTES_MAX} bytes at most, without "
            "control characters: write its type and its name, as in User:alice"
        )
    return acl


def is_shown(name: str) -> bool:
    """Whether it can be the name of an ACL's resource or principal."""
    return not _CONTROL.search(name) and 0 < len(name.encode()) <= NAME_BYTES_MAX


def _known_host(host: str) -> str:
    if host == WILDCARD:
        return host
    try:
        return host_of(host)
    except ValueError:
        raise _invalid(
            f"{host[:100]!r} is no host of an ACL: give an IP address without a zone, or *"
        ) from None


class AclFilter(NamedTuple):
    """Which ACLs are meant; `None` is whichever there are."""

    resource_type: ResourceType | None = None
    pattern: PatternType | None = None
    name: str | None = None
    principal: str | None = None
    host: str | None = None
    operation: Operation | None = None
    permission: Permission | None = None

    def matches(self, acl: Acl) -> bool:
        return (
            self.resource_type in (None, acl.resource_type)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (None, acl.operation)
            and self.permission in (None, acl.permission)
            and self._matches_name(acl)
        )

    def _matches_name(self, acl: Acl) -> bool:
        if self.pattern is PatternType.MATCH:
            return self.name is None or acl.holds_for(acl.resource_type, self.name)
        return self.pattern in (None, acl.pattern) and self.name in (None, acl.name)


def filter_of(
    *,
    resource_type: int,
    pattern: int,
    name: str | None,
    principal: str | None,
    host: str | None,
    operation: int,
    permission: int,
) -> AclFilter:
    """The filter that a client names. Raises `RequestError` INVALID_REQUEST. A name, a principal
    or a host that no ACL can have matches none."""
    return AclFilter(
        _known_or_any(ResourceType.TOPIC, resource_type, "resource type"),
        _known_or_any(PatternType.MATCH, pattern, "pattern type"),
        name,
        principal,
        None if host is None else _host_in_filter(host),
        _known_or_any(Operation.ALL, operation, "operation"),
        _known_or_any(Permission.DENY, permission, "permission"),
    )


def _host_in_filter(host: str) -> str:
    try:
        return host_of(host)
    except ValueError:
        return host


def _known_or_any(first: N, number: int, what: str) -> N | None:
    return None if number == ANY else _known(first, number, what)


def _known(first: N, number: int, what: str) -> N:
    """Which one it is, of those from `first` on."""
    kind = type(first)
    found = kind(number)
    if found < first:
        raise _invalid(
            f"no ACL has {what} {number}: the numbers are {first.value} to {max(kind).value}"
        )
    return found


def _invalid(sentence: str) -> RequestError:
    return RequestError(ErrorCode.INVALID_REQUEST, sentence)


# As a part of a command or a snapshot. Any: JSON's own values


def plain_acl(acl: Acl) -> list[Any]:
    return [each.name if isinstance(each, IntEnum) else each for each in acl]


def acl_of_plain(body: Any) -> Acl:
    """What its plain form stands for. Raises `KeyError`, `TypeError` or `ValueError`."""
    resource_type, pattern, name, principal, host, operation, permission = body
    return Acl(
        ResourceType[resource_type],
        PatternType[pattern],
        str(name),
        str(principal),
        str(host),
        Operation[operation],
        Permission[permission],
    )
