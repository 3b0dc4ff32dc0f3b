"""The coordinator of all groups of one partition of `__consumer_offsets`.

Pure: a request and the time go in, replies and writes come out. What the caller owes it:

1. append the writes in their order, and report each with `stored` or `not_stored`, in order;
2. call `tick` when `next_deadline_ms` has come;
3. call `resign` when it is not the partition's leader any more, and send what that gives back.
   Whatever is reported afterwards has no effect: a write that a later leader's progress seems to
   complete must not be answered as ours (KAFKA-20634).
"""

from collections.abc import Iterable
from typing import assert_never

from tidemark.partitions.state_machines.groups import (
    commits,
    deletion,
    expiry,
    heartbeat,
    join,
    leave,
    retention,
    static_members,
    sync,
)
from tidemark.partitions.state_machines.groups.agenda import Agenda
from tidemark.partitions.state_machines.groups.describe import GroupDescription, describe
from tidemark.partitions.state_machines.groups.effects import (
    AssignmentStored,
    Effects,
    GroupDeleted,
    NothingMore,
    ReplyWhenStored,
    StaticMemberStored,
    Then,
    Turn,
    Unstored,
)
from tidemark.partitions.state_machines.groups.group import Group
from tidemark.partitions.state_machines.groups.offsets import Offsets, OffsetTable
from tidemark.partitions.state_machines.groups.records import offset_tombstone
from tidemark.partitions.state_machines.groups.requests import (
    UNKNOWN_MEMBER,
    Answer,
    Commit,
    CommitAnswer,
    DeleteAnswer,
    DeleteGroup,
    DeleteOffsets,
    GroupState,
    Heartbeat,
    Join,
    JoinAnswer,
    Leave,
    LeaveAnswer,
    Request,
    Sync,
    SyncAnswer,
)
from tidemark.partitions.state_machines.groups.settings import GroupSettings
from tidemark.partitions.state_machines.groups.waiting import refuse
from tidemark.partitions.state_machines.instant import Instant
from tidemark.partitions.state_machines.token import Token
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.types import ProducerId, TopicPartition


class GroupShard:
    """Groups by id, their committed offsets, and what is on its way to the log."""

    def __init__(
        self,
        settings: GroupSettings,
        *,
        offsets: OffsetTable | None = None,
        groups: Iterable[Group] = (),
    ) -> None:
        """An empty shard, or one with what `Replay` found in the log."""
        self._settings = settings
        self._offsets = offsets or OffsetTable()
        self._groups = {group.id: group for group in groups}
        self._agenda = Agenda()
        self._unstored: dict[int, Unstored] = {}
        self._next_write = 0
        self._has_resigned = False
        for group in self._groups.values():
            self._agenda.note(group)

    @property
    def next_deadline_ms(self) -> int | None:
        """When `tick` is next needed, in the caller's ticks; it may be early, never late."""
        return self._agenda.next_ms

    def step(self, request: Request, token: Token, at: Instant) -> Effects:
        """Take one request in. `token` is answered once: now, or by a later step."""
        turn = self._begin(at)
        group = self._groups.get(request.group_id)
        match request:
            case Join():
                self._join(group, request, token, turn)
            case Commit():
                self._commit(group, request, token, turn)
            case _ if group is None:
                turn.reply(token, _unknown_group(request))
            case _:
                self._ask(group, request, token, turn)
        return self._finish(turn, request.group_id)

    def heartbeat(self, request: Heartbeat, at: Instant) -> ErrorCode:
        """A member is alive; NONE, or what it must do. Answered at once, so without a token."""
        group = self._groups.get(request.group_id)
        if group is None:
            return _unknown_member(request.group_id)
        return heartbeat.heartbeat(group, request, at.ticks_ms)

    def tick(self, at: Instant) -> Effects:
        """Do what is due: members that fell silent, phases whose time is up."""
        turn = self._begin(at)
        due = self._agenda.take_due(at.ticks_ms)
        for group_id in due:
            group = self._groups.get(group_id)
            if group is not None:
                expiry.expire(group, turn)
        return self._finish(turn, *due)

    def stored(self, number: int, at: Instant) -> Effects:
        """The write is durable: below the high watermark, in the epoch it was appended in."""
        return self._settle(number, ErrorCode.NONE, at)

    def not_stored(self, number: int, error: ErrorCode, at: Instant) -> Effects:
        """The write failed for good; whoever waits for it is answered with `error`."""
        assert error is not ErrorCode.NONE
        return self._settle(number, error, at)

    def end_transaction(self, producer_id: ProducerId, at: Instant, *, is_commit: bool) -> Effects:
        """The producer's marker is durable: what it has committed counts from now on, or never."""
        turn = self._begin(at)
        group_ids = self._offsets.end_transaction(producer_id, is_commit=is_commit)
        for group_id in group_ids:
            if group_id not in self._groups and self._offsets.has_any(group_id):
                self._add(group_id, turn)
        return self._finish(turn, *group_ids)

    def resign(self, at: Instant) -> Effects:
        """This is not the groups' coordinator any more: everybody is sent to look for it."""
        turn = self._begin(at)
        for group in self._groups.values():
            for member in group.members.values():
                refuse(group, member, turn, ErrorCode.NOT_COORDINATOR, member.id)
            group.enter(GroupState.DEAD, at.wall_ms)
        for unstored in self._unstored.values():
            _refuse_waiting(unstored.then, turn)
        self._groups.clear()
        self._unstored.clear()
        self._agenda = Agenda()
        self._has_resigned = True
        return turn.effects

    def expire_offsets(self, at: Instant) -> Effects:
        """Give up the commits of groups that nobody uses any more, and then the groups."""
        turn = self._begin(at)
        for group in self._groups.values():
            if group.state is not GroupState.DEAD:
                self._expire_offsets_of(group, turn)
        return self._finish(turn)

    def forget_topics(self, topics: frozenset[str], at: Instant) -> Effects:
        """These topics were deleted; a new one of the same name starts without commits."""
        turn = self._begin(at)
        for group_id in self._groups:
            gone = [p for p in self._offsets.partitions(group_id) if p.topic in topics]
            if gone:
                turn.persist([offset_tombstone(group_id, p) for p in gone], NothingMore())
        return self._finish(turn)

    def committed(self, group_id: str) -> Offsets:
        """The group's durable commits; none for a group that is not known (trap G8)."""
        return self._offsets.of(group_id)

    def is_unstable(self, group_id: str, partition: TopicPartition) -> bool:
        """Whether a transaction that is not decided may yet commit another offset (trap G8)."""
        return self._offsets.is_unstable(group_id, partition)

    def describe(self, group_id: str) -> GroupDescription | None:
        group = self._groups.get(group_id)
        return None if group is None else describe(group)

    def list_groups(self) -> list[GroupDescription]:
        """All groups, without their members."""
        return [
            GroupDescription(
                group_id=group.id, state=group.state, protocol_type=group.protocol_type or ""
            )
            for group in self._groups.values()
        ]

    def figures(self) -> list[tuple[str, int, Offsets]]:
        """Every group's id, number of members and commits. May be called from any thread."""
        return [
            (group.id, len(group.members), dict(self._offsets.of(group.id)))
            for group in list(self._groups.values())
        ]

    def _ask(
        self,
        group: Group,
        request: Sync | Leave | DeleteGroup | DeleteOffsets,
        token: Token,
        turn: Turn,
    ) -> None:
        match request:
            case Sync():
                sync.sync(group, request, token, turn)
            case Leave():
                leave.leave(group, request, token, turn)
            case DeleteGroup():
                deletion.delete_group(group, self._offsets, token, turn)
            case DeleteOffsets():
                deletion.delete_offsets(group, request, self._offsets, token, turn)
            case _:
                assert_never(request)

    def _join(self, group: Group | None, request: Join, token: Token, turn: Turn) -> None:
        error = join.check(request, self._settings)
        if error is ErrorCode.NONE and group is None and request.member_id != UNKNOWN_MEMBER:
            error = ErrorCode.UNKNOWN_MEMBER_ID
        if group is not None and group.state is GroupState.DEAD:
            error = ErrorCode.COORDINATOR_NOT_AVAILABLE
        if error is not ErrorCode.NONE:
            turn.reply(token, JoinAnswer(error=error, member_id=request.member_id))
            return
        join.join(group or self._add(request.group_id, turn), request, token, turn)

    def _commit(self, group: Group | None, request: Commit, token: Token, turn: Turn) -> None:
        if not request.group_id and request.generation >= 0:
            turn.reply(token, CommitAnswer(error=ErrorCode.INVALID_GROUP_ID))
        elif group is None and request.generation >= 0:
            # The group was forgotten, or is another coordinator's: its member joins again.
            turn.reply(token, CommitAnswer(error=ErrorCode.ILLEGAL_GENERATION))
        else:
            commits.commit(group or self._add(request.group_id, turn), request, token, turn)

    def _add(self, group_id: str, turn: Turn) -> Group:
        group = self._groups[group_id] = Group(group_id, wall_ms=turn.at.wall_ms)
        return group

    def _expire_offsets_of(self, group: Group, turn: Turn) -> None:
        expired = retention.expired_partitions(
            group,
            self._offsets,
            wall_ms=turn.at.wall_ms,
            retention_ms=self._settings.offsets_retention_ms,
        )
        is_left = group.state is GroupState.EMPTY and not group.pending
        if is_left and set(expired) == set(self._offsets.partitions(group.id)):
            deletion.bury(group, expired, None, turn)
        elif expired:
            turn.persist([offset_tombstone(group.id, p) for p in expired], NothingMore())

    def _settle(self, number: int, error: ErrorCode, at: Instant) -> Effects:
        if self._has_resigned:
            return Effects()
        assert number == next(iter(self._unstored)), "writes are reported in their order"
        write, then = self._unstored.pop(number)
        records = write.records
        self._offsets.end(records, write.producer_id)
        if error is ErrorCode.NONE:
            self._offsets.apply(records, write.producer_id)
        turn = self._begin(at)
        self._go_on(then, turn, error)
        return self._finish(turn, *(key.group for key, _ in records))

    def _go_on(self, then: Then, turn: Turn, error: ErrorCode) -> None:
        match then:
            case ReplyWhenStored(token, answer):
                turn.reply(token, answer if error is ErrorCode.NONE else answer.refused(error))
            case AssignmentStored():
                sync.stored(then, turn, error)
            case StaticMemberStored():
                static_members.stored(then, turn, error)
            case GroupDeleted():
                self._group_deleted(then, turn, error)
            case NothingMore():
                pass
            case _:
                assert_never(then)

    def _group_deleted(self, then: GroupDeleted, turn: Turn, error: ErrorCode) -> None:
        if error is ErrorCode.NONE:
            del self._groups[then.group.id]
        else:
            then.group.enter(GroupState.EMPTY, turn.at.wall_ms)
        if then.token is not None:
            is_done = error is ErrorCode.NONE
            turn.reply(then.token, then.answer if is_done else then.answer.refused(error))

    def _begin(self, at: Instant) -> Turn:
        assert not self._has_resigned
        return Turn(at, self._settings, self._unstored, self._next_write)

    def _finish(self, turn: Turn, *group_ids: str) -> Effects:
        self._next_write += len(turn.effects.writes)
        for write in turn.effects.writes:
            self._offsets.begin(write.records, write.producer_id)
        for group_id in group_ids:
            group = self._groups.get(group_id)
            if group is None:
                continue
            if group.is_unused and not self._offsets.has_any(group_id):
                del self._groups[group_id]
            else:
                self._agenda.note(group)
        return turn.effects


def _unknown_group(request: Sync | Leave | DeleteGroup | DeleteOffsets) -> Answer:
    match request:
        case Sync():
            return SyncAnswer(error=_unknown_member(request.group_id))
        case Leave():
            unknown = _unknown_member(request.group_id)
            return LeaveAnswer(members=tuple((leaver, unknown) for leaver in request.leavers))
        case DeleteGroup() | DeleteOffsets():
            return DeleteAnswer(error=ErrorCode.GROUP_ID_NOT_FOUND)
        case _:
            assert_never(request)


def _unknown_member(group_id: str) -> ErrorCode:
    return ErrorCode.UNKNOWN_MEMBER_ID if group_id else ErrorCode.INVALID_GROUP_ID


def _refuse_waiting(then: Then, turn: Turn) -> None:
    match then:
        case ReplyWhenStored(token, answer) | GroupDeleted(_, token, answer) if token is not None:
            turn.reply(token, answer.refused(ErrorCode.NOT_COORDINATOR))
        case _:
            pass  # Members wait by themselves, and have their answer already.
