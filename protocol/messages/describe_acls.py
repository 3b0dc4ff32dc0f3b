"""DescribeAcls: who is allowed what."""

from collections.abc import Sequence

from tidemark.protocol.acls import PatternType
from tidemark.protocol.schema import (
    INT8,
    INT16,
    INT32,
    STRING,
    Message,
    Struct,
    array,
    message,
    struct,
    wire,
)


@message(versions=(1, 3), flexible_since=2)
class DescribeAclsRequest(Message):
    """Asks for the ACLs that match all of this."""

    resource_type_filter: int = wire(INT8, "The type of resource; 1 is any.")
    resource_name_filter: str | None = wire(
        STRING, "The resource's name; null is any.", null_since=1
    )
    pattern_type_filter: int = wire(INT8, "How the name is matched.", default=PatternType.LITERAL)
    principal_filter: str | None = wire(STRING, "Who it is about; null is anybody.", null_since=1)
    host_filter: str | None = wire(STRING, "From which host; null is any.", null_since=1)
    operation: int = wire(INT8, "What is done; 1 is any.")
    permission_type: int = wire(INT8, "Whether it is allowed; 1 is any, 2 denied, 3 allowed.")


@struct
class AclDescription(Struct):
    """One ACL of a resource."""

    principal: str = wire(STRING, "Who it is about.")
    host: str = wire(STRING, "From which host.")
    operation: int = wire(INT8, "What is done.")
    permission_type: int = wire(INT8, "Whether it is allowed: 2 is denied, 3 allowed.")


@struct
class DescribeAclsResource(Struct):
    """The ACLs of one resource."""

    resource_type: int = wire(INT8, "The type of resource.")
    resource_name: str = wire(STRING, "The resource's name.")
    pattern_type: int = wire(INT8, "How the name is matched.", default=PatternType.LITERAL)
    acls: Sequence[AclDescription] = wire(array(AclDescription), "The ACLs.")


@message(versions=(1, 3), flexible_since=2)
class DescribeAclsResponse(Message):
    """The ACLs that match."""

    throttle_time_ms: int = wire(
        INT32,
        "How long the client is asked to hold back, in milliseconds; 0 is not at all.",
        default=0,
    )
    error_code: int = wire(INT16, "What went wrong; 0 is nothing.", default=0)
    error_message: str | None = wire(
        STRING, "What went wrong, in words.", null_since=1, default=None
    )
    resources: Sequence[DescribeAclsResource] = wire(
        array(DescribeAclsResource), "The ACLs, by resource."
    )
