"""What happens to a coordinator, whichever kind its groups are: writes, failures, failovers."""

from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from tests.partitions.state_machines.groups.driver import (
    GROUP,
    NO_DELAY,
    Coordinator,
    Waiter,
)
from tidemark.partitions.state_machines.groups.consumer.group import ConsumerGroup
from tidemark.protocol.errors import ErrorCode


class CoordinatorUnderFire(RuleBasedStateMachine):
    """A subclass makes `groups`, and adds the clients."""

    groups: Coordinator

    @precondition(lambda self: self.groups.held)
    @rule()
    def store(self) -> None:
        self.groups.store_one()

    @precondition(lambda self: self.groups.held)
    @rule()
    def fail(self) -> None:
        self.groups.fail_one(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    @rule()
    def fail_over(self) -> None:
        """The coordinator resigns, and another one starts from what is in the log."""
        self.groups.take(self.groups.shard.resign(self.groups.now))
        self.check_nobody_waits()
        self.groups.restart()

    def check_nobody_waits(self) -> None:
        assert all(not self.groups.waits(Waiter(n)) for n in range(self.groups.asked))

    def check_restored(self, group: ConsumerGroup) -> ConsumerGroup:
        """The group as another coordinator reads it from the log: in what counts it is the same."""
        other = Coordinator(NO_DELAY, topics=self.groups.topics)
        other.log = self.groups.log
        other.restart()
        restored = other.shard._groups[GROUP]
        assert isinstance(restored, ConsumerGroup)
        assert (restored.members, restored.target) == (group.members, group.target)
        assert (restored.epoch, restored.holders) == (group.epoch, group.holders)
        return restored
