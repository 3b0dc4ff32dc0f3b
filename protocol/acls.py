"""What ACLs are about and what they say, in Kafka's numbers (KIP-11, KIP-290)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Final

ANY: Final = 1
"""In a filter, in place of a type, an operation or a permission: whichever it is."""
WILDCARD: Final = "*"
"""As a resource's name all of the type; as a host every host."""
CLUSTER_NAME: Final = "kafka-cluster"
"""The name of the only resource of its type."""


class AclNumber(IntEnum):
    """One of the wire's numbers; what a newer peer knows beyond them is UNKNOWN, which is 0."""

    @classmethod
    def _missing_(cls, value: object) -> AclNumber | None:
        return cls(0) if isinstance(value, int) and value else None


class ResourceType(AclNumber):
    """What an ACL is about."""

    UNKNOWN = 0
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(AclNumber):
    """How the name of an ACL's resource is matched."""

    UNKNOWN = 0
    MATCH = 2
    """In a filter: all that hold for a resource of that name."""
    LITERAL = 3
    """The name itself; `*` is all names."""
    PREFIXED = 4
    """All names that begin with it."""


class Operation(AclNumber):
    """What is done with a resource. Each is a bit of what responses call authorized operations."""

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


class Permission(AclNumber):
    """Whether it is allowed. One ACL that denies outweighs all that allow."""

    UNKNOWN = 0
    DENY = 2
    ALLOW = 3


OPERATIONS: Final[Mapping[ResourceType, Sequence[Operation]]] = {
    ResourceType.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        Operation.READ,
        Operation.DESCRIBE,
        Operation.DELETE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.TRANSACTIONAL_ID: (
        Operation.WRITE,
        Operation.DESCRIBE,
        Operation.TWO_PHASE_COMMIT,
    ),
    ResourceType.CLUSTER: (
        Operation.CREATE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
    ),
}
"""What can be done with a resource of each type; an ACL may also say ALL of it."""
