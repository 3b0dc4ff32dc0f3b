"""Kafka's rules of who may do what, as they are written down, and examples to hold them against.

A scan of all ACLs for each question, after `StandardAuthorizerData.findResult` and
`Authorizer.authorizeByResourceType`.
"""

from collections.abc import Collection

from hypothesis import strategies as st

from tidemark.partitions.state_machines.access.acls import Acl
from tidemark.protocol.acls import Operation, PatternType, Permission, ResourceType

NAMES = ("a", "ab", "abc", "b", "*", "*a")
PRINCIPALS = ("User:ada", "User:bob", "User:*")
HOSTS = ("10.0.0.1", "::1", "*")
OPERATIONS = (
    Operation.ALL,
    Operation.READ,
    Operation.WRITE,
    Operation.ALTER,
    Operation.DESCRIBE,
    Operation.ALTER_CONFIGS,
    Operation.DESCRIBE_CONFIGS,
)
TYPES = (ResourceType.TOPIC, ResourceType.GROUP)
ACLS = st.builds(
    Acl,
    resource_type=st.sampled_from(TYPES),
    pattern=st.sampled_from((PatternType.LITERAL, PatternType.PREFIXED)),
    name=st.sampled_from(NAMES),
    principal=st.sampled_from(PRINCIPALS),
    host=st.sampled_from(HOSTS),
    operation=st.sampled_from(OPERATIONS),
    permission=st.sampled_from((Permission.DENY, Permission.ALLOW)),
)


def is_of_resource(acl: Acl, resource_type: ResourceType, name: str) -> bool:
    if acl.resource_type != resource_type:
        return False
    if acl.pattern == PatternType.PREFIXED:
        return name[: len(acl.name)] == acl.name
    return acl.name == name or acl.name == "*"


def is_of_client(acl: Acl, principal: str, host: str) -> bool:
    is_principal = acl.principal == principal or acl.principal == "User:*"
    return is_principal and (acl.host == host or acl.host == "*")


def is_of_operation(acl: Acl, operation: Operation) -> bool:
    if acl.operation == operation or acl.operation == Operation.ALL:
        return True
    if acl.permission == Permission.DENY:
        return False
    if operation == Operation.DESCRIBE:
        return acl.operation.name in {"READ", "WRITE", "DELETE", "ALTER"}
    return operation == Operation.DESCRIBE_CONFIGS and acl.operation == Operation.ALTER_CONFIGS


def allows(
    acls: Collection[Acl],
    principal: str,
    host: str,
    operation: Operation,
    resource_type: ResourceType,
    name: str,
    *,
    otherwise: bool,
) -> bool:
    of_resource = [acl for acl in acls if is_of_resource(acl, resource_type, name)]
    if not of_resource:
        return otherwise
    said = {
        acl.permission
        for acl in of_resource
        if is_of_client(acl, principal, host) and is_of_operation(acl, operation)
    }
    return said == {Permission.ALLOW}


def allows_some(
    acls: Collection[Acl],
    principal: str,
    host: str,
    operation: Operation,
    resource_type: ResourceType,
    *,
    otherwise: bool,
) -> bool:
    """As Kafka's brokers ask it of an operation that no other implies."""
    if allows(acls, principal, host, operation, resource_type, "hardcode", otherwise=otherwise):
        return True
    said: dict[tuple[Permission, PatternType], set[str]] = {
        (permission, pattern): {
            acl.name
            for acl in acls
            if (acl.resource_type, acl.permission, acl.pattern)
            == (resource_type, permission, pattern)
            and is_of_client(acl, principal, host)
            and acl.operation in {operation, Operation.ALL}
        }
        for permission in Permission
        for pattern in PatternType
    }
    denied = said[Permission.DENY, PatternType.LITERAL]
    allowed = said[Permission.ALLOW, PatternType.LITERAL]
    if "*" in denied or "*" in allowed:
        return "*" not in denied
    return any(
        not any(name.startswith(prefix) for prefix in said[Permission.DENY, PatternType.PREFIXED])
        for name in (allowed - denied) | said[Permission.ALLOW, PatternType.PREFIXED]
    )
