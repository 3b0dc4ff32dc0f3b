"""ACLs: who is allowed to do what with which resources, and who is denied it (KIP-11, KIP-290)."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from tidemark.protocol.values import dataclass

CLUSTER_NAME: Final = "kafka-cluster"
"""The name of the only resource of its type."""


class _Number(IntEnum):
    """One of the wire's numbers; what a newer broker knows beyond them is UNKNOWN, which is 0."""

    @classmethod
    def _missing_(cls, value: object) -> _Number | None:
        return cls(0) if isinstance(value, int) and value else None


class ResourceType(_Number):
    """What an ACL is about."""

    UNKNOWN = 0
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(_Number):
    """How the name of an ACL's resource is matched."""

    UNKNOWN = 0
    MATCH = 2
    """In a filter: all that hold for a resource of that name."""
    LITERAL = 3
    """The name itself; `*` is all names."""
    PREFIXED = 4
    """All names that begin with it."""


class Operation(_Number):
    """What is done with a resource."""

    UNKNOWN = 0
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class Permission(_Number):
    """Whether it is allowed. One ACL that denies outweighs all that allow."""

    UNKNOWN = 0
    DENY = 2
    ALLOW = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Acl:
    """That a principal is allowed or denied an operation on a resource, or on all of a prefix."""

    principal: str
    """A type, a colon and a name: `User:alice`; `User:*` is everybody."""
    permission: Permission = Permission.ALLOW
    operation: Operation
    resource_type: ResourceType
    name: str
    """The resource's; `CLUSTER_NAME` for the cluster."""
    pattern: PatternType = PatternType.LITERAL
    host: str = "*"
    """The IP address that it comes from; `*` is any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AclFilter:
    """Those ACLs that have all of this; None is whatever they have."""

    principal: str | None = None
    permission: Permission | None = None
    operation: Operation | None = None
    resource_type: ResourceType | None = None
    name: str | None = None
    pattern: PatternType | None = None
    """None: the name as it was given, in ACLs of either pattern type."""
    host: str | None = None
