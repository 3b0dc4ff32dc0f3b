"""ACLs: who is allowed to do what with which resources, and who is denied it (KIP-11, KIP-290)."""

from __future__ import annotations

from tidemark.protocol.acls import Operation, PatternType, Permission, ResourceType
from tidemark.protocol.values import dataclass


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
