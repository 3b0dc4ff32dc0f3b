"""CreateAcls: who is to be allowed what."""

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


@struct
class AclCreation(Struct):
    """One ACL that is to be made."""

    resource_type: int = wire(INT8, "The type of resource.")
    resource_name: str = wire(STRING, "The resource's name.")
    resource_pattern_type: int = wire(INT8, "How the name is matched.", default=PatternType.LITERAL)
    principal: str = wire(STRING, "Who it is about.")
    host: str = wire(STRING, "From which host.")
    operation: int = wire(INT8, "What is done.")
    permission_type: int = wire(INT8, "Whether it is allowed: 2 is denied, 3 allowed.")


@message(versions=(1, 3), flexible_since=2)
class CreateAclsRequest(Message):
    """Asks for ACLs to be made."""

    creations: Sequence[AclCreation] = wire(array(AclCreation), "The ACLs.")


@struct
class AclCreationResult(Struct):
    """What came of one ACL."""

    error_code: int = wire(INT16, "What went wrong; 0 is nothing.", default=0)
    error_message: str | None = wire(
        STRING, "What went wrong, in words.", null_since=1, default=None
    )


@message(versions=(1, 3), flexible_since=2)
class CreateAclsResponse(Message):
    """What came of the ACLs."""

    throttle_time_ms: int = wire(
        INT32,
        "How long the client is asked to hold back, in milliseconds; 0 is not at all.",
        default=0,
    )
    results: Sequence[AclCreationResult] = wire(
        array(AclCreationResult), "The outcomes, in the order of the request."
    )
