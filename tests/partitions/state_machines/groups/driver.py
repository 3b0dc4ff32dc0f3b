"""A coordinator's shard with a log and a clock that a test moves by hand."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from tidemark.partitions.state_machines.groups.effects import (
    Effects,
    LogRecord,
    Write,
)
from tidemark.partitions.state_machines.groups.replay import Replay
from tidemark.partitions.state_machines.groups.requests import (
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
    Leaver,
    OffsetToCommit,
    Request,
    Sync,
    SyncAnswer,
)
from tidemark.partitions.state_machines.groups.settings import GroupSettings
from tidemark.partitions.state_machines.groups.shard import GroupShard
from tidemark.partitions.state_machines.groups.topic_view import FixedTopics
from tidemark.partitions.state_machines.instant import Instant
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages.consumer_offsets import CoordinatorKey
from tidemark.protocol.types import TopicPartition

AnswerT = TypeVar("AnswerT", bound=Answer)

GROUP = "group"
SESSION_MS = 10_000
REBALANCE_MS = 60_000
NO_DELAY = GroupSettings(initial_rebalance_delay_ms=0)
RANGE = (("range", b"range metadata"),)
OTHER = (("range", b"other metadata"),)


@dataclass(frozen=True)
class Waiter:
    """A token that says in a failing test whose it is."""

    number: int


class Coordinator:
    """Writes are stored at once, unless `holds_writes`: then by `store_all` and its kin."""

    def __init__(
        self,
        settings: GroupSettings = NO_DELAY,
        *,
        holds_writes: bool = False,
        topics: FixedTopics | None = None,
    ) -> None:
        self.settings = settings
        self.topics = topics or FixedTopics({})
        self.shard = GroupShard(settings, topics=self.topics)
        self.holds_writes = holds_writes
        self.ticks_ms = 0
        self.answers: dict[Waiter, Answer] = {}
        self.asked = 0
        self.held: list[Write] = []
        self.log: list[LogRecord] = []

    @property
    def now(self) -> Instant:
        return Instant(ticks_ms=self.ticks_ms, wall_ms=1_700_000_000_000 + self.ticks_ms)

    def ask(self, request: Request) -> Waiter:
        waiter = Waiter(self.asked)
        self.asked += 1
        self.take(self.shard.step(request, waiter, self.now))
        return waiter

    def take(self, effects: Effects) -> None:
        for reply in effects.replies:
            assert isinstance(reply.token, Waiter)
            assert reply.token not in self.answers, "a request is answered once"
            self.answers[reply.token] = reply.answer
        self.held += effects.writes
        if not self.holds_writes:
            self.store_all()

    def store_all(self) -> None:
        while self.held:
            self.store_one()

    def store_one(self) -> None:
        write = self.held.pop(0)
        self.log += write.records
        self.take(self.shard.stored(write.number, self.now))

    def fail_one(self, error: ErrorCode) -> None:
        self.take(self.shard.not_stored(self.held.pop(0).number, error, self.now))

    def advance(self, ms: int) -> None:
        """Let time pass, and have everything done that becomes due on the way."""
        end = self.ticks_ms + ms
        while (due := self.shard.next_deadline_ms) is not None and due <= end:
            self.ticks_ms = max(self.ticks_ms, due)
            self.take(self.shard.tick(self.now))
        self.ticks_ms = end

    def restart(self) -> None:
        """Another broker takes over, with nothing but the last record of each key in the log."""
        latest: dict[CoordinatorKey, LogRecord] = {}
        for record in self.log:
            latest.pop(record.key, None)
            latest[record.key] = record
        replay = Replay()
        for record in latest.values():
            replay.apply(record)
        self.held.clear()
        self.shard = replay.finish(self.settings, self.now, self.topics)

    def set_topics(self, topics: FixedTopics) -> None:
        """The topics are others from now on."""
        self.topics.topics = topics.topics
        self.shard.topics_changed()

    def waits(self, waiter: Waiter) -> bool:
        return waiter not in self.answers

    def joined(self, waiter: Waiter) -> JoinAnswer:
        return self._answer(waiter, JoinAnswer)

    def synced(self, waiter: Waiter) -> SyncAnswer:
        return self._answer(waiter, SyncAnswer)

    def committed(self, waiter: Waiter) -> CommitAnswer:
        return self._answer(waiter, CommitAnswer)

    def deleted(self, waiter: Waiter) -> DeleteAnswer:
        return self._answer(waiter, DeleteAnswer)

    def _answer(self, waiter: Waiter, kind: type[AnswerT]) -> AnswerT:
        answer = self.answers[waiter]
        assert isinstance(answer, kind)
        return answer

    def state(self) -> GroupState:
        description = self.shard.describe(GROUP)
        return GroupState.DEAD if description is None else description.state

    @property
    def members(self) -> list[str]:
        description = self.shard.describe(GROUP)
        return [] if description is None else [m.member_id for m in description.members]

    # What clients do, with everything that a test does not care about filled in.

    def join(
        self,
        member_id: str = "",
        *,
        name: str = "new",
        instance_id: str | None = None,
        protocols: tuple[tuple[str, bytes], ...] = RANGE,
        protocol_type: str = "consumer",
        group_id: str = GROUP,
        session_ms: int = SESSION_MS,
        rebalance_ms: int = REBALANCE_MS,
        requires_member_id: bool = False,
        may_skip_assignment: bool = True,
    ) -> Waiter:
        """`name` becomes the member's id if it has none."""
        return self.ask(
            Join(
                group_id=group_id,
                member_id=member_id,
                instance_id=instance_id,
                client_id="client",
                client_host="/127.0.0.1",
                protocol_type=protocol_type,
                protocols=protocols,
                session_timeout_ms=session_ms,
                rebalance_timeout_ms=rebalance_ms,
                new_member_id=name,
                requires_member_id=requires_member_id,
                may_skip_assignment=may_skip_assignment,
            )
        )

    def sync(
        self,
        member_id: str,
        generation: int,
        assignments: dict[str, bytes] | None = None,
        *,
        instance_id: str | None = None,
        protocol_type: str | None = None,
        protocol: str | None = None,
    ) -> Waiter:
        return self.ask(
            Sync(
                group_id=GROUP,
                member_id=member_id,
                instance_id=instance_id,
                generation=generation,
                protocol_type=protocol_type,
                protocol=protocol,
                assignments=assignments or {},
            )
        )

    def heartbeat(
        self, member_id: str, generation: int, *, instance_id: str | None = None
    ) -> ErrorCode:
        request = Heartbeat(
            group_id=GROUP, member_id=member_id, instance_id=instance_id, generation=generation
        )
        return self.shard.heartbeat(request, self.now)

    def leave(self, *leavers: Leaver | str) -> list[ErrorCode]:
        named = tuple(Leaver(member_id=who) if isinstance(who, str) else who for who in leavers)
        answer = self._answer(self.ask(Leave(group_id=GROUP, leavers=named)), LeaveAnswer)
        return [error for _, error in answer.members]

    def commit(
        self,
        offset: int,
        *,
        member_id: str = "",
        generation: int = -1,
        topic: str = "orders",
        partitions: Sequence[int] = (0,),
        metadata: str = "",
        leader_epoch: int = -1,
        retention_ms: int = -1,
        group_id: str = GROUP,
    ) -> Waiter:
        to_commit = OffsetToCommit(offset=offset, leader_epoch=leader_epoch, metadata=metadata)
        return self.ask(
            Commit(
                group_id=group_id,
                generation=generation,
                member_id=member_id,
                offsets={TopicPartition(topic, number): to_commit for number in partitions},
                retention_ms=retention_ms,
            )
        )

    def committed_offset(self, topic: str = "orders") -> int | None:
        found = self.shard.committed(GROUP).get(TopicPartition(topic, 0))
        return None if found is None else found.offset

    def delete_group(self) -> Waiter:
        return self.ask(DeleteGroup(group_id=GROUP))

    def delete_offset(self, topic: str = "orders") -> Waiter:
        return self.ask(DeleteOffsets(group_id=GROUP, partitions=(TopicPartition(topic, 0),)))

    def form(self, *names: str, instance_ids: bool = False) -> int:
        """A stable group of members with these names; the generation it reached.

        With `instance_ids` they are static members of the same names.
        """
        first, *others = names
        self.join(name=first, instance_id=first if instance_ids else None)
        for name in others:
            self.join(name=name, instance_id=name if instance_ids else None)
        generation = self._rejoin_all(names, instance_ids=instance_ids)
        self.sync_all(names, generation, instance_ids=instance_ids)
        assert self.state() is GroupState.STABLE
        return generation

    def _rejoin_all(self, names: Iterable[str], *, instance_ids: bool) -> int:
        waiters = [self.join(name, instance_id=name if instance_ids else None) for name in names]
        return self.joined(waiters[-1]).generation

    def sync_all(
        self, names: Iterable[str], generation: int, *, instance_ids: bool = False
    ) -> None:
        assignments = {name: f"{name}'s part".encode() for name in names}
        for name in assignments:
            instance_id = name if instance_ids else None
            self.sync(name, generation, assignments, instance_id=instance_id)
