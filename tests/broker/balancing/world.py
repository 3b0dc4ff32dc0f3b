"""A cluster made of values round a real balancer: its metadata are real, and apply at once; who
leads what, and what leaders tell, is written down here; wishes are carried out by `carry_out`.

Everything is in virtual time, and nothing is on a thread.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from typing import TypeVar
from uuid import UUID

import trio

from tests.broker.fake_cluster import FakeGroup, FixedClock, cluster_log
from tidemark.broker.balancing.balancer import Balancer
from tidemark.broker.balancing.broker_states import BrokerStates
from tidemark.broker.balancing.gathering import Gathering, now
from tidemark.broker.balancing.history import History
from tidemark.broker.balancing.reports import Reports
from tidemark.broker.metadata.brokers import Brokers, Quorum, Standing
from tidemark.broker.metadata.cluster_log import CLUSTER_KEY
from tidemark.broker.metrics.balance_counts import BalanceMetrics
from tidemark.partitions.balancing.settings import Settings
from tidemark.partitions.state_machines.cluster import ClusterState
from tidemark.partitions.state_machines.cluster_commands import (
    CreateTopic,
    EndMoves,
    FinishReassignments,
    RegisterBroker,
)
from tidemark.partitions.state_machines.cluster_values import (
    BrokerAddress,
    LeaderMove,
    MoveOutcome,
    Reassignment,
)
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.messages.peer.load_report import (
    GroupLoad,
    LoadReportRequest,
    VoterLag,
)
from tidemark.protocol.types import NO_EPOCH, Epoch, NodeId, Offset

T = TypeVar("T")

ME = NodeId(1)
EPOCH = Epoch(1)
MOVE_SECONDS = 0.05


@dataclass
class WrittenLiveness:
    """Who lives and who leads, as the test has it."""

    alive: set[int] = field(default_factory=set)
    leaders: dict[PartitionKey, tuple[NodeId | None, Epoch]] = field(default_factory=dict)
    metadata_voters: tuple[int, ...] = (1, 2, 3)

    def is_alive(self, node: NodeId) -> bool:
        return node in self.alive

    def silent_seconds(self, _node: NodeId) -> float:
        return 0.0

    def leader_of(self, key: PartitionKey) -> tuple[NodeId | None, Epoch]:
        return (ME, EPOCH) if key == CLUSTER_KEY else self.leaders.get(key, (None, NO_EPOCH))

    def lagging(self, key: PartitionKey, nodes: Collection[NodeId]) -> Collection[NodeId]:
        return ()

    def quorum(self, key: PartitionKey) -> Quorum | None:
        voters = [Standing(NodeId(node), Offset(9), True) for node in self.metadata_voters]
        return Quorum(epoch=EPOCH, high_watermark=Offset(9), voters=voters, learners=[])


class WrittenLeaders:
    """What was written down about leaders since somebody asked."""

    def __init__(self, liveness: WrittenLiveness) -> None:
        self._liveness = liveness
        self._seen: dict[PartitionKey, tuple[NodeId | None, Epoch]] | None = None

    def take(self) -> Collection[PartitionKey] | None:
        before, self._seen = self._seen, dict(self._liveness.leaders)
        if before is None:
            return None
        return [key for key, leader in self._seen.items() if before.get(key) != leader]

    def stop(self) -> None:
        self._seen = None


class World:
    """Made by `open_world`."""

    def __init__(self, rules: Settings, *, is_enabled: bool) -> None:
        self.group = FakeGroup(commits_at_once=True)
        self.cluster = cluster_log(self.group)
        self.liveness = WrittenLiveness()
        self.history = History()
        self.metrics = BalanceMetrics()
        self.full: set[int] = set()
        """Whose disks are full; `fill_disk` says so."""
        self.failing_targets: set[int] = set()
        """Moves there fail."""
        self.failing_copies: set[int] = set()
        """No replica is ever complete there."""
        self.moved: list[tuple[str, int, int]] = []
        """Partition, from, to; of those that have succeeded."""
        self.failed = 0
        self.most_in_flight = 0
        self.plans = 0
        """How often something was worked out that takes long."""
        self.handed_metadata_to: list[NodeId] = []
        self.brokers = Brokers(ME, lambda: self.state, self.liveness)
        self.reports = Reports(lambda: EPOCH if self.cluster.leads else None, now)
        self.gathering = Gathering(
            lambda: self.state,
            self.brokers,
            self.reports,
            self.history,
            WrittenLeaders(self.liveness),
        )
        self.balancer = Balancer(
            self.cluster,
            self.gathering,
            self.history,
            rules,
            is_enabled=is_enabled,
            interval_seconds=5.0,
            clock=FixedClock(),
            metrics=self.metrics,
            hand_over_metadata=self.handed_metadata_to.append,
            rng=Random(1),
            in_thread=self._inline,
        )
        self.reports.on_disk = self.balancer.wake
        self.states = BrokerStates(self.cluster, self.gathering, rules, Random(1))
        self._is_wished = trio.Event()
        self.cluster.listen(self.balancer.applied)
        self.cluster.listen(lambda _: self._is_wished.set())

    async def _inline(self, work: Callable[[], T], /) -> T:
        """In place of a thread."""
        self.plans += 1
        await trio.lowlevel.checkpoint()
        return work()

    @property
    def state(self) -> ClusterState:
        return self.cluster.state

    # Making it

    async def add_broker(self, number: int, *, up_seconds: float = 1_000.0) -> None:
        await self.cluster.propose(
            lambda state: RegisterBroker(
                at_version=state.version,
                node_id=NodeId(number),
                directory_id=UUID(int=number),
                incarnation=1,
                listeners={"PLAINTEXT": BrokerAddress("h", number)},
                peer=BrokerAddress("h", 100 + number),
                rack=None,
            )
        )
        self.set_alive(number, True, at_ms=now() - int(up_seconds * 1000))
        self.fill_disk(number, is_full=False)

    def set_alive(self, number: int, is_alive: bool, *, at_ms: int | None = None) -> None:
        (self.liveness.alive.add if is_alive else self.liveness.alive.discard)(number)
        self.history.saw_broker(
            NodeId(number),
            is_alive=is_alive,
            incarnation=1,
            now_ms=now() if at_ms is None else at_ms,
        )

    async def add_topic(
        self,
        name: str,
        assignments: Sequence[Sequence[int]],
        *,
        leader: int | None = None,
        size: int = 0,
    ) -> None:
        """Led by each first one, or by `leader`."""
        topic_id = UUID(int=sum(name.encode()))
        assigned = tuple(tuple(map(NodeId, replicas)) for replicas in assignments)
        await self.cluster.propose(
            lambda state: CreateTopic(
                at_version=state.version,
                name=name,
                id=topic_id,
                assignments=assigned,
                configs={},
                created_ms=0,
            )
        )
        for partition, replicas in enumerate(assigned):
            key = PartitionKey(topic_id, partition)
            self.lead(key, replicas[0] if leader is None else leader, replicas, size=size)

    def lead(
        self, key: PartitionKey, node: int, voters: Sequence[int], *, size: int | None = None
    ) -> None:
        """It leads, and says so; all that live are in sync."""
        _, epoch = self.liveness.leader_of(key)
        self.liveness.leaders[key] = NodeId(node), Epoch(epoch + 1)
        self.tell(key, voters, size=0 if size is None else size)

    def tell(
        self, key: PartitionKey, voters: Sequence[int], *, size: int = 0, rate: int = 0
    ) -> None:
        """What the leader reports."""
        leader, epoch = self.liveness.leader_of(key)
        assert leader is not None
        load = GroupLoad(
            topic_id=key.topic_id,
            partition=key.partition,
            epoch=epoch,
            size_bytes=size,
            bytes_in_per_second=rate,
            bytes_out_per_second=0,
            is_changing=False,
            voters=tuple(
                VoterLag(node_id=each, lag=0 if each in self.liveness.alive else -1)
                for each in voters
            ),
            learners=(),
        )
        self.reports.take(leader, self._report(leader, [load]))

    def fill_disk(self, number: int, *, is_full: bool = True) -> None:
        """It says that its disk takes no records, or some again."""
        (self.full.add if is_full else self.full.discard)(number)
        self.reports.take(NodeId(number), self._report(number, []))

    def _report(self, number: int, loads: Sequence[GroupLoad]) -> LoadReportRequest:
        return LoadReportRequest(
            epoch=EPOCH, begins=False, is_full=number in self.full, groups=loads
        )

    def tell_all(self) -> None:
        """All brokers report anew."""
        for number in self.liveness.alive:
            self.fill_disk(number, is_full=number in self.full)
        for topic in self.state.topics.values():
            for partition, replicas in enumerate(topic.assignments):
                key = PartitionKey(topic.id, partition)
                if self.liveness.leader_of(key)[0] in self.liveness.alive:
                    self.tell(key, replicas)

    # Looking at it

    def leaders(self) -> dict[int, int]:
        led = Counter(leader for leader, _ in self.liveness.leaders.values())
        return {node: led[node] for node in sorted(self.state.brokers)}

    # What the leaders of partitions do

    async def carry_out(self) -> None:
        """Each wish takes a while, and then has come true, or failed."""
        begun: set[LeaderMove] = set()
        async with trio.open_nursery() as moving:
            while True:
                moves = set(self.state.wishes.moves.values())
                self.most_in_flight = max(self.most_in_flight, len(moves))
                for move in sorted(moves - begun, key=lambda move: move.id):
                    moving.start_soon(self._move, move)
                begun = moves
                await self._reassign()
                await self._is_wished.wait()
                self._is_wished = trio.Event()

    async def _move(self, move: LeaderMove) -> None:
        await trio.sleep(MOVE_SECONDS)
        topic = self.state.topic_by_id(move.topic_id)
        assert topic is not None
        key = PartitionKey(move.topic_id, move.partition)
        failure = None
        if move.target in self.failing_targets or move.target not in self.liveness.alive:
            failure = "the test has it so"
            self.failed += 1
        else:
            source, _ = self.liveness.leader_of(key)
            assert source is not None
            self.moved.append((f"{topic.name}-{move.partition}", source, move.target))
            self.lead(key, move.target, topic.assignments[move.partition])
        outcome = MoveOutcome(
            topic_id=move.topic_id,
            partition=move.partition,
            target=move.target,
            deadline_ms=move.deadline_ms,
            failure=failure,
        )
        await self.cluster.propose(
            lambda state: EndMoves(at_version=state.version, outcomes=(outcome,))
        )

    async def _reassign(self) -> None:
        for topic in list(self.state.topics.values()):
            for partition, wanted in topic.wanted.items():
                if not self.failing_copies.isdisjoint(wanted):
                    continue
                await trio.sleep(MOVE_SECONDS)
                done = Reassignment(
                    topic_id=topic.id,
                    partition=partition,
                    replicas=wanted,
                    at=topic.wanted_at.get(partition, 0),
                )
                await self.cluster.propose(
                    lambda state, done=done: FinishReassignments(  # type: ignore[misc] # mypy#12557
                        at_version=state.version, reassignments=(done,)
                    )
                )
                key = PartitionKey(topic.id, partition)
                leader, _ = self.liveness.leader_of(key)
                self.lead(key, leader if leader in wanted else wanted[0], wanted)


@asynccontextmanager
async def open_world(
    *brokers: int, rules: Settings | None = None, is_enabled: bool = True
) -> AsyncIterator[World]:
    """These brokers, and whatever wishes there are carried out. The loop runs in a block
    of `balancing`."""
    world = World(rules or Settings(), is_enabled=is_enabled)
    for number in brokers:
        await world.add_broker(number)
    async with trio.open_nursery() as tasks:
        tasks.start_soon(world.carry_out)
        yield world
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def balancing(world: World) -> AsyncIterator[None]:
    """The balancer runs."""
    async with trio.open_nursery() as tasks:
        tasks.start_soon(world.balancer.run)
        yield
        tasks.cancel_scope.cancel()
