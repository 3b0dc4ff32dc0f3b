"""What is answered where there is no such group, or nobody who could answer any more."""

from typing import assert_never

from tidemark.partitions.state_machines.groups.effects import (
    GroupDeleted,
    ReplyWhenStored,
    Then,
    Turn,
)
from tidemark.partitions.state_machines.groups.requests import (
    Answer,
    DeleteAnswer,
    DeleteGroup,
    DeleteOffsets,
    Leave,
    LeaveAnswer,
    Sync,
    SyncAnswer,
)
from tidemark.protocol.errors import ErrorCode


def unknown_group(request: Sync | Leave | DeleteGroup | DeleteOffsets) -> Answer:
    match request:
        case Sync():
            return SyncAnswer(error=unknown_member(request.group_id))
        case Leave():
            unknown = unknown_member(request.group_id)
            return LeaveAnswer(members=tuple((leaver, unknown) for leaver in request.leavers))
        case DeleteGroup() | DeleteOffsets():
            return DeleteAnswer(error=ErrorCode.GROUP_ID_NOT_FOUND)
        case _:
            assert_never(request)


def unknown_member(group_id: str) -> ErrorCode:
    return ErrorCode.UNKNOWN_MEMBER_ID if group_id else ErrorCode.INVALID_GROUP_ID


def refuse_waiting(then: Then, turn: Turn) -> None:
    """The coordinator is one no more: nobody will hear what came of the write."""
    match then:
        case ReplyWhenStored(token, answer) | GroupDeleted(_, token, answer) if token is not None:
            turn.reply(token, answer.refused(ErrorCode.NOT_COORDINATOR))
        case _:
            pass  # Members wait by themselves, and have their answer already.
