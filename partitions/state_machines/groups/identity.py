"""Whether a client is the member that it says it is, in either kind of group."""

from collections.abc import Container, Mapping

from tidemark.protocol.errors import ErrorCode


def check_identity(
    members: Container[str],
    static_ids: Mapping[str, str],
    member_id: str,
    instance_id: str | None,
) -> ErrorCode:
    """NONE if it is; an instance has one member id at a time, which `static_ids` has by instance.

    UNKNOWN_MEMBER_ID for nobody's id, FENCED_INSTANCE_ID for an instance that another has become.
    """
    if instance_id is not None:
        current = static_ids.get(instance_id)
        if current is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if current != member_id:
            return ErrorCode.FENCED_INSTANCE_ID
    return ErrorCode.NONE if member_id in members else ErrorCode.UNKNOWN_MEMBER_ID
