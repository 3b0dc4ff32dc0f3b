"""Any request to a group, of either protocol, under any identity and of any age: each is answered,
and the group agrees with itself and with its log."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.partitions.state_machines.groups.consumer.clients import topics
from tests.partitions.state_machines.groups.driver import GROUP, NO_DELAY, Coordinator, Waiter
from tidemark.partitions.state_machines.groups.consumer.group import ConsumerGroup
from tidemark.partitions.state_machines.groups.group import ClassicGroup
from tidemark.partitions.state_machines.groups.kinds import AnyGroup
from tidemark.partitions.state_machines.groups.requests import (
    ConsumerHeartbeat,
    DeleteGroup,
    Leave,
    Leaver,
)
from tidemark.protocol.consumer_protocol import Subscription, encode_subscription
from tidemark.protocol.errors import ErrorCode

NAMES = st.sampled_from(["", "a", "b", "c"])
INSTANCES = st.sampled_from([None, "x", "y"])
TIMEOUTS = st.sampled_from([0, 1, 10_000, 60_000, 2**31 - 1])
READS = st.sampled_from([("orders",), ("orders", "clicks"), ("nothing",)])
EPOCHS = st.sampled_from([0, 0, 1, 2, 3, -1, -2, 2**31 - 1])


class AnyIdentity(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.groups = Coordinator(NO_DELAY, topics=topics(orders=4, clicks=2), holds_writes=True)

    @rule(name=NAMES, instance=INSTANCES, timeout_ms=TIMEOUTS, reads=READS, asks_id=st.booleans())
    def join(
        self,
        name: str,
        instance: str | None,
        timeout_ms: int,
        reads: tuple[str, ...],
        asks_id: bool,
    ) -> None:
        self.groups.join(
            name,
            name="abc"[self.groups.asked % 3] + "'" * (self.groups.asked // 3),
            instance_id=instance,
            protocols=(("range", encode_subscription(Subscription(topics=reads))),),
            rebalance_ms=timeout_ms,
            requires_member_id=asks_id,
        )

    @rule(name=NAMES, instance=INSTANCES, epoch=EPOCHS, timeout_ms=TIMEOUTS, reads=READS)
    def beat(
        self,
        name: str,
        instance: str | None,
        epoch: int,
        timeout_ms: int,
        reads: tuple[str, ...],
    ) -> None:
        request = ConsumerHeartbeat(
            group_id=GROUP,
            member_id=name,
            instance_id=instance,
            epoch=epoch,
            rebalance_timeout_ms=timeout_ms,
            topics=frozenset(reads),
            owned=frozenset(),
        )
        self.groups.ask(request)

    @rule(name=NAMES, instance=INSTANCES, generation=EPOCHS)
    def sync(self, name: str, instance: str | None, generation: int) -> None:
        self.groups.sync(name, generation, instance_id=instance)
        self.groups.heartbeat(name, generation, instance_id=instance)

    @rule(name=NAMES, instance=INSTANCES)
    def leave(self, name: str, instance: str | None) -> None:
        leaver = Leaver(member_id=name, instance_id=instance)
        self.groups.ask(Leave(group_id=GROUP, leavers=(leaver,)))

    @rule()
    def delete(self) -> None:
        self.groups.ask(DeleteGroup(group_id=GROUP))

    @rule(ms=st.sampled_from([1, 1_000, 60_000]))
    def advance(self, ms: int) -> None:
        self.groups.advance(ms)

    @precondition(lambda self: self.groups.held)
    @rule(is_stored=st.booleans())
    def end_write(self, is_stored: bool) -> None:
        if is_stored:
            self.groups.store_one()
        else:
            self.groups.fail_one(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    @invariant()
    def an_instance_is_one_member(self) -> None:
        group = self.group()
        if group is not None:
            instances = {m.instance_id: m.id for m in group.members.values()}
            instances.pop(None, None)
            assert group.static_ids == instances

    @invariant()
    def nobody_waits_while_nothing_is_to_come(self) -> None:
        if self.groups.held or self.groups.shard.next_deadline_ms is not None:
            return
        assert not any(self.groups.waits(Waiter(n)) for n in range(self.groups.asked))

    @invariant()
    def the_log_says_who_is_in_a_group_at_rest(self) -> None:
        group = self.group()
        if self.groups.held or (group is not None and not self.is_at_rest(group)):
            return
        other = Coordinator(NO_DELAY, topics=self.groups.topics)
        other.log = self.groups.log
        other.restart()
        restored = other.shard._groups.get(GROUP)
        if group is None:
            assert restored is None or not restored.members
        else:
            assert restored is not None
            assert restored.static_ids == group.static_ids
            assert restored.members.keys() == group.members.keys()

    def is_at_rest(self, group: AnyGroup) -> bool:
        if isinstance(group, ConsumerGroup):
            return not group.recording.is_touched
        return group.state.value == "Stable"

    def group(self) -> AnyGroup | None:
        # The shard shows its groups to nobody; an invariant may look behind that.
        group = self.groups.shard._groups.get(GROUP)
        assert group is None or isinstance(group, ClassicGroup | ConsumerGroup)
        return group

    def teardown(self) -> None:
        self.groups.take(self.groups.shard.resign(self.groups.now))
        assert not any(self.groups.waits(Waiter(n)) for n in range(self.groups.asked))


AnyIdentity.TestCase.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
TestAnyIdentity = AnyIdentity.TestCase
