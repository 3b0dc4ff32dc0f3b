"""One replica alone with what it is told, and what it says to that."""

from __future__ import annotations

from collections.abc import Sequence

from tests.scenarios.disk import Disk, Image
from tidemark.partitions.raft.entries import Configuration, EpochStart, Run
from tidemark.partitions.raft.group import Group, Limits
from tidemark.partitions.raft.messages import (
    AppendRequest,
    AppendResponse,
    Ballot,
    HardState,
    Message,
    VoteRequest,
    VoteResponse,
)
from tidemark.partitions.raft.ready import Outgoing, Ready
from tidemark.protocol.types import Epoch, NodeId, Offset, Position

THREE = Configuration((NodeId(1), NodeId(2), NodeId(3)))
FIVE = Configuration(tuple(NodeId(node) for node in range(1, 6)))


def at(epoch: int, offset: int) -> Position:
    return Position(Epoch(epoch), Offset(offset))


def start(epoch: int, offset: int, leader: int = 2, config: Configuration = THREE) -> EpochStart:
    return EpochStart(Epoch(epoch), Offset(offset), NodeId(leader), config)


def run(epoch: int, offset: int, data: bytes) -> Run:
    return Run(Epoch(epoch), Offset(offset), Offset(offset + len(data)), data)


def vote(epoch: int, last: Position, ballot: Ballot = Ballot.REAL) -> VoteRequest:
    return VoteRequest(Epoch(epoch), ballot, last)


def append(
    epoch: int, prev: Position, *entries: EpochStart | Run, committed: Position | None = None
) -> AppendRequest:
    return AppendRequest(Epoch(epoch), prev, entries, committed or at(-1, 0))


class Solo:
    """Replica 1. Its log is given as runs, each of an epoch of its own."""

    def __init__(
        self,
        *runs: tuple[int, bytes],
        epoch: int | None = None,
        config: Configuration = THREE,
        committed: int = 0,
    ) -> None:
        image = Image(first_config=config)
        for run_epoch, data in runs:
            image.apply(start(run_epoch, image.end_offset, config=config))
            if data:
                image.apply(run(run_epoch, image.end_offset, data))
        if epoch is None:
            epoch = runs[-1][0] if runs else -1
        image.hard_state = HardState(Epoch(epoch), None)
        self.disk = Disk(image)
        self.dead: set[int] = set()
        self.readies: list[Ready] = []
        self.group = Group(
            node_id=NodeId(1),
            shape=image.shape(),
            hard_state=image.hard_state,
            committed=Offset(committed),
            read=image.read,
            peers=self,
            limits=Limits(),
        )

    def is_alive(self, node: NodeId) -> bool:
        return node not in self.dead

    @property
    def log(self) -> bytes:
        return self.disk.written.content

    def hear(self, source: int, message: Message, *, persist: bool = True) -> list[Message]:
        """What it says to that message, before or after its writes are durable."""
        self.group.receive(NodeId(source), message)
        return [out.message for out in self.work(persist=persist)]

    def work(self, *, persist: bool = True) -> list[Outgoing]:
        """Do what it wants done."""
        said: list[Outgoing] = []
        while self.group.has_ready:
            ready = self.group.take_ready()
            self.readies.append(ready)
            for op in (ready.reset, ready.truncate_to, *ready.entries, ready.hard_state):
                if op is not None:
                    self.disk.write(op)
            said += ready.send
            if ready.token and persist:
                said += ready.send_after
                self.group.persisted(ready.token)
        return said

    def become_leader(self, voters: Sequence[int] = (2, 3)) -> list[Message]:
        """By the votes of these; what it sends as a leader."""
        self.group.campaign()
        self.work()
        for ballot in (Ballot.PRE, Ballot.REAL):
            epoch = Epoch(self.group.epoch + (ballot is Ballot.PRE))
            for voter in voters:
                self.group.receive(NodeId(voter), VoteResponse(epoch, ballot, True))
            said = self.work()
        assert self.group.is_leader
        return [out.message for out in said]

    def acknowledge(self, *nodes: int, position: Position | None = None) -> list[Message]:
        """These hold the log up to `position`, or all of it."""
        position = position or self.group.shape.last
        answer = AppendResponse(self.group.epoch, position, position)
        return [message for node in nodes for message in self.hear(node, answer)]

    def produce(self, data: bytes, *, persist: bool = True) -> list[Message]:
        image = self.disk.written
        self.disk.write(run(self.group.epoch, image.end_offset, data))
        self.group.appended(image.end_offset)
        return [out.message for out in self.work(persist=persist)]
