"""Who the other brokers are, where a number passes from one broker to another."""

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

import pytest
import trio

from tests.broker.neighbours import broker
from tests.broker.nodes import NoNetwork
from tidemark.broker.background import open_background
from tidemark.broker.config import BrokerSettings
from tidemark.broker.metadata.identity import stored_peers
from tidemark.broker.metadata.introduction import registration
from tidemark.broker.metadata.neighbours import Neighbours
from tidemark.broker.metrics import Metrics
from tidemark.broker.network.odd_events import OddEvents
from tidemark.broker.network.timers import Timers
from tidemark.broker.network.turn import Turn
from tidemark.broker.node import SystemClock
from tidemark.broker.peers.hello import Peer
from tidemark.broker.replicas.replica_parts import ReplicaServices
from tidemark.broker.replicas.services import open_services
from tidemark.partitions.state_machines.cluster import ClusterState
from tidemark.partitions.state_machines.cluster_commands import Command, UnregisterBroker
from tidemark.partitions.state_machines.cluster_machine import Outcome
from tidemark.partitions.state_machines.cluster_values import BrokerMetadata
from tidemark.partitions.storage.os_files import OsFiles
from tidemark.protocol.errors import StorageError
from tidemark.protocol.messages.peer.join import JoinResponse, PeerBroker
from tidemark.protocol.types import ORIGIN, NodeId

ME, OTHER = NodeId(1), NodeId(3)


OWN = broker(ME, directory=1, incarnation=2)
OLD, NEW = broker(OTHER, directory=3, incarnation=5), broker(OTHER, directory=4)


class Told(NoNetwork):
    """Keeps what it was told."""

    def __init__(self) -> None:
        super().__init__()
        self.peers: list[dict[NodeId, Peer]] = []

    def set_peers(self, peers: Mapping[NodeId, Peer]) -> None:
        self.peers.append(dict(peers))


@dataclass
class World:
    """The neighbours of one broker, and the metadata that it goes by."""

    services: ReplicaServices
    neighbours: Neighbours
    network: Told
    state: ClusterState = field(default_factory=ClusterState)

    def apply(self, command: Command) -> None:
        result = self.state.apply(command)
        self.neighbours.applied(Outcome(ORIGIN, command, result))

    def register(self, broker: BrokerMetadata) -> None:
        self.apply(registration(broker, self.state))

    def unregister(self, node: NodeId) -> None:
        self.apply(UnregisterBroker(at_version=self.state.version, node_id=node))

    def be_current(self) -> None:
        self.neighbours.current(self.state)

    def is_heard(self, broker: BrokerMetadata) -> bool:
        """Whether that process is known to live once there is a connection with it."""
        self.services.driver.peer_up(broker.node_id, broker.incarnation)
        peers = self.services.driver.node.peers
        return peers.is_alive(broker.node_id) and (
            peers.incarnation(broker.node_id) == broker.incarnation
        )

    async def why_it_ends(self) -> str | None:
        """None if it does not."""
        with trio.move_on_after(0.05):
            try:
                await self.neighbours.wait_replaced()
            except StorageError as error:
                return str(error)
        return None


@asynccontextmanager
async def open_world(path: Path) -> AsyncIterator[World]:
    turn = Turn()
    timers = Timers(turn)
    failures: list[OSError] = []
    async with open_background() as tasks:
        tasks.start_soon(timers.run)
        async with open_services(
            BrokerSettings(data_dir=path),
            OsFiles(),
            tasks=tasks,
            turn=turn,
            timers=timers,
            clock=SystemClock(),
            metrics=Metrics(topics_max=10),
            odd_events=OddEvents(logging.getLogger("tests")),
            failed=failures.append,
        ) as services:
            network = Told()
            neighbours = Neighbours(services, network, OWN)
            async with open_background() as recording:
                recording.start_soon(neighbours.run)
                yield World(services, neighbours, network)
                recording.cancel_scope.cancel()
        tasks.cancel_scope.cancel()
    assert not failures


async def test_a_broker_that_was_removed_is_no_neighbour_any_more(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        world.register(OWN)
        world.register(OLD)
        world.be_current()
        assert world.is_heard(OLD)
        world.unregister(OTHER)
        assert list(world.network.peers[-1]) == [ME]
        with trio.fail_after(5):
            while OTHER in stored_peers(world.services.state):  # noqa: ASYNC110 # in a thread
                await trio.sleep(0.01)
        world.register(NEW)
        assert world.network.peers[-1][OTHER].directory_id == NEW.directory_id
        assert world.is_heard(NEW), "though it counts its starts anew"


@pytest.mark.parametrize("is_current", [True, False])
async def test_another_broker_of_a_number_is_heard_though_the_removal_was_not_seen(
    tmp_path: Path, is_current: bool
) -> None:
    """A snapshot brings both at once; and before this broker is current nobody is left."""
    async with open_world(tmp_path) as world:
        world.register(OWN)
        world.register(OLD)
        if is_current:
            world.be_current()
        assert world.is_heard(OLD)
        ahead = ClusterState.decode(world.state.encode())
        ahead.apply(UnregisterBroker(at_version=ahead.version, node_id=OTHER))
        ahead.apply(registration(NEW, ahead))
        world.neighbours.restored(ahead)
        assert not world.services.driver.node.peers.is_alive(OTHER)
        assert world.is_heard(NEW)


async def test_a_broker_that_has_only_started_again_is_told_from_its_older_self(
    tmp_path: Path,
) -> None:
    async with open_world(tmp_path) as world:
        world.register(OWN)
        world.register(OLD)
        world.be_current()
        assert world.is_heard(OLD)
        again = broker(OTHER, directory=3, incarnation=6)
        world.register(again)
        assert world.is_heard(again)
        assert not world.is_heard(OLD), "a process that hung is too late"


def welcome_of(*brokers: BrokerMetadata) -> JoinResponse:
    return JoinResponse(
        cluster_id="ours",
        metadata_version=7,
        node_id=OTHER,
        directory_id=UUID(int=3),
        brokers=[
            PeerBroker(
                node_id=each.node_id,
                host=each.peer.host,
                port=each.peer.port,
                directory_id=each.directory_id,
            )
            for each in brokers
        ],
    )


async def test_who_was_away_while_all_others_were_replaced_is_told_who_there_is(
    tmp_path: Path,
) -> None:
    """They connect to it, and it has to connect to them."""
    async with open_world(tmp_path) as world:
        world.register(OWN)
        world.register(OLD)
        new = broker(NodeId(5), directory=5)
        world.neighbours.welcomed(welcome_of(OWN, NEW, new))
        told = world.network.peers[-1]
        assert sorted(told) == [ME, OTHER, NodeId(5)]
        assert told[OTHER].directory_id == NEW.directory_id
        assert told[NodeId(5)].address == new.peer


async def test_a_welcome_that_comes_late_changes_nothing(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        world.register(OWN)
        world.be_current()
        world.neighbours.welcomed(welcome_of(OWN, OLD))
        assert list(world.network.peers[-1]) == [ME]


async def test_the_number_of_one_that_has_left_does_not_end_who_has_it_now(tmp_path: Path) -> None:
    """The metadata's log tells a newcomer of all who have had its number."""
    async with open_world(tmp_path) as world:
        world.register(broker(ME, directory=8, incarnation=7))
        world.unregister(ME)
        world.register(OWN)
        world.be_current()
        assert await world.why_it_ends() is None


async def test_a_later_start_ends_this_one(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        world.register(OWN)
        world.register(broker(ME, directory=1, incarnation=3))
        why = await world.why_it_ends()
        assert why is not None
        assert why.startswith("broker 1 has been started again")


async def test_who_was_removed_ends_once_another_has_its_number(tmp_path: Path) -> None:
    """However often that one has been started: it is another broker, and not a later start."""
    async with open_world(tmp_path) as world:
        world.register(OWN)
        world.be_current()
        world.unregister(ME)
        assert await world.why_it_ends() is None
        world.register(broker(ME, directory=9))
        why = await world.why_it_ends()
        assert why is not None
        assert why.startswith("broker 1 was removed from the cluster")
