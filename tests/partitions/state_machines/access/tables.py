"""Tables of ACLs, and who may do what by them."""

from tidemark.partitions.state_machines.access.acls import Acl
from tidemark.partitions.state_machines.access.table import AclTable
from tidemark.protocol.acls import Operation, PatternType, Permission, ResourceType

ALLOW, DENY = Permission.ALLOW, Permission.DENY
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
READ, WRITE, ALL = Operation.READ, Operation.WRITE, Operation.ALL
ADA, BOB, EVERYBODY = "User:ada", "User:bob", "User:*"
HERE, ELSEWHERE = "10.0.0.1", "10.0.0.2"


def acl(
    permission: Permission,
    operation: Operation,
    name: str,
    pattern: PatternType = LITERAL,
    *,
    principal: str = ADA,
    host: str = "*",
    resource_type: ResourceType = ResourceType.TOPIC,
) -> Acl:
    return Acl(resource_type, pattern, name, principal, host, operation, permission)


def table_of(*acls: Acl) -> AclTable:
    table = AclTable()
    table.alter(acls, ())()
    return table


def may(
    table: AclTable,
    operation: Operation = READ,
    name: str = "orders",
    *,
    principal: str = ADA,
    host: str = HERE,
    otherwise: bool = False,
) -> bool:
    return table.allows(principal, host, operation, ResourceType.TOPIC, name, otherwise=otherwise)
