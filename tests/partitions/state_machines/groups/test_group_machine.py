"""A coordinator under any order of requests, deaths, slow writes, failures and restarts."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from tests.partitions.state_machines.groups.driver import GROUP, Coordinator, Waiter
from tests.partitions.state_machines.groups.under_fire import CoordinatorUnderFire
from tidemark.partitions.state_machines.groups.group import ClassicGroup
from tidemark.partitions.state_machines.groups.replay import Replay
from tidemark.partitions.state_machines.groups.requests import (
    CommitAnswer,
    GroupState,
    JoinAnswer,
    Leaver,
    SyncAnswer,
)
from tidemark.partitions.state_machines.groups.settings import GroupSettings
from tidemark.protocol.errors import ErrorCode

PROTOCOLS = st.sampled_from(
    [
        (("range", b"1"),),
        (("range", b"2"),),
        (("range", b"1"), ("sticky", b"1")),
        (("sticky", b"1"), ("range", b"1")),
    ]
)
SLOTS = st.integers(0, 3)
"""Clients. The first two are static members."""
HALF_A_DAY_MS = 43_200_000


class GroupsUnderFire(CoordinatorUnderFire):
    """Clients that know only what they were answered, as real ones do."""

    def __init__(self) -> None:
        super().__init__()
        self.groups = Coordinator(
            GroupSettings(initial_rebalance_delay_ms=2_000, group_members_max=4), holds_writes=True
        )
        self.named = 0
        self.member_ids = [""] * 4
        self.generations = [0] * 4
        self.joins: dict[Waiter, int] = {}
        self.syncs: dict[Waiter, tuple[int, int]] = {}
        self.commits: dict[Waiter, int] = {}
        self.read = 0
        # What each generation's leader assigned first, and who was handed which part of it.
        self.owners: dict[tuple[int, bytes], int] = {}
        self.last: tuple[ClassicGroup, int] | None = None

    def instance_of(self, slot: int) -> str | None:
        return f"static {slot}" if slot < 2 else None

    @rule(slot=SLOTS, protocols=PROTOCOLS, skips=st.booleans(), modern=st.booleans())
    def join(
        self, slot: int, protocols: tuple[tuple[str, bytes], ...], skips: bool, modern: bool
    ) -> None:
        self.named += 1
        waiter = self.groups.join(
            self.member_ids[slot],
            name=f"member {self.named}",
            instance_id=self.instance_of(slot),
            protocols=protocols,
            requires_member_id=modern,
            may_skip_assignment=skips,
        )
        self.joins[waiter] = slot

    @rule(slot=SLOTS)
    def crash(self, slot: int) -> None:
        """The client's process is replaced by one that knows nothing."""
        self.member_ids[slot], self.generations[slot] = "", 0
        for waiter in [w for w, s in self.joins.items() if s == slot]:
            del self.joins[waiter]
        for waiter in [w for w, (s, _) in self.syncs.items() if s == slot]:
            del self.syncs[waiter]

    @rule(slot=SLOTS, stale=st.booleans())
    def sync(self, slot: int, stale: bool) -> None:
        generation = self.generations[slot] - stale
        # Never the same twice: a leader that asks again may have thought again.
        prefix = f"{self.groups.asked} {generation}"
        parts = {member: f"{prefix} {member}".encode() for member in self.groups.members}
        waiter = self.groups.sync(
            self.member_ids[slot], generation, parts, instance_id=self.instance_of(slot)
        )
        self.syncs[waiter] = (slot, generation)

    @rule(slot=SLOTS)
    def heartbeat(self, slot: int) -> None:
        error = self.groups.heartbeat(
            self.member_ids[slot], self.generations[slot], instance_id=self.instance_of(slot)
        )
        if error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            self.member_ids[slot] = ""

    @rule(slot=SLOTS, by_instance=st.booleans())
    def leave(self, slot: int, by_instance: bool) -> None:
        member_id = "" if by_instance else self.member_ids[slot]
        self.groups.leave(Leaver(member_id=member_id, instance_id=self.instance_of(slot)))

    @rule(slot=SLOTS, offset=st.integers(0, 9))
    def commit(self, slot: int, offset: int) -> None:
        waiter = self.groups.commit(
            offset, member_id=self.member_ids[slot], generation=self.generations[slot] or -1
        )
        self.commits[waiter] = offset

    @rule(ms=st.sampled_from([1, 1_000, 5_000, 9_000, 30_000, 70_000]))
    def advance(self, ms: int) -> None:
        self.groups.advance(ms)

    @rule()
    def expire_offsets(self) -> None:
        self.groups.take(self.groups.shard.expire_offsets(self.groups.now))

    @rule()
    def delete(self) -> None:
        self.groups.delete_group()

    @rule()
    def forget_topic(self) -> None:
        self.groups.take(self.groups.shard.forget_topics(frozenset({"orders"}), self.groups.now))

    @invariant()
    def clients_learn_their_answers(self) -> None:
        answers = list(self.groups.answers.items())
        for waiter, answer in answers[self.read :]:
            match answer:
                case JoinAnswer() if waiter in self.joins:
                    self.learn_join(self.joins.pop(waiter), answer)
                case SyncAnswer() if waiter in self.syncs:
                    self.learn_sync(*self.syncs.pop(waiter), answer)
                case CommitAnswer(error=ErrorCode.NONE):
                    assert waiter in self.commits
        self.read = len(answers)

    def learn_join(self, slot: int, answer: JoinAnswer) -> None:
        match answer.error:
            case ErrorCode.NONE:
                self.member_ids[slot] = answer.member_id
                self.generations[slot] = answer.generation
                has_list = answer.leader == answer.member_id
                assert bool(answer.members) == has_list, "the leader, and only it, has the members"
            case ErrorCode.MEMBER_ID_REQUIRED:
                self.member_ids[slot] = answer.member_id
            case ErrorCode.UNKNOWN_MEMBER_ID | ErrorCode.FENCED_INSTANCE_ID:
                self.member_ids[slot] = ""

    def learn_sync(self, slot: int, generation: int, answer: SyncAnswer) -> None:
        if answer.error is ErrorCode.NONE and answer.assignment:
            owner = self.owners.setdefault((generation, answer.assignment), slot)
            assert owner == slot, "one owner for each part of a generation"

    @invariant()
    def generations_grow(self) -> None:
        group = self.group()
        if group is not None and self.last is not None and self.last[0] is group:
            assert group.generation >= self.last[1]
        self.last = None if group is None else (group, group.generation)

    @invariant()
    def a_group_agrees_with_itself(self) -> None:
        group = self.group()
        if group is None:
            return
        members = group.members.values()
        assert group.joining_count == sum(member.is_joining for member in members)
        assert all(id_ == member.id for id_, member in group.members.items())
        assert {m.instance_id: m.id for m in members if m.is_static} == group.static_ids
        assert (group.leader in group.members) == bool(members)
        assert not (set(group.pending) & set(group.members))
        assert set(group.unsynced) <= set(group.members)
        assert group.wake_ms <= group.first_deadline(), "nothing that is due is overlooked"
        if group.state in (GroupState.EMPTY, GroupState.DEAD):
            assert not members
        if group.state in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE):
            assert members
        if group.state is not GroupState.COMPLETING_REBALANCE:
            assert all(member.sync_token is None for member in members)

    @invariant()
    def the_log_gives_the_same_state(self) -> None:
        if self.groups.held:
            return
        replay = Replay()
        for record in self.groups.log:
            replay.apply(record)
        shard = replay.finish(self.groups.settings, self.groups.now)
        assert shard.committed(GROUP) == self.groups.shard.committed(GROUP)
        group = self.group()
        if group is not None and group.state is GroupState.STABLE:
            assert shard.describe(GROUP) == self.groups.shard.describe(GROUP)

    def group(self) -> ClassicGroup | None:
        # The shard shows its groups to nobody; an invariant may look behind that.
        group = self.groups.shard._groups.get(GROUP)
        assert group is None or isinstance(group, ClassicGroup)
        return group

    def teardown(self) -> None:
        """All clients fall silent: every rebalance ends, and everybody who asked is answered."""
        self.groups.store_all()
        self.groups.holds_writes = False
        self.groups.advance(HALF_A_DAY_MS)
        assert self.groups.state() in (GroupState.EMPTY, GroupState.DEAD)
        self.check_nobody_waits()
        assert self.groups.shard.next_deadline_ms is None, "an idle group costs nothing"


TestGroupsUnderFire = GroupsUnderFire.TestCase
TestGroupsUnderFire.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
