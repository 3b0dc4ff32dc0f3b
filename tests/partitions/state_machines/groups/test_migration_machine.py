"""Members of both protocols in one group, under any order of requests, deaths and failovers."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from tests.partitions.state_machines.groups.consumer.classic_clients import (
    COOPERATIVE,
    EAGER,
    ClassicMember,
)
from tests.partitions.state_machines.groups.consumer.clients import Member, topics
from tests.partitions.state_machines.groups.driver import (
    GROUP,
    NO_DELAY,
    REBALANCE_MS,
    Coordinator,
    Waiter,
)
from tests.partitions.state_machines.groups.under_fire import CoordinatorUnderFire
from tidemark.partitions.state_machines.groups.consumer.group import ConsumerGroup
from tidemark.partitions.state_machines.groups.group import ClassicGroup
from tidemark.partitions.state_machines.groups.requests import Leave, Leaver
from tidemark.protocol.errors import ErrorCode

SLOTS = st.integers(0, 3)
"""Clients. The first is a static member."""


class MigrationUnderFire(CoordinatorUnderFire):
    assignor = EAGER

    def __init__(self) -> None:
        super().__init__()
        self.groups = Coordinator(NO_DELAY, topics=topics(orders=4), holds_writes=True)
        self.named = 0
        self.slots: list[Member | ClassicMember] = [self.fresh(slot, False) for slot in range(4)]
        self.asked: dict[int, Waiter] = {}

    def fresh(self, slot: int, is_consumer: bool) -> Member | ClassicMember:
        self.named += 1
        name, instance_id = f"member {self.named}", "static" if slot == 0 else None
        if is_consumer:
            return Member(self.groups, name, instance_id=instance_id)
        return ClassicMember(self.groups, name, assignor=self.assignor, instance_id=instance_id)

    @rule(slot=SLOTS)
    def turn(self, slot: int) -> None:
        """A client does what is next; one of the consumer protocol has one request on its way."""
        match self.slots[slot]:
            case ClassicMember() as member:
                member.turn()
            case Member() as member if slot not in self.asked:
                # After an error, and a refusal is one, a client says all that it knows.
                self.asked[slot] = member.send(full=member.error is not ErrorCode.NONE)

    @rule()
    def all_turn(self) -> None:
        for slot in range(4):
            self.turn(slot)
            self.clients_learn_their_answers()

    @rule(slot=SLOTS, is_consumer=st.booleans(), leaves=st.booleans())
    def restart_client(self, slot: int, is_consumer: bool, leaves: bool) -> None:
        """The process is replaced by one that may speak the other protocol."""
        member = self.slots[slot]
        self.asked.pop(slot, None)
        if leaves and isinstance(member, ClassicMember):
            self.groups.ask(Leave(group_id=GROUP, leavers=(Leaver(member_id=member.id),)))
        elif leaves and isinstance(member, Member):
            self.groups.ask(member.leaving())
        self.slots[slot] = self.fresh(slot, is_consumer)

    @rule()
    def partitions_are_added(self) -> None:
        before = self.groups.topics.topics["orders"].partitions
        self.groups.set_topics(topics(orders=before + 1))

    @rule(ms=st.sampled_from([1, 1_000, 9_000, REBALANCE_MS]))
    def advance(self, ms: int) -> None:
        self.groups.advance(ms)

    @invariant()
    def clients_learn_their_answers(self) -> None:
        for slot, member in enumerate(self.slots):
            if isinstance(member, ClassicMember):
                member.take()
            elif slot in self.asked and not self.groups.waits(self.asked[slot]):
                member.take(self.asked.pop(slot))

    @invariant()
    def nobody_reads_what_another_member_reads(self) -> None:
        group = self.group()
        if group is None:
            return
        members = [m for m in self.slots if m.id in group.members]
        owned = [partition for member in members for partition in member.owned]
        assert len(owned) == len(set(owned))

    @invariant()
    def a_group_agrees_with_itself(self) -> None:
        group = self.group()
        if not isinstance(group, ConsumerGroup):
            return
        assert {p: m.id for m in group.members.values() for p in m.held} == group.holders
        assert group.target.keys() == group.members.keys() == group.sessions.keys()
        assert group.rounds.keys() <= group.members.keys()
        assert group.wake_ms <= group.first_deadline(), "nothing that is due is overlooked"

    @invariant()
    def the_log_gives_the_same_state(self) -> None:
        group = self.group()
        if self.groups.held or not isinstance(group, ConsumerGroup) or group.recording.is_touched:
            return
        self.check_restored(group)

    def group(self) -> ClassicGroup | ConsumerGroup | None:
        # The shard shows its groups to nobody; an invariant may look behind that.
        return self.groups.shard._groups.get(GROUP)

    def teardown(self) -> None:
        """All that live go on: everything is read, by one each."""
        self.groups.store_all()
        self.groups.holds_writes = False
        for _ in range(12):
            self.groups.advance(9_000)
            for _ in range(4):
                self.all_turn()
        read = [partition for member in self.slots for partition in member.owned]
        assert len(read) == len(set(read)) == self.groups.topics.topics["orders"].partitions
        has_consumers = any(isinstance(member, Member) for member in self.slots)
        assert isinstance(self.group(), ConsumerGroup) == has_consumers


class CooperativeMigrationUnderFire(MigrationUnderFire):
    assignor = COOPERATIVE


TestMigrationUnderFire = MigrationUnderFire.TestCase
TestMigrationUnderFire.settings = settings(max_examples=25, stateful_step_count=40, deadline=None)
TestCooperativeMigrationUnderFire = CooperativeMigrationUnderFire.TestCase
TestCooperativeMigrationUnderFire.settings = TestMigrationUnderFire.settings
