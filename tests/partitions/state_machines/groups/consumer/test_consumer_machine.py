"""Groups of the consumer protocol under any order of heartbeats, losses, deaths and failovers."""

from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from tests.partitions.state_machines.groups.consumer.clients import (
    REBALANCE_MS,
    Member,
    settle,
    topics,
)
from tests.partitions.state_machines.groups.driver import GROUP, NO_DELAY, Coordinator, Waiter
from tests.partitions.state_machines.groups.under_fire import CoordinatorUnderFire
from tidemark.partitions.state_machines.groups.consumer.group import (
    ConsumerGroup,
    ConsumerGroupState,
)
from tidemark.partitions.state_machines.groups.topic_view import TopicIdPartition

SLOTS = st.integers(0, 3)
"""Clients. The first two are static members."""
TOPICS = st.fixed_dictionaries({"orders": st.integers(1, 6), "clicks": st.integers(0, 3)})


class ConsumersUnderFire(CoordinatorUnderFire):
    def __init__(self) -> None:
        super().__init__()
        self.groups = Coordinator(NO_DELAY, topics=topics(orders=4), holds_writes=True)
        self.named = 0
        self.slots = [self.fresh(slot) for slot in range(4)]
        self.asked: dict[int, Waiter] = {}
        self.looks = 0
        # What the invariants have seen: when a client first believed under an epoch that it had a
        # partition, and when one last did under any.
        self.believed: dict[tuple[str, int, TopicIdPartition], int] = {}
        self.last_read: dict[tuple[TopicIdPartition, str], int] = {}

    def fresh(self, slot: int, reads: tuple[str, ...] = ("orders", "clicks")) -> Member:
        self.named += 1
        instance_id = f"static {slot}" if slot < 2 else None
        return Member(self.groups, f"member {self.named}", instance_id=instance_id, reads=reads)

    @rule(slot=SLOTS, full=st.booleans(), says_owned=st.booleans())
    def beat(self, slot: int, full: bool, says_owned: bool) -> None:
        """One heartbeat at a time; a client that gives up on one asks anew, with all it knows."""
        self.asked[slot] = self.slots[slot].send(
            full=full or slot in self.asked, says_owned=says_owned
        )

    @rule(slot=SLOTS)
    def lose_the_answer(self, slot: int) -> None:
        waiter = self.asked.get(slot)
        if waiter is not None and not self.groups.waits(waiter):
            self.asked[slot] = self.slots[slot].send(full=True)

    @rule(slot=SLOTS, reads=st.sampled_from([("orders",), ("orders", "clicks"), ("clicks",)]))
    def crash(self, slot: int, reads: tuple[str, ...]) -> None:
        """The client's process is replaced by one that knows nothing, under another id."""
        self.asked.pop(slot, None)
        self.slots[slot] = self.fresh(slot, reads)

    @rule(slot=SLOTS, for_a_while=st.booleans())
    def leave(self, slot: int, for_a_while: bool) -> None:
        member = self.slots[slot]
        self.asked.pop(slot, None)
        request = member.request()
        epoch = -2 if for_a_while and slot < 2 else -1
        self.groups.ask(replace(request, epoch=epoch))
        self.slots[slot] = self.fresh(slot)

    @rule(found=TOPICS)
    def topics_change(self, found: dict[str, int]) -> None:
        self.groups.set_topics(topics(**{name: n for name, n in found.items() if n}))

    @rule(ms=st.sampled_from([1, 1_000, 20_000, REBALANCE_MS]))
    def advance(self, ms: int) -> None:
        self.groups.advance(ms)

    @invariant()
    def clients_learn_their_answers(self) -> None:
        for slot, waiter in list(self.asked.items()):
            if not self.groups.waits(waiter):
                del self.asked[slot]
                self.slots[slot].take(waiter)

    @invariant()
    def nobody_reads_what_another_member_reads(self) -> None:
        group = self.group()
        if group is None:
            return
        members = [member for member in self.slots if member.id in group.members and member.epoch]
        owned = [partition for member in members for partition in member.owned]
        assert len(owned) == len(set(owned))
        for member in members:
            # What a member believes to have is held for it, until it says otherwise itself.
            assert member.owned <= group.members[member.id].held or self.is_behind(member)

    def is_behind(self, member: Member) -> bool:
        """Whether an answer is on its way to the member that takes something away."""
        return self.slots.index(member) in self.asked

    @invariant()
    def a_group_agrees_with_itself(self) -> None:
        group = self.group()
        if group is None:
            return
        held = {p: m.id for m in group.members.values() for p in m.held}
        assert held == group.holders
        assert sum(len(m.held) for m in group.members.values()) == len(held)
        assert all(m.assigned.isdisjoint(m.revoking) for m in group.members.values())
        assert group.target.keys() == group.members.keys() == group.sessions.keys()
        assert {m.instance_id: m.id for m in group.members.values() if m.instance_id} == (
            group.static_ids
        )
        assert group.epoch == group.target_epoch
        assert group.wake_ms <= group.first_deadline(), "nothing that is due is overlooked"

    @invariant()
    def an_older_epoch_is_good_for_what_nobody_else_has_read_since(self) -> None:
        """KIP-1251: what a client commits under it, of what it had then."""
        self.looks += 1
        for client in self.slots:
            for partition in client.owned:
                self.believed.setdefault((client.id, client.epoch, partition), self.looks)
                self.last_read[partition, client.id] = self.looks
        group = self.group()
        for (member_id, epoch, partition), look in self.believed.items():
            member = None if group is None else group.members.get(member_id)
            if member is not None and member.has_held([partition], since=epoch):
                others = [
                    at
                    for (read, reader), at in self.last_read.items()
                    if read == partition and reader != member_id
                ]
                assert not others or max(others) < look

    @invariant()
    def the_log_gives_the_same_state(self) -> None:
        group = self.group()
        if group is None or self.groups.held or group.recording.is_touched:
            return
        restored = self.check_restored(group)
        for member in group.members.values():
            again = restored.members[member.id]
            assert all(again.held_since(each) == member.held_since(each) for each in member.held)
        assert not restored.recording.unsure

    def group(self) -> ConsumerGroup | None:
        # The shard shows its groups to nobody; an invariant may look behind that.
        group = self.groups.shard._groups.get(GROUP)
        assert group is None or isinstance(group, ConsumerGroup)
        return group

    def teardown(self) -> None:
        """All that live beat on: everything is read, by somebody each; then all fall silent."""
        self.groups.store_all()
        self.groups.holds_writes = False
        self.clients_learn_their_answers()
        self.groups.advance(REBALANCE_MS)
        settle(*self.slots, rounds=20)
        described = self.groups.shard.describe_consumer(GROUP)
        assert described is not None
        assert described.state is ConsumerGroupState.STABLE
        read = [partition for member in self.slots for partition in member.owned]
        assert (
            len(read)
            == len(set(read))
            == len({p for each in described.members for p in each.target})
        )
        self.groups.advance(REBALANCE_MS)
        self.check_nobody_waits()
        described = self.groups.shard.describe_consumer(GROUP)
        assert described is not None
        assert described.state is ConsumerGroupState.EMPTY
        assert self.groups.shard.next_deadline_ms is None, "an idle group costs nothing"


TestConsumersUnderFire = ConsumersUnderFire.TestCase
TestConsumersUnderFire.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
