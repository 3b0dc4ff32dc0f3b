"""The coordinator of all groups of one partition of `__consumer_offsets`.

Pure: a request and the time go in, replies and writes come out. What the caller owes it:

1. append the writes in their order, and report each with `stored` or `not_stored`, in order;
2. call `tick` when `next_deadline_ms` has come;
3. call `resign` when it is not the partition's leader any more, and send what that gives back.
   Whatever is reported afterwards has no effect: a write that a later leader's progress seems to
   complete must not be answered as ours (KAFKA-20634).
"""

from collections.abc import Iterable, Sequence
from typing import assert_never

from tidemark.partitions.state_machines.agenda import Agenda
from tidemark.partitions.state_machines.groups import (
    commits,
    conversion,
    deletion,
    expiry,
    heartbeat,
    join,
    leave,
    migration,
    retention,
    static_members,
    sync,
)
from tidemark.partitions.state_machines.groups.consumer import classic_members, leaving, writing
from tidemark.partitions.state_machines.groups.consumer import heartbeat as consumer_heartbeat
from tidemark.partitions.state_machines.groups.consumer.group import ConsumerGroup
from tidemark.partitions.state_machines.groups.consumer.member import JOINING_EPOCH
from tidemark.partitions.state_machines.groups.consumer.targets import Topics
from tidemark.partitions.state_machines.groups.effects import (
    AssignmentStored,
    Effects,
    GroupDeleted,
    GroupDowngraded,
    GroupRecorded,
    LogRecord,
    NothingMore,
    ReplyWhenStored,
    StaticMemberStored,
    Then,
    Turn,
    Unstored,
)
from tidemark.partitions.state_machines.groups.group import ClassicGroup
from tidemark.partitions.state_machines.groups.kinds import (
    AnyGroup,
    is_dead,
    is_left,
    is_unused,
    revive,
)
from tidemark.partitions.state_machines.groups.known_groups import KnownGroups
from tidemark.partitions.state_machines.groups.offsets import OffsetTable
from tidemark.partitions.state_machines.groups.records import offset_tombstone
from tidemark.partitions.state_machines.groups.refusals import (
    refuse_waiting,
    unknown_group,
    unknown_member,
)
from tidemark.partitions.state_machines.groups.requests import (
    UNKNOWN_MEMBER,
    Commit,
    CommitAnswer,
    ConsumerHeartbeat,
    ConsumerHeartbeatAnswer,
    DeleteGroup,
    DeleteOffsets,
    GroupState,
    Heartbeat,
    Join,
    JoinAnswer,
    Leave,
    Request,
    Sync,
)
from tidemark.partitions.state_machines.groups.settings import GroupSettings
from tidemark.partitions.state_machines.groups.topic_view import NO_TOPICS, TopicView
from tidemark.partitions.state_machines.groups.waiting import refuse
from tidemark.partitions.state_machines.instant import Instant
from tidemark.partitions.state_machines.token import Token
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.types import ProducerId


class GroupShard(KnownGroups):
    """Groups by id, their committed offsets, and what is on its way to the log."""

    def __init__(
        self,
        settings: GroupSettings,
        *,
        offsets: OffsetTable | None = None,
        groups: Iterable[AnyGroup] = (),
        topics: TopicView = NO_TOPICS,
    ) -> None:
        """An empty shard, or one with what `Replay` found in the log."""
        super().__init__(offsets or OffsetTable(), groups)
        self._settings = settings
        self._topics = Topics(topics, 0)
        self._agenda = Agenda()
        self._unstored: dict[int, Unstored] = {}
        self._next_write = 0
        self._has_resigned = False
        for group in self._groups.values():
            self._agenda.note(group.id, group.wake_ms)

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
            case ConsumerHeartbeat():
                self._beat(group, request, token, turn)
            case Commit():
                self._commit(group, request, token, turn)
            case _ if group is None:
                turn.reply(token, unknown_group(request))
            case _:
                self._ask(group, request, token, turn)
        return self._finish(turn, request.group_id)

    def heartbeat(self, request: Heartbeat, at: Instant) -> ErrorCode:
        """A member is alive; NONE, or what it must do. Answered at once, so without a token."""
        group = self._groups.get(request.group_id)
        match group:
            case None:
                return unknown_member(request.group_id)
            case ClassicGroup():
                return heartbeat.heartbeat(group, request, at.ticks_ms)
            case ConsumerGroup():
                said = classic_members.heartbeat(group, request, self._topics, at.ticks_ms)
                self._agenda.note(group.id, group.wake_ms)
                return said
            case _:
                assert_never(group)

    def tick(self, at: Instant) -> Effects:
        """Do what is due: members that fell silent, phases whose time is up."""
        turn = self._begin(at)
        due = self._agenda.take_due(at.ticks_ms)
        for group_id in due:
            match self._groups.get(group_id):
                case ConsumerGroup() as group:
                    leaving.expire(group, self._topics, turn)
                    writing.write(group, turn)
                case ClassicGroup() as group:
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
            if isinstance(group, ConsumerGroup):
                turn.effects.replies += group.recording.end_all(ErrorCode.NOT_COORDINATOR)
                continue
            for member in group.members.values():
                refuse(group, member, turn, ErrorCode.NOT_COORDINATOR, member.id)
            group.enter(GroupState.DEAD, at.wall_ms)
        for unstored in self._unstored.values():
            refuse_waiting(unstored.then, turn)
        self._groups.clear()
        self._unstored.clear()
        self._agenda = Agenda()
        self._has_resigned = True
        return turn.effects

    def expire_offsets(self, at: Instant) -> Effects:
        """Give up the commits of groups that nobody uses any more, and then the groups."""
        turn = self._begin(at)
        for group in self._groups.values():
            if not is_dead(group):
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

    def topics_changed(self) -> None:
        """Topics are there, gone, or have more partitions: members hear of it as they come."""
        self._topics = Topics(self._topics.view, self._topics.version + 1)

    def _ask(
        self,
        group: AnyGroup,
        request: Sync | Leave | DeleteGroup | DeleteOffsets,
        token: Token,
        turn: Turn,
    ) -> None:
        match request:
            case Sync():
                if isinstance(group, ClassicGroup):
                    sync.sync(group, request, token, turn)
                else:
                    synced = classic_members.sync(group, request, self._topics, turn)
                    writing.answer(group, token, synced, turn)
            case Leave():
                if isinstance(group, ClassicGroup):
                    leave.leave(group, request, token, turn)
                else:
                    left = leaving.remove_all(group, request, self._topics, turn)
                    writing.answer(group, token, left, turn)
            case DeleteGroup():
                deletion.delete_group(group, self._offsets, token, turn)
            case DeleteOffsets():
                deletion.delete_offsets(group, request, self._offsets, token, turn)
            case _:
                assert_never(request)

    def _beat(
        self, group: AnyGroup | None, request: ConsumerHeartbeat, token: Token, turn: Turn
    ) -> None:
        try:
            consumer_heartbeat.check(request, self._settings)
            consumers = conversion.as_consumer_group(group, request, self._topics, turn)
            if request.epoch < JOINING_EPOCH:
                said = leaving.leave(consumers, request, self._topics, turn)
            else:
                said = consumer_heartbeat.heartbeat(consumers, request, self._topics, turn)
        except RequestError as error:
            turn.reply(token, ConsumerHeartbeatAnswer(error=error.code, message=error.message))
            return
        if isinstance(group, ClassicGroup):
            migration.give_way(group, turn)
        self._groups[request.group_id] = consumers
        writing.answer(consumers, token, said, turn)

    def _join(self, group: AnyGroup | None, request: Join, token: Token, turn: Turn) -> None:
        error = join.check(request, self._settings)
        if error is ErrorCode.NONE and group is None and request.member_id != UNKNOWN_MEMBER:
            error = ErrorCode.UNKNOWN_MEMBER_ID
        if group is not None and is_dead(group):
            error = ErrorCode.COORDINATOR_NOT_AVAILABLE
        if error is not ErrorCode.NONE:
            turn.reply(token, JoinAnswer(error=error, member_id=request.member_id))
            return
        if isinstance(group, ConsumerGroup) and group.members:
            joined = classic_members.join(group, request, self._topics, turn)
            writing.answer(group, token, joined, turn)
            return
        if isinstance(group, ConsumerGroup):
            group = self._groups[group.id] = conversion.as_classic_group(group, turn)
        join.join(group or self._add(request.group_id, turn), request, token, turn)

    def _commit(self, group: AnyGroup | None, request: Commit, token: Token, turn: Turn) -> None:
        if not request.group_id and request.generation >= 0:
            turn.reply(token, CommitAnswer(error=ErrorCode.INVALID_GROUP_ID))
        elif group is None and request.generation >= 0:
            # The group was forgotten, or is another coordinator's: its member joins again.
            turn.reply(token, CommitAnswer(error=ErrorCode.ILLEGAL_GENERATION))
        else:
            group = group or self._add(request.group_id, turn)
            commits.commit(group, request, self._topics.view, token, turn)

    def _add(self, group_id: str, turn: Turn) -> ClassicGroup:
        group = self._groups[group_id] = ClassicGroup(group_id, wall_ms=turn.at.wall_ms)
        return group

    def _expire_offsets_of(self, group: AnyGroup, turn: Turn) -> None:
        expired = retention.expired_partitions(
            group,
            self._offsets,
            wall_ms=turn.at.wall_ms,
            retention_ms=self._settings.offsets_retention_ms,
        )
        if is_left(group) and set(expired) == set(self._offsets.partitions(group.id)):
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
        self._go_on(then, records, turn, error)
        return self._finish(turn, *dict.fromkeys(key.group for key, _ in records))

    def _go_on(
        self, then: Then, records: Sequence[LogRecord], turn: Turn, error: ErrorCode
    ) -> None:
        match then:
            case ReplyWhenStored(token, answer):
                turn.reply(token, answer if error is ErrorCode.NONE else answer.refused(error))
            case AssignmentStored():
                sync.stored(then, turn, error)
            case StaticMemberStored():
                static_members.stored(then, turn, error)
            case GroupDeleted():
                self._group_deleted(then, turn, error)
            case GroupRecorded(group):
                writing.written(group, records, error, turn)
            case GroupDowngraded(group):
                classic = migration.downgrade_stored(then, records, error, turn)
                if classic is not None:
                    self._groups[group.id] = classic
            case NothingMore():
                pass
            case _:
                assert_never(then)

    def _group_deleted(self, then: GroupDeleted, turn: Turn, error: ErrorCode) -> None:
        if error is ErrorCode.NONE:
            del self._groups[then.group.id]
        else:
            revive(then.group, turn.at.wall_ms)
        if then.token is not None:
            is_done = error is ErrorCode.NONE
            turn.reply(then.token, then.answer if is_done else then.answer.refused(error))

    def _begin(self, at: Instant) -> Turn:
        assert not self._has_resigned
        return Turn(at, self._settings, self._unstored, self._next_write)

    def _finish(self, turn: Turn, *group_ids: str) -> Effects:
        for group_id in group_ids:
            group = self._groups.get(group_id)
            if isinstance(group, ConsumerGroup):
                migration.begin_downgrade(group, self._topics, turn)
        self._next_write += len(turn.effects.writes)
        for write in turn.effects.writes:
            self._offsets.begin(write.records, write.producer_id)
        for group_id in group_ids:
            group = self._groups.get(group_id)
            if group is None:
                continue
            if is_unused(group) and not self._offsets.has_any(group_id):
                del self._groups[group_id]
            else:
                self._agenda.note(group_id, group.wake_ms)
        return turn.effects
