"""Members of the consumer protocol that know only what they were answered, as real ones do."""

from dataclasses import replace
from uuid import UUID

from tests.partitions.state_machines.groups.driver import GROUP, Coordinator, Waiter
from tidemark.partitions.state_machines.groups.consumer.group import (
    ConsumerGroup,
    ConsumerGroupState,
)
from tidemark.partitions.state_machines.groups.requests import (
    ConsumerHeartbeat,
    ConsumerHeartbeatAnswer,
)
from tidemark.partitions.state_machines.groups.topic_view import (
    FixedTopics,
    Partitions,
    TopicFacts,
    TopicIdPartition,
)
from tidemark.protocol.errors import ErrorCode

SESSION_MS = 45_000
REBALANCE_MS = 60_000


def topic_id(name: str) -> UUID:
    return UUID(bytes=name.encode().ljust(16, b"\0")[:16])


def topics(**partitions: int) -> FixedTopics:
    return FixedTopics(
        {name: TopicFacts(topic_id(name), count) for name, count in partitions.items()}
    )


def parts(name: str, *numbers: int) -> Partitions:
    return frozenset(TopicIdPartition(topic_id(name), number) for number in numbers)


class Member:
    """One client. `owned` is what it reads, by what it was told."""

    def __init__(
        self,
        coordinator: Coordinator,
        name: str,
        *,
        instance_id: str | None = None,
        reads: tuple[str, ...] = ("orders",),
        pattern: str | None = None,
        assignor: str | None = None,
        group_id: str = GROUP,
    ) -> None:
        self.coordinator = coordinator
        self.id = name
        self.epoch = 0
        self.owned: Partitions = frozenset()
        self.error = ErrorCode.NONE
        self.message: str | None = None
        self.interval_ms = 0
        self.full = ConsumerHeartbeat(
            group_id=group_id,
            member_id=name,
            epoch=0,
            instance_id=instance_id,
            client_id="client",
            client_host="/127.0.0.1",
            rebalance_timeout_ms=REBALANCE_MS,
            topics=frozenset(reads),
            pattern=pattern,
            assignor=assignor,
            owned=frozenset(),
        )

    def request(self, *, full: bool = False, says_owned: bool = True) -> ConsumerHeartbeat:
        owned = self.owned if says_owned else None
        if full or self.epoch == 0:
            return replace(self.full, epoch=self.epoch, owned=self.owned)
        return ConsumerHeartbeat(
            group_id=self.full.group_id,
            member_id=self.id,
            epoch=self.epoch,
            instance_id=self.full.instance_id,
            client_id="client",
            client_host="/127.0.0.1",
            owned=owned,
        )

    def send(self, *, full: bool = False, says_owned: bool = True) -> Waiter:
        return self.coordinator.ask(self.request(full=full, says_owned=says_owned))

    def beat(self, *, full: bool = False, says_owned: bool = True) -> ErrorCode:
        """A heartbeat, and its answer taken in."""
        return self.take(self.send(full=full, says_owned=says_owned))

    def take(self, waiter: Waiter) -> ErrorCode:
        answer = self.coordinator.answers[waiter]
        assert isinstance(answer, ConsumerHeartbeatAnswer)
        self.error, self.message = answer.error, answer.message
        if answer.error is ErrorCode.NONE:
            self.epoch, self.interval_ms = answer.epoch, answer.heartbeat_interval_ms
            if answer.assignment is not None:
                self.owned = answer.assignment
        elif answer.error in (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID):
            self.epoch, self.owned = 0, frozenset()
        return self.error

    def leaving(self, *, for_a_while: bool = False) -> ConsumerHeartbeat:
        return replace(self.request(), epoch=-2 if for_a_while else -1)

    def leave(self, *, for_a_while: bool = False) -> ErrorCode:
        waiter = self.coordinator.ask(self.leaving(for_a_while=for_a_while))
        answer = self.coordinator.answers[waiter]
        self.owned = frozenset()
        return answer.error


def settle(*members: Member, rounds: int = 8) -> None:
    """Heartbeats until all have come where they are to be."""
    for _ in range(rounds):
        for member in members:
            member.beat()


def group_of(coordinator: Coordinator, group_id: str = GROUP) -> ConsumerGroup:
    # The shard shows its groups to nobody; a test may look behind that.
    group = coordinator.shard._groups[group_id]
    assert isinstance(group, ConsumerGroup)
    return group


def state(groups: Coordinator) -> ConsumerGroupState:
    described = groups.shard.describe_consumer(GROUP)
    assert described is not None
    return described.state


def reasons(groups: Coordinator) -> list[str]:
    rebalances = groups.shard.rebalances(GROUP)
    assert rebalances is not None
    return [reason for each in rebalances for reason in each.reasons]
