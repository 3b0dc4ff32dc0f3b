"""Where replicas are to be: the cluster's metadata, which outlive every broker.

The state is the real one (`ClusterState`), and every change is a command of its own. Brokers hear
of commands late and in their order, each at its own time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol
from uuid import UUID

from tidemark.partitions.replication.group_replica import GroupReplica
from tidemark.partitions.replication.reassignment_values import ReplicaWish
from tidemark.partitions.state_machines.cluster import ClusterState
from tidemark.partitions.state_machines.cluster_commands import (
    Command,
    CreateTopic,
    FinishReassignments,
    ReassignPartitions,
    RegisterBroker,
)
from tidemark.partitions.state_machines.cluster_values import (
    BrokerAddress,
    Reassignment,
    TopicMetadata,
)
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.errors import RequestError
from tidemark.protocol.types import NodeId
from tidemark.testing.checkers.violation import require
from tidemark.testing.simulator.coverage import Coverage
from tidemark.testing.simulator.events import EventQueue
from tidemark.testing.simulator.groups import SimulatedGroup
from tidemark.testing.simulator.randomness import stream
from tidemark.testing.simulator.trace import Trace
from tidemark.testing.simulator.watch import Watch

_HEARD_SECONDS: Final = 0.05
_HEARD_LATE_SECONDS: Final = 2.0
_LATE_SHARE: Final = 0.2


class Host(Protocol):
    """A broker, as far as the metadata reach it."""

    def hear(self, commands: int) -> None:
        """So many commands are known to be committed."""

    def replica(self, key: PartitionKey) -> GroupReplica | None: ...


class Field(Protocol):
    """The cluster."""

    seed: int
    queue: EventQueue
    trace: Trace
    watch: Watch
    coverage: Coverage
    groups: Sequence[SimulatedGroup]
    nodes: Sequence[NodeId]

    @property
    def brokers(self) -> Mapping[NodeId, Host]: ...
    def leader(self, group: SimulatedGroup) -> Host | None: ...


class Placement:
    """All commands of a run, and the state that they make."""

    def __init__(self, field: Field) -> None:
        self._field = field
        self._rng = stream(field.seed, "placement")
        self.commands: list[Command] = []
        self.state = self.first_state()

    def first_state(self) -> ClusterState:
        """Before any wish."""
        state = ClusterState()
        for node in self._field.nodes:
            state.apply(_registration(state, node))
        groups = self._field.groups
        create = CreateTopic(
            at_version=state.version,
            name=groups[0].partition.topic,
            id=groups[0].key.topic_id,
            assignments=tuple(group.voters for group in groups),
            configs={},
            created_ms=0,
        )
        state.apply(create)
        return state

    @property
    def topic(self) -> TopicMetadata:
        return topic_of(self.state)

    def is_wished(self, group: SimulatedGroup) -> bool:
        return group.key.partition in self.topic.wanted

    def wish(self, group: SimulatedGroup, replicas: tuple[NodeId, ...] | None) -> None:
        """Have these vote; `None` cancels what is wished."""
        change = Reassignment(
            topic_id=group.key.topic_id, partition=group.key.partition, replicas=replicas
        )
        name = "cancelled" if replicas is None else "wished"
        name = f"{name} again" if self.is_wished(group) and replicas is not None else name
        command = ReassignPartitions(at_version=self.state.version, reassignments=(change,))
        if self._propose(command):
            self._field.coverage.counts[f"replicas {name}"] += 1

    def report(self, group: SimulatedGroup, wish: ReplicaWish) -> None:
        """A leader says that a wish has come true; perhaps it is another one's turn by now."""
        number = group.key.partition
        if self.topic.wanted_at.get(number) != wish.at:
            return
        change = Reassignment(
            topic_id=group.key.topic_id, partition=number, replicas=wish.replicas, at=wish.at
        )
        self._judge(group, wish)
        command = FinishReassignments(at_version=self.state.version, reassignments=(change,))
        if self._propose(command) and not self.is_wished(group):
            self._field.coverage.counts["replicas struck"] += 1

    def _judge(self, group: SimulatedGroup, wish: ReplicaWish) -> None:
        leader = self._field.leader(group)
        replica = None if leader is None else leader.replica(group.key)
        newest = self._field.watch.groups[group.key].elections.epoch_max
        if replica is None or replica.epoch < newest:
            return  # it has not heard of a later one
        config = replica.group.config
        is_so = not config.is_joint and {*config.voters} == {*wish.replicas}
        what = f"{wish} is struck, and {config} vote"
        require(is_so, "a wish that is struck has come true", str(group.partition), what)

    def _propose(self, command: Command) -> bool:
        try:
            self.state.apply(command)
        except RequestError:
            return False
        self.commands.append(command)
        field = self._field
        field.trace.note(field.queue.now, 0, "metadata", f"{self.topic.wanted}")
        for broker in field.brokers.values():
            self.tell(broker)
        return True

    def tell(self, broker: Host) -> None:
        """A broker hears of all that there is by now, some time later."""
        bound = _HEARD_LATE_SECONDS if self._rng.random() < _LATE_SHARE else _HEARD_SECONDS
        self._field.queue.after(self._rng.random() * bound, broker.hear, len(self.commands))


def topic_of(state: ClusterState) -> TopicMetadata:
    """All groups are partitions of one topic."""
    (topic,) = state.topics.values()
    return topic


def wishes_of(state: ClusterState) -> dict[PartitionKey, ReplicaWish]:
    topic = topic_of(state)
    return {
        PartitionKey(topic.id, number): ReplicaWish(replicas, topic.wanted_at[number])
        for number, replicas in topic.wanted.items()
    }


def _registration(state: ClusterState, node: NodeId) -> RegisterBroker:
    return RegisterBroker(
        at_version=state.version,
        node_id=node,
        directory_id=UUID(int=node),
        incarnation=1,
        listeners={"PLAINTEXT": BrokerAddress(f"broker-{node}", 9092)},
        peer=BrokerAddress(f"broker-{node}", 9093),
        rack="r1",
    )
