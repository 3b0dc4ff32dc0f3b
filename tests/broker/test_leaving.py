"""A broker that is to leave says so in its own log, once nothing keeps it."""

from dataclasses import replace
from uuid import UUID

import pytest
import trio
from trio.testing import MockClock

from tests.broker.neighbours import broker
from tidemark.broker.metadata.introduction import registration
from tidemark.broker.metadata.leaving import LOOK_SECONDS, tell_when_left
from tidemark.partitions.state_machines.cluster import ClusterState
from tidemark.partitions.state_machines.cluster_commands import (
    Command,
    CreateTopic,
    DeleteTopic,
    SetBrokerState,
)
from tidemark.partitions.state_machines.cluster_values import BrokerState
from tidemark.protocol.types import NodeId

ME, OTHER = NodeId(1), NodeId(2)
TOPIC = UUID(int=7)


class World:
    """The metadata, who votes on them, and what the broker has said."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        self.state = ClusterState()
        self.voters = [OTHER]
        self._caplog = caplog
        self._changed = trio.Event()
        for node in (ME, OTHER):
            self.apply(registration(broker(node, directory=node), self.state))

    def apply(self, command: Command) -> None:
        self.state.apply(replace(command, at_version=self.state.version))
        self._changed.set()
        self._changed = trio.Event()

    def create(self) -> None:
        self.apply(
            CreateTopic(
                at_version=0, name="t", id=TOPIC, assignments=((ME,),), configs={}, created_ms=0
            )
        )

    def want(self, state: BrokerState) -> None:
        self.apply(SetBrokerState(at_version=0, node_id=ME, state=state))

    async def wait_more(self) -> None:
        await self._changed.wait()

    async def said(self) -> int:
        """How often, after some looks more."""
        await trio.sleep(3 * LOOK_SECONDS)
        return self._caplog.text.count("broker 1 has been decommissioned and holds nothing")


async def test_it_is_said_once_when_the_last_replica_and_the_vote_are_gone(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(caplog)
    world.create()
    world.voters.append(ME)
    async with trio.open_nursery() as tasks:
        tasks.start_soon(
            lambda: tell_when_left(
                ME, lambda: world.state, lambda: world.voters, wait_more=world.wait_more
            )
        )
        assert await world.said() == 0
        world.want(BrokerState.DECOMMISSIONING)
        assert await world.said() == 0, "it holds a replica"
        world.apply(DeleteTopic(at_version=0, id=TOPIC))
        assert await world.said() == 0, "it votes on the metadata"
        world.voters.remove(ME)
        assert await world.said() == 1
        assert await world.said() == 1
        world.want(BrokerState.ACTIVE)
        assert await world.said() == 1
        world.want(BrokerState.DECOMMISSIONING)
        assert await world.said() == 2
        tasks.cancel_scope.cancel()
