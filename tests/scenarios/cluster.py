"""A handful of replicas of one group, driven by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import count

from tests.scenarios.disk import Disk, Image
from tests.scenarios.invariants import Invariants
from tidemark.partitions.raft.entries import Configuration, Run
from tidemark.partitions.raft.group import Group, Limits
from tidemark.partitions.raft.messages import HardState, Message, VoteRequest, VoteResponse
from tidemark.partitions.raft.ready import Failure, Leadership, Outgoing
from tidemark.protocol.types import Epoch, NodeId, Offset, Position


@dataclass(frozen=True)
class Envelope:
    """A message on its way."""

    source: int
    to: int
    message: Message


def at(epoch: int, offset: int) -> Position:
    return Position(Epoch(epoch), Offset(offset))


Event = Callable[[Group], object]


def receiving(source: NodeId, message: Message) -> Event:
    return lambda group: group.receive(source, message)


def hearing(leader: int, epoch: Epoch, committed: Position) -> Event:
    return lambda group: group.heard_leader(NodeId(leader), epoch, committed)


def resetting(peer: int) -> Event:
    return lambda group: group.peer_reset(NodeId(peer))


def adding(learner: int) -> Event:
    return lambda group: group.add_learner(NodeId(learner))


class Node:
    """One replica with its disk. Nothing becomes durable unless it is told to."""

    def __init__(
        self,
        cluster: Cluster,
        node_id: int,
        disk: Disk,
        *,
        is_clean: bool,
        life: int,
        in_doubt: bool,
        left_in: Epoch | None = None,
    ) -> None:
        self.cluster, self.id, self.disk = cluster, node_id, disk
        self.life = next(cluster.lives)
        self.dead: set[int] = set()  # whom it takes for dead
        self.waiting: list[tuple[int, list[Outgoing]]] = []  # what leaves when a token is durable
        self.leaderships: list[Leadership] = []
        self.servings: list[bool] = []
        self.failures: list[Failure] = []
        self.group = Group(
            node_id=NodeId(node_id),
            shape=disk.written.shape(),
            hard_state=disk.written.hard_state,
            committed=disk.written.start.offset,
            read=disk.written.read,
            peers=self,
            limits=cluster.limits,
            is_clean=is_clean,
            life=life,
            in_doubt=in_doubt,
            left_in=left_in,
        )

    def is_alive(self, node: NodeId) -> bool:
        return node not in self.dead

    @property
    def log(self) -> bytes:
        return self.disk.written.content

    @property
    def committed(self) -> bytes:
        start = self.disk.written.start.offset
        return self.log[: self.group.high_watermark - start]

    def do(self, event: Event) -> None:
        """Let an event happen, and take what comes of it, but make nothing durable."""
        event(self.group)
        self.drain()
        self.cluster.invariants.check(self.cluster)

    def drain(self) -> None:
        disk = self.disk
        while self.group.has_ready:
            ready = self.group.take_ready()
            if ready.reset is not None:
                disk.write(ready.reset)
            if ready.truncate_to is not None:
                disk.write(ready.truncate_to)
            for entry in ready.entries:
                disk.write(entry)
            if ready.hard_state is not None:
                disk.write(ready.hard_state)
            if ready.token:
                disk.stage(ready.token)
                self.waiting.append((ready.token, list(ready.send_after)))
            else:
                assert not ready.send_after
            self.cluster.post(self, ready.send)
            if ready.leadership is not None:
                self.leaderships.append(ready.leadership)
            if ready.is_serving is not None:
                self.servings.append(ready.is_serving)
            if ready.failure is not None:
                self.failures.append(ready.failure)

    def persist(self, token: int | None = None) -> None:
        """The writes up to this token are durable; all of them if none is given."""
        if token is None:
            if not self.disk.pending:
                return
            token = self.disk.pending[-1]
        while self.waiting and self.waiting[0][0] <= token:
            durable, messages = self.waiting.pop(0)
            self.disk.sync(durable)
            self.cluster.post(self, messages)
        self.do(lambda group: group.persisted(token))

    def append(self, data: bytes) -> None:
        """As a leader: write these records."""
        self.do(lambda group: self._append(group, data))

    def _append(self, group: Group, data: bytes) -> None:
        image = self.disk.written
        base, end = image.end_offset, Offset(image.end_offset + len(data))
        self.disk.write(Run(group.epoch, base, end, data))
        group.appended(end)


class Cluster:
    """The nodes 1 to n, and the messages between them in the order in which they were sent."""

    def __init__(
        self,
        size: int = 3,
        *,
        voters: Iterable[int] | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.limits = limits or Limits()
        ids = [*range(1, size + 1)]
        config = Configuration(tuple(NodeId(node) for node in voters or ids))
        self.invariants = Invariants()
        self.lives = count()
        self.messages: list[Envelope] = []
        self.cut: set[tuple[int, int]] = set()
        self.nodes: dict[int, Node] = {}
        self.down: dict[int, Image] = {}
        self.left: dict[int, Epoch] = {}
        """In which epoch those who came back had left the group."""
        for node in ids:
            disk = Disk(Image(first_config=config))
            self.nodes[node] = Node(self, node, disk, is_clean=True, life=0, in_doubt=False)

    def __getitem__(self, node: int) -> Node:
        return self.nodes[node]

    # Messages

    def post(self, source: Node, messages: Iterable[Outgoing]) -> None:
        for out in messages:
            self.invariants.check_spoken(source, out)
            self.messages.append(Envelope(source.id, out.to, out.message))

    def take(
        self,
        kind: type | tuple[type, ...] = object,
        *,
        source: int | None = None,
        to: int | None = None,
    ) -> list[Envelope]:
        """Take messages out of the pool: to deliver them later, twice, or never."""
        taken = [
            envelope
            for envelope in self.messages
            if isinstance(envelope.message, kind)
            and source in (None, envelope.source)
            and to in (None, envelope.to)
        ]
        for envelope in taken:
            self.messages.remove(envelope)
        return taken

    def deliver(self, *envelopes: Envelope) -> None:
        for envelope in envelopes:
            link = (envelope.source, envelope.to)
            if envelope.to in self.nodes and link not in self.cut:
                message, source = envelope.message, NodeId(envelope.source)
                self.nodes[envelope.to].do(receiving(source, message))

    def settle(self, *, only: Iterable[int] | None = None) -> None:
        """Persist and deliver until nothing is left to do, among all nodes or `only` some."""
        nodes = {*(only or self.nodes)} & {*self.nodes}
        for rounds in count():
            assert rounds < 1000, "it does not settle"
            for node in sorted(nodes):
                self.nodes[node].persist()
            ready = [e for e in self.messages if e.source in nodes | {*self.down} and e.to in nodes]
            if not ready and not any(self.nodes[node].disk.pending for node in nodes):
                return
            for envelope in ready:
                self.messages.remove(envelope)
                self.deliver(envelope)

    # Nodes

    def crash(
        self, node: int, *, keep: int = 0, lose: int = 0, back_to: Image | None = None
    ) -> None:
        """Kill it: of what is not durable, that of the first `keep` tokens is left.

        With `lose`, so many durable records are gone as well, and epoch starts behind them: a
        machine whose page cache was all that held them. With `back_to`, all that was made durable
        since is: epochs and votes too, as by damage to the journal.
        """
        victim = self.nodes.pop(node)
        for token in victim.disk.pending[:keep]:
            victim.disk.sync(token)
        image = victim.disk.durable if back_to is None else back_to.copy()
        if lose:
            end = Offset(max(image.start.offset, image.end_offset - lose))
            del image.records[end - image.start.offset :]
            image.rows = [row for row in image.rows if row.start_offset <= end]
        self.down[node] = image

    def leave(self, node: int) -> None:
        """Have it give up what it holds, all but its epoch. It comes back with `restart`."""
        victim = self.nodes.pop(node)
        epoch = self.left[node] = victim.group.epoch
        first_config = victim.disk.durable.first_config
        self.down[node] = Image(hard_state=HardState(epoch, None), first_config=first_config)

    def restart(
        self, node: int, *, is_clean: bool = True, in_doubt: bool = False, life: int | None = None
    ) -> Node:
        """Open what the crash has left. The others notice, as they would by the connection.

        With a `life`, the process is the same: it gave up the replica, and has it again.
        """
        image = self.down.pop(node)
        life = next(self.lives) if life is None else life
        self.nodes[node] = Node(
            self,
            node,
            Disk(image),
            is_clean=is_clean,
            life=life,
            in_doubt=in_doubt,
            left_in=self.left.get(node),
        )
        for other in [*self.nodes.values()]:
            other.dead.discard(node)
            if other.id != node:
                other.do(lambda group: group.peer_reset(NodeId(node)))
        return self.nodes[node]

    def partition(self, *sides: Iterable[int]) -> None:
        """Cut all links between the sides; each side takes the others for dead, and says so."""
        self.heal()
        groups = [{*side} for side in sides]
        for side in groups:
            away = {*self.nodes} - side
            for node_id in side & {*self.nodes}:
                self.nodes[node_id].dead = away
                self.cut |= {(node_id, other) for other in away}
        for node in self.nodes.values():
            if node.group.leader in node.dead:
                node.do(lambda group: group.leader_lost())

    def heal(self) -> None:
        self.cut.clear()
        for node in self.nodes.values():
            node.dead.clear()

    def reconnect(self) -> None:
        """After a cut: everyone begins again with everyone, and leaders are heard."""
        for node in [*self.nodes.values()]:
            for other in self.nodes:
                if other != node.id:
                    node.do(resetting(other))
        self.beat()

    def beat(self) -> None:
        """Each leader is heard by all that it can reach."""
        for node in [*self.nodes.values()]:
            group = node.group
            if not group.is_leader:
                continue
            epoch, committed = group.epoch, group.committed
            for other in [*self.nodes.values()]:
                if other is not node and (node.id, other.id) not in self.cut:
                    other.do(hearing(node.id, epoch, committed))

    # What scenarios begin with

    def elect(self, node: int, *, only: Iterable[int] | None = None) -> Node:
        """Let it campaign until it leads and serves; those who heard another leader lost it."""
        for _ in range(5):
            for other in self.nodes.values():
                if other.id != node and (only is None or other.id in {*only}):
                    other.do(lambda group: group.step_down())
                    other.do(lambda group: group.leader_lost())
            self.nodes[node].do(lambda group: group.campaign())
            self.settle(only=only)
            if self.nodes[node].group.is_serving:
                return self.nodes[node]
        raise AssertionError(f"{node} was not elected")

    def win(self, node: int, voters: Iterable[int]) -> Node:
        """Let it be elected by these, and leave what it sends as a leader in the pool."""
        for voter in {*voters} - {node}:
            self.nodes[voter].do(lambda group: group.leader_lost())
        for _ in range(2):  # the first attempt may only teach it the epoch
            if not self.nodes[node].group.is_leader:
                self.nodes[node].do(lambda group: group.campaign())
                self.carry_votes(node, voters)
        assert self.nodes[node].group.is_leader, f"{node} was not elected"
        return self.nodes[node]

    def carry_votes(self, node: int, voters: Iterable[int]) -> None:
        """Let these voters answer this candidate, first about the pre-vote, then in earnest."""
        for _ in range(2):
            self.nodes[node].persist()
            for voter in voters:
                self.deliver(*self.take(VoteRequest, source=node, to=voter))
                self.nodes[voter].persist()
                self.deliver(*self.take(VoteResponse, source=voter, to=node))
        self.nodes[node].persist()

    def produce(self, node: int, data: bytes, *, only: Iterable[int] | None = None) -> None:
        """Append on the leader, and let it be committed where it can be."""
        self.nodes[node].append(data)
        self.settle(only=only)
        self.beat()
