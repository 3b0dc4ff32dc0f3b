"""Replicas that are moved, elsewhere, and back, at any moment, by brokers that die at any moment.

The metadata are real (`ClusterState`), and each broker hears of them late. A broker opens what it
is to hold and forgets what it is not to hold any more as `broker/metadata/hosting.py` does: nothing
is made or forgotten by metadata that may be old. Whatever happens, what was committed stays, and an
epoch has one leader.
"""

from __future__ import annotations

from random import Random

import pytest

from tests.partitions.replication.cluster import KEY, Broker, Cluster
from tests.partitions.state_machines.clusters import with_brokers
from tidemark.partitions.replication.reassigning import (
    Reassignments,
    ReplicaWish,
    may_be_wished_later,
)
from tidemark.partitions.state_machines.cluster import ClusterState
from tidemark.partitions.state_machines.cluster_commands import (
    Command,
    CreateTopic,
    FinishReassignments,
    ReassignPartitions,
)
from tidemark.partitions.state_machines.cluster_values import Reassignment, TopicMetadata
from tidemark.partitions.storage.left_groups import leave
from tidemark.partitions.storage.state_db import StateDb
from tidemark.protocol.errors import RequestError
from tidemark.protocol.types import Epoch, NodeId
from tidemark.testing.memory_files import MemoryFiles

BROKERS = 5
SECONDS = 10.0
LOOK = 0.05


class Host:
    """What a broker knows of the metadata, and what it does about it."""

    def __init__(self, broker: Broker, *, current_at: int) -> None:
        self.broker = broker
        self.part = Reassignments(broker.node)
        self.state = with_brokers(*range(1, BROKERS + 1))
        self.applied = 0
        self._current_at = current_at
        """How many commands there were when this process registered."""

    def apply(self, commands: list[Command], up_to: int) -> None:
        for command in commands[self.applied : up_to]:
            self.state.apply(command)
        self.applied = max(self.applied, up_to)
        for topic in self.state.topics.values():
            self._host(topic)

    def _host(self, topic: TopicMetadata) -> None:
        node, is_current = self.broker.node, self.applied >= self._current_at
        is_host, is_open = self.broker.node_id in topic.hosts(0), node.get(KEY) is not None
        if is_host and not is_open and (is_current or self._is_recorded):
            voters = topic.assignments[0]
            self.broker.open(voters, preference=voters)
        elif is_open and not is_host and is_current and self._may_forget:
            self._forget()
        wanted = topic.wanted.get(0)
        wish = {} if wanted is None else {KEY: ReplicaWish(wanted, topic.wanted_at[0])}
        self.part.set_all(wish, self.state.version)

    @property
    def _may_forget(self) -> bool:
        return not may_be_wished_later(self.broker.replica(), self.state.version)

    @property
    def _is_recorded(self) -> bool:
        return KEY in self.broker.state.partition_states()

    def _forget(self) -> None:
        broker = self.broker
        broker.replica().log.abandon()
        left = {KEY: broker.replica().epoch}
        broker.node.remove(KEY, is_deleted=True, lives_on=True)
        broker.take()
        broker.sync()
        leave(broker.state, left)
        for name in list(broker.files.sizes("/data/orders-0")):
            broker.files.remove(f"/data/orders-0/{name}")


class Run:
    """One random schedule."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.cluster = Cluster(BROKERS)
        self.commands: list[Command] = []
        self.state: ClusterState = with_brokers(*range(1, BROKERS + 1))
        self.hosts = {node: Host(each, current_at=0) for node, each in self.cluster.brokers.items()}
        self.down: dict[NodeId, tuple[MemoryFiles, StateDb]] = {}
        self.acknowledged: list[str] = []
        self.leaders: dict[Epoch, NodeId] = {}
        self.appended = self.wishes = self.struck = 0

    def propose(self, command: Command) -> None:
        try:
            self.state.apply(command)
        except RequestError:
            return
        self.commands.append(command)

    @property
    def topic(self) -> TopicMetadata:
        (topic,) = self.state.topics.values()
        return topic

    def wish(self) -> None:
        count = self.rng.choice((1, 2, 3, 3))
        wanted = self.rng.sample([NodeId(node) for node in range(1, BROKERS + 1)], count)
        replicas = tuple(wanted) if self.rng.random() < 0.75 else None
        change = Reassignment(topic_id=KEY.topic_id, partition=0, replicas=replicas)
        self.propose(ReassignPartitions(at_version=self.state.version, reassignments=(change,)))
        self.wishes += 1

    def strike(self) -> None:
        """Somebody's report comes, perhaps a late one."""
        for host in self.hosts.values():
            for _, wish in host.part.done():
                change = Reassignment(
                    topic_id=KEY.topic_id, partition=0, replicas=wish.replicas, at=wish.at
                )
                self.propose(
                    FinishReassignments(at_version=self.state.version, reassignments=(change,))
                )

    def kill(self) -> None:
        node = self.rng.choice(list(self.cluster.brokers))
        power = Random(self.rng.random()) if self.rng.random() < 0.5 else None
        self.down[node] = self.cluster.kill(node, power)
        del self.hosts[node]

    def revive(self) -> None:
        node = self.rng.choice(list(self.down))
        broker = self.cluster.start(node, *self.down.pop(node))
        host = self.hosts[node] = Host(broker, current_at=len(self.commands))
        host.apply(self.commands, self.rng.randint(0, len(self.commands)))
        for other in self.cluster.brokers.values():
            if other is not broker:
                other.node.peer_up(node, broker.node.incarnation, self.cluster.now)
                broker.node.peer_up(other.node_id, other.node.incarnation, self.cluster.now)

    def append(self) -> None:
        for broker in self.cluster.brokers.values():
            replica = broker.node.get(KEY)
            if replica is not None and replica.is_accepting:
                broker.append(f"v{self.appended}")
                self.appended += 1

    def check(self) -> None:
        """What a leader has committed in its own epoch is what a producer was told is written."""
        for broker in self.cluster.brokers.values():
            replica = broker.node.get(KEY)
            if replica is None or not replica.is_serving:
                continue
            assert self.leaders.setdefault(replica.epoch, broker.node_id) == broker.node_id
            if replica.epoch < max(self.leaders):
                continue  # it has not heard yet
            committed = broker.committed_values()
            known = self.acknowledged
            assert committed[: len(known)] == known[: len(committed)]
            if len(committed) > len(known):
                self.acknowledged = committed

    def step(self) -> None:
        rng = self.rng
        for host in list(self.hosts.values()):
            if rng.random() < 0.6:
                host.apply(self.commands, rng.randint(host.applied, len(self.commands)))
            host.part.look(self.cluster.now)
        self.append()
        self.cluster.run(LOOK)
        self.check()
        if rng.random() < 0.5:
            self.strike()

    def settle(self) -> None:
        """All are back, and hear of everything."""
        while self.down:
            self.revive()
        for _ in range(round(40 / LOOK)):
            for host in self.hosts.values():
                host.apply(self.commands, len(self.commands))
                host.part.look(self.cluster.now)
            self.strike()
            self.cluster.run(LOOK)
            self.check()
            if not self.topic.wanted and self.is_settled():
                return
        raise AssertionError(f"it never ends: {self.topic}")

    def is_settled(self) -> bool:
        there = {node for node, host in self.hosts.items() if host.broker.node.get(KEY)}
        return there == {*self.topic.assignments[0]} and any(
            self.cluster[node].replica().is_serving for node in there
        )

    def play(self) -> None:
        create = CreateTopic(
            at_version=self.state.version,
            name="orders",
            id=KEY.topic_id,
            assignments=((NodeId(1), NodeId(2), NodeId(3)),),
            configs={},
            created_ms=0,
        )
        self.propose(create)
        end = self.cluster.now + SECONDS
        while self.cluster.now < end:
            act = self.rng.random()
            if act < 0.04:
                self.wish()
            elif act < 0.07 and len(self.down) < 2:
                self.kill()
            elif act < 0.12 and self.down:
                self.revive()
            self.step()
        self.settle()


@pytest.mark.parametrize("seed", range(8))
def test_what_is_committed_stays_whatever_moves_and_whoever_dies(seed: int) -> None:
    run = Run(seed)
    run.play()
    (leader,) = [
        broker
        for broker in run.cluster.brokers.values()
        if (replica := broker.node.get(KEY)) is not None and replica.is_serving
    ]
    assert leader.committed_values()[: len(run.acknowledged)] == run.acknowledged
    assert len(run.acknowledged) > 10
    assert run.wishes
