"""A whole cluster with its clients, and all that can happen to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tidemark.partitions.replication.group_replica import GroupReplica
from tidemark.partitions.replication.peer_messages import PeerMessage
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.types import NodeId, Offset, ProducerId, TopicPartition
from tidemark.testing.checkers.history import History
from tidemark.testing.checkers.violation import Violation
from tidemark.testing.simulator.broker import Broker
from tidemark.testing.simulator.consumer import Consumer
from tidemark.testing.simulator.coverage import Coverage
from tidemark.testing.simulator.events import EventQueue
from tidemark.testing.simulator.faults import Fault
from tidemark.testing.simulator.groups import SimulatedGroup, draw_groups
from tidemark.testing.simulator.knobs import Knobs
from tidemark.testing.simulator.nemesis import Nemesis
from tidemark.testing.simulator.network import End, Network, Weather
from tidemark.testing.simulator.novelty import COMMON_EACH, states_of
from tidemark.testing.simulator.placement import Placement
from tidemark.testing.simulator.process import Process
from tidemark.testing.simulator.producer import Producer
from tidemark.testing.simulator.randomness import stream
from tidemark.testing.simulator.rpc import (
    Answer,
    Answered,
    Ask,
    Fetch,
    Fetched,
    GiveUp,
    Leader,
    Produce,
    Produced,
    WhoLeads,
)
from tidemark.testing.simulator.sessions import Session
from tidemark.testing.simulator.trace import Trace
from tidemark.testing.simulator.transactions.calls import Call
from tidemark.testing.simulator.transactions.play import Play
from tidemark.testing.simulator.watch import Watch
from tidemark.testing.simulator.wishes import Wishes

_POLL_SECONDS = 0.3
_RESTORE_SECONDS = 5.0
_WITHIN_BATCHES = 0.5
"""How many of the times that a log's start is moved, it may be to within a batch."""


class _Frame(NamedTuple):
    """Messages on a connection between two processes."""

    sender: Process | None
    receiver: Process | None
    messages: Sequence[PeerMessage]


class World:
    """Everything in one run. It is what brokers, clients and the nemesis know of each other."""

    def __init__(
        self, seed: int, knobs: Knobs, script: Sequence[Fault] | None, trace: Trace
    ) -> None:
        self.seed = seed
        self.knobs = knobs
        self.trace = trace
        self.queue = EventQueue()
        self.coverage = Coverage()
        self._common = 0
        """How many common moments there were."""
        self.history = History()
        self.groups: Sequence[SimulatedGroup] = draw_groups(seed, knobs)
        self.watch = Watch(self.groups)
        self.network = self._make_network()
        self.nodes: Sequence[NodeId] = [NodeId(number) for number in range(1, knobs.nodes + 1)]
        self.brokers = {node: Broker(node, self) for node in self.nodes}
        self.sessions: dict[str, Session] = {}
        self.producers = [self._make_producer(number) for number in range(knobs.producers)]
        self.consumers = [self.make_consumer(f"reader {n}") for n in range(knobs.consumers)]
        self.play = Play(self) if knobs.has_transactions else None
        """Transactions and members of groups, where there are some."""
        self.clients: Sequence[str] = list(self.sessions)
        self.given_up: dict[PartitionKey, Offset] = {}
        """Of each group, up to where some leader was told to give its records up."""
        self.restarts_due = 0
        """How many times a broker will be restarted because a replica on it has failed."""
        self.wishes = Wishes(self)
        self.placement = Placement(self) if knobs.moves_replicas else None
        self._rng = stream(seed, "world")
        self._trim_rng = stream(seed, "trims")
        self.nemesis = Nemesis(self, script)

    def start(self) -> None:
        for broker in self.brokers.values():
            self.queue.after(self._rng.random() * 0.2, broker.start)
        for producer in self.producers:
            producer.start()
        for consumer in self.consumers:
            consumer.start()
        if self.play is not None:
            self.play.start()
        self.nemesis.start()

    def _make_network(self) -> Network:
        knobs = self.knobs
        # Clients have connections: what they ask arrives in order, once or not at all. Where it
        # does not, they stand for clients that ask again on another one.
        of_clients = Weather(
            latency_seconds=knobs.latency,
            jitter_seconds=knobs.jitter,
            loss=knobs.loss / 2,
            duplication=knobs.client_duplication,
            lateness=knobs.client_lateness,
            in_order=not (knobs.client_lateness or knobs.client_duplication),
        )
        return Network(self.queue, self.seed, self._deliver, knobs.weather, of_clients)

    # Clients

    def _plain(self) -> list[tuple[PartitionKey, TopicPartition]]:
        return [(group.key, group.partition) for group in self.groups if group.is_plain]

    def session(self, name: str, *, timeout_seconds: float | None = None) -> Session:
        """A client's."""
        timeout_seconds = timeout_seconds or self.knobs.request_timeout
        session = Session(name, self.network, self.nodes, timeout_seconds)
        self.sessions[name] = session
        return session

    def _make_producer(self, number: int) -> Producer:
        knobs = self.knobs
        return Producer(
            self.session(f"producer {number}"),
            ProducerId(number + 1),
            self._plain(),
            self.history,
            interval_seconds=knobs.send_interval,
            records_max=knobs.records_max,
            in_flight_max=knobs.in_flight_max,
            give_up_seconds=knobs.give_up_after,
            give_ups=knobs.give_ups,
        )

    def make_consumer(
        self,
        name: str,
        *,
        interval_seconds: float = _POLL_SECONDS,
        replica_reads: float | None = None,
    ) -> Consumer:
        return Consumer(
            self.session(name),
            self._plain(),
            self.history,
            interval_seconds=interval_seconds,
            bytes_max=self.knobs.fetch_bytes_max,
            replica_reads=self.knobs.replica_reads if replica_reads is None else replica_reads,
        )

    # For brokers

    def send(self, source: NodeId, target: NodeId, messages: Sequence[PeerMessage]) -> None:
        here, there = self.brokers[source].process, self.brokers[target].process
        if len(messages) == 1 or not self.knobs.splits_frames:
            self.network.send(source, target, _Frame(here, there, messages))
            return
        for message in messages:
            self.network.send(source, target, _Frame(here, there, (message,)))

    def answer(self, source: NodeId, client: str, answer: Answer) -> None:
        self.network.send(source, client, answer)

    def moment(self, node: NodeId, name: str) -> None:
        self.coverage.counts[name] += 1
        self.nemesis.moment(node, name)

    def look(self, key: PartitionKey, *, is_common: bool = False) -> None:
        """How that group is may be new."""
        self._common += is_common
        if is_common and self._common % COMMON_EACH:
            return
        replicas = [broker.replica(key) for broker in self.brokers.values()]
        there = [each.group for each in replicas if each is not None and each.failure is None]
        self.coverage.states.update(states_of(there))

    def started(self, broker: Broker) -> None:
        """Its connections come up, one after the other."""
        for other in self.brokers.values():
            if other is not broker and other.process is not None:
                self._connect_later(broker, other)

    def stopped(self, broker: Broker) -> None:
        """Some notice it at once, because their connection ends; others by the silence."""
        for other in self.brokers.values():
            if other is not broker and self._rng.random() < self.knobs.resets_seen:
                self._disconnect_later(other, broker.node_id)

    def replica_failed(self, node: NodeId, replica: GroupReplica) -> None:
        """A replica takes no part any more: only a disk that is full has a right to do that, or
        whose sync has failed; or it has what was committed, and page caches were lost with that."""
        broker = self.brokers[node]
        if replica.failure is None:
            return
        if broker.is_rotten(replica.key):
            self.told_of_rot(broker)
            return
        is_disk_bad = broker.files.capacity_bytes is not None or broker.files.failed_syncs
        if not is_disk_bad and not self.watch.may_have_lost(replica.key):
            raise Violation("no replica fails", str(replica.key.partition), str(replica.failure))
        # As an operator would, once there is room again.
        self.restarts_due += 1
        self.queue.after(5.0, self._restart, broker)

    def told_of_rot(self, broker: Broker) -> None:
        """A broker says that a log of its cannot be read: the operator restores the file."""
        self.coverage.counts["rot noticed"] += 1
        self.queue.after(_RESTORE_SECONDS, broker.restore)

    def rewind(self, key: PartitionKey) -> None:
        """What has long been read is of interest again."""
        for consumer in self.consumers:
            consumer.rewind(key)

    def _restart(self, broker: Broker) -> None:
        self.restarts_due -= 1
        broker.files.capacity_bytes = None
        broker.stop(power=False)
        self.queue.after(0.1, broker.start)

    # For the nemesis

    def leader(self, group: SimulatedGroup) -> Broker | None:
        """The broker that leads the group in its latest epoch, if it runs."""
        leaders = [
            (replica.epoch, broker.node_id)
            for broker in self.brokers.values()
            if broker.process is not None
            and (replica := broker.process.node.get(group.key)) is not None
            and replica.is_leader
        ]
        return self.brokers[max(leaders)[1]] if leaders else None

    def link_lost(self, source: NodeId, target: NodeId) -> None:
        """A connection was reset: both ends see it."""
        self._disconnect_later(self.brokers[source], target)
        self._disconnect_later(self.brokers[target], source)

    def link_back(self, source: NodeId, target: NodeId) -> None:
        self._connect_later(self.brokers[source], self.brokers[target])

    def trim(self, group: SimulatedGroup) -> None:
        """Give up records that all consumers have read: whole batches, or up to within one.

        Where there are transactions, what who reads all has read, be it decided or not."""
        deletions = None if self.play is None else self.play.deletions
        if deletions is not None:
            group = deletions.choose(group)
        leader = self.leader(group)
        if leader is not None and leader.process is not None:
            process = leader.process
            if deletions is not None:
                offset = deletions.end_offset(group)
            else:
                offset = min(consumer.position(group.key) for consumer in self.consumers)
            if self._trim_rng.random() < _WITHIN_BATCHES:
                offset = Offset(max(0, offset - self._trim_rng.randint(1, self.knobs.records_max)))
            if deletions is not None:
                deletions.wanted(group, offset)
            process.do(process.move_log_start, group.key, offset)

    def _connect_later(self, one: Broker, other: Broker) -> None:
        self.queue.after(self._rng.random() * 0.05, self._connect, one, other)

    def _connect(self, one: Broker, other: Broker) -> None:
        here, there = one.process, other.process
        pair = one.node_id, other.node_id
        is_cut = self.network.is_cut(*pair) or self.network.is_cut(*reversed(pair))
        if here is None or there is None or is_cut:
            return
        here.do(here.peer_up, other.node_id, there.node.incarnation)
        there.do(there.peer_up, one.node_id, here.node.incarnation)

    def _disconnect_later(self, broker: Broker, peer: NodeId) -> None:
        self.queue.after(self._rng.random() * 0.01, self._disconnect, broker, peer)

    @staticmethod
    def _disconnect(broker: Broker, peer: NodeId) -> None:
        process = broker.process
        if process is not None:
            process.do(process.peer_down, peer)

    # The network's end

    def _deliver(self, source: End, target: End, message: object) -> None:
        if isinstance(target, str):
            assert isinstance(message, Produced | Fetched | Leader | Answered)
            self.sessions[target].receive(message)
            return
        process = self.brokers[NodeId(target)].process
        if process is None:
            return
        if isinstance(source, str):
            assert isinstance(message, Produce | GiveUp | Fetch | WhoLeads | Ask)
            process.do(process.request, source, message)
            return
        if isinstance(message, Call):
            if message.called is process:
                process.do(process.called, message)
            return
        assert isinstance(message, _Frame)
        # Connections end with the processes, and with them what was under way on them.
        if message.receiver is process and message.sender is self.brokers[NodeId(source)].process:
            process.do(process.receive, NodeId(source), message.messages)
