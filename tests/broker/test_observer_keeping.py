"""Observers that topics' configs ask for: who gives them, and when somebody looks for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from uuid import UUID

import pytest
import trio
from trio.testing import MockClock

from tidemark.broker.metadata import observer_keeping
from tidemark.broker.metadata.observer_keeping import keep_placing, missing
from tidemark.partitions.state_machines.cluster import Applied, ClusterState
from tidemark.partitions.state_machines.cluster_commands import (
    Command,
    CreateTopic,
    RegisterBroker,
    SetBrokerState,
)
from tidemark.partitions.state_machines.cluster_values import (
    Assignment,
    BrokerAddress,
    BrokerState,
    PartitionId,
)
from tidemark.partitions.state_machines.topic_configs import OBSERVERS
from tidemark.protocol.types import NodeId

ONE, TWO, THREE, FOUR = map(NodeId, (1, 2, 3, 4))
TOPIC_ID = UUID(int=7)


def nodes(*numbers: int) -> Assignment:
    return tuple(map(NodeId, numbers))


@dataclass
class Metadata:
    """A broker that leads the metadata, and carries commands out at once."""

    state: ClusterState = field(default_factory=ClusterState)
    leads: bool = True
    changed: trio.Event = field(default_factory=trio.Event)

    async def propose(self, decide: Callable[[ClusterState], Command]) -> Applied:
        await trio.lowlevel.checkpoint()
        return self.carry_out(decide(self.state))

    def carry_out(self, command: Command) -> Applied:
        applied = self.state.apply(replace(command, at_version=self.state.version))
        self.changed.set()
        self.changed = trio.Event()
        return applied

    async def wait_more(self) -> None:
        await self.changed.wait()

    def observers(self) -> dict[int, Assignment]:
        topic = self.state.topic("waves")
        assert topic is not None
        return dict(topic.observers)


def metadata(*assignments: Assignment, observers: int, brokers: Iterable[NodeId]) -> Metadata:
    made = Metadata()
    for node in brokers:
        address = BrokerAddress(f"b{node}", 1)
        made.carry_out(
            RegisterBroker(
                at_version=0,
                node_id=node,
                directory_id=UUID(int=node),
                incarnation=1,
                listeners={},
                peer=address,
                rack=None,
            )
        )
    made.carry_out(
        CreateTopic(
            at_version=0,
            name="waves",
            id=TOPIC_ID,
            assignments=assignments,
            configs={OBSERVERS: str(observers)},
            created_ms=0,
        )
    )
    return made


def always(_: NodeId) -> bool:
    return True


async def keep(cluster: Metadata, is_alive: Callable[[NodeId], bool], seconds: float) -> None:
    with trio.move_on_after(seconds):
        await keep_placing(cluster, is_alive, wait_more=cluster.wait_more)


async def test_each_partition_gets_its_observers(autojump_clock: MockClock) -> None:
    cluster = metadata(nodes(1, 2), nodes(2, 3), observers=1, brokers=(ONE, TWO, THREE))
    await keep(cluster, always, 3)
    assert cluster.observers() == {0: nodes(3), 1: nodes(1)}


async def test_a_broker_that_is_to_leave_gives_its_observers_up(autojump_clock: MockClock) -> None:
    cluster = metadata(nodes(1), observers=1, brokers=(ONE, TWO, THREE))
    await keep(cluster, always, 3)
    (before,) = cluster.observers()[0]
    leaving = SetBrokerState(at_version=0, node_id=before, state=BrokerState.DECOMMISSIONING)
    cluster.carry_out(leaving)
    await keep(cluster, always, 3)
    assert cluster.observers() == {0: nodes(*{2, 3} - {before})}


async def test_what_nobody_can_observe_is_looked_at_again_once_something_has_changed(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There may be thousands of partitions that want more observers than there are brokers."""
    looks = list[int]()

    def counted(state: ClusterState, is_alive: Callable[[NodeId], bool]) -> list[PartitionId]:
        looks.append(state.version)
        return missing(state, is_alive)

    monkeypatch.setattr(observer_keeping, "missing", counted)
    cluster = metadata(nodes(1), observers=5, brokers=(ONE, TWO, THREE))
    alive = {ONE, TWO}
    async with trio.open_nursery() as tasks:
        tasks.start_soon(keep, cluster, alive.__contains__, 300)
        await trio.sleep(100)
        assert cluster.observers() == {0: nodes(2)}
        assert len(looks) == 2, "it had been placed, and then there was nothing to do"
        alive.add(THREE)
        await trio.sleep(100)
        assert cluster.observers() == {0: nodes(2, 3)}
        assert len(looks) == 4


async def test_who_held_a_partition_by_an_earlier_wish_does_not_observe_it() -> None:
    """It may vote by now, and a command that had it observe would be refused, again and again."""
    cluster = metadata(nodes(1), observers=1, brokers=(ONE, TWO, THREE, FOUR))
    topic = cluster.state.topic("waves")
    assert topic is not None
    held = replace(topic, wanted={0: nodes(3)}, wanted_at={0: 1}, leaving={0: nodes(2)})
    cluster.state._topics.put(held)
    await observer_keeping._place_all(cluster, always)
    assert cluster.observers() == {0: nodes(4)}
