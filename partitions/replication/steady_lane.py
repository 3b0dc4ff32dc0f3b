"""What a turn has to say to other brokers, and to the journal, about groups that are in step.

All groups of a turn share a message for each set of followers, one place in the journal's batch,
and one message with all answers for each leader. See `raft.steady` for who may go this way.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from tidemark.partitions.raft.entries import Run
from tidemark.partitions.replication.outbox import Outbox
from tidemark.partitions.replication.recent import KeptRun
from tidemark.partitions.replication.steady_messages import (
    AnswerRow,
    AppendRow,
    RowKey,
    SteadyAnswers,
    SteadyAppends,
    partition_key,
    row_key,
)
from tidemark.partitions.storage.slices import LogSlice
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.types import NO_EPOCH, NO_OFFSET, BytesLike, Epoch, NodeId, Offset

if TYPE_CHECKING:
    from tidemark.partitions.replication.group_replica import GroupReplica
    from tidemark.partitions.replication.steady_replica import SteadyReplica

_MESSAGE_BYTES: Final = 1024 * 1024
"""About as much goes into one message: a heartbeat waits for one, and not for all."""

# Made for every batch: calling the class takes twice the time.
_append_row: Final = partial(tuple.__new__, AppendRow)
_answer_row: Final = partial(tuple.__new__, AnswerRow)

_NOBODY: Final = NodeId(-1)
_SOLO: Final = 0
"""No token: those of a `Ready` that has something to be made durable begin at 1."""
_Staged = tuple["SteadyReplica", int, Offset, NodeId, Epoch, Offset]


class _Appends:
    """For the same followers, until they are sent."""

    __slots__ = ("records", "rows", "size_bytes")

    def __init__(self) -> None:
        self.rows: list[AppendRow] = []
        self.records: list[BytesLike] = []
        self.size_bytes = 0

    @property
    def message(self) -> SteadyAppends:
        return SteadyAppends(self.rows, self.records)


class SteadyLane:
    """The one of a broker. `find` finds a replica by its group; `met` is told of one that entries
    have come to on the long way."""

    def __init__(
        self,
        outbox: Outbox,
        find: Callable[[PartitionKey], GroupReplica | None],
        met: Callable[[GroupReplica], None],
    ) -> None:
        self._outbox = outbox
        self._find = find
        self._met = met
        self._replicas: dict[RowKey, GroupReplica] = {}
        self._keys: dict[SteadyReplica, RowKey] = {}
        self._appends: dict[tuple[NodeId, ...], _Appends] = {}
        self._answers: dict[NodeId, list[AnswerRow]] = {}
        self._staged: list[_Staged] = []

    def remove(self, replica: GroupReplica) -> None:
        """It is not of this broker any more."""
        key = self._keys.pop(replica, None)
        if key is not None:
            self._replicas.pop(key, None)

    # What comes

    def take(self, source: NodeId, message: SteadyAppends) -> None:
        """Runs for groups that are led by `source`, and are in step if it is right.

        What is kept of the records is copied: they may lie in a buffer that is used again.
        """
        replicas = self._replicas
        for row, records in zip(message.rows, message.records, strict=True):
            key, epoch, base, end, committed, _ = row
            replica = replicas.get(key) or self._replica(key)
            if isinstance(records, LogSlice):  # where a message does not travel: in a simulation
                records = records.read()
            if replica is not None and not replica.take_steadily(
                self, source, (epoch, base, end), committed, records
            ):
                replica.receive(source, AppendRow(*row).message(bytes(records)))
                self._met(replica)

    def acknowledge(self, source: NodeId, message: SteadyAnswers) -> None:
        """Answers of a follower."""
        replicas = self._replicas
        for row in message.rows:
            key, epoch, base, match = row
            replica = replicas.get(key) or self._replica(key)
            if replica is not None and not replica.acknowledged_steadily(
                source, epoch, base, match
            ):
                replica.receive(source, AnswerRow(*row).message)

    def _replica(self, key: RowKey) -> GroupReplica | None:
        replica = self._find(partition_key(key))
        if replica is not None:
            self._replicas[key], self._keys[replica] = replica, key
        return replica

    # What goes

    def send(
        self, replica: SteadyReplica, to: tuple[NodeId, ...], run: KeptRun | Run, committed: Offset
    ) -> None:
        """The followers `to` are to get a run: with others in one message, or by itself if it is
        in a file."""
        if isinstance(run, Run):
            self._send_slice(replica, to, run, committed)
            return
        appends = self._appends.get(to)
        if appends is None:
            appends = self._appends[to] = _Appends()
        epoch, base, end, records = run
        size_bytes = len(records)
        row = (self._key_of(replica), epoch, base, end, committed, size_bytes)
        appends.rows.append(_append_row(row))
        appends.records.append(records)
        appends.size_bytes += size_bytes
        if appends.size_bytes > _MESSAGE_BYTES:
            del self._appends[to]
            self._say(to, appends.message)

    def _send_slice(
        self, replica: SteadyReplica, to: tuple[NodeId, ...], run: Run, committed: Offset
    ) -> None:
        records = run.records
        assert isinstance(records, LogSlice)
        row = AppendRow(
            key=self._key_of(replica),
            epoch=run.epoch,
            base=run.base_offset,
            end=run.end_offset,
            committed=committed,
            size_bytes=len(records),
        )
        self._say(to, SteadyAppends([row], [records]))

    def stage(
        self,
        replica: SteadyReplica,
        token: int,
        end: Offset,
        leader: NodeId = _NOBODY,
        epoch: Epoch = NO_EPOCH,
        base: Offset = NO_OFFSET,
    ) -> None:
        """The log up to `end` is durable with what is staged now. Then tell the replica, and have
        the leader hear, if it waits for it, that it has the run that begins at `base`."""
        self._staged.append((replica, token, end, leader, epoch, base))

    def stage_solo(self, replica: SteadyReplica, epoch: Epoch, end: Offset) -> None:
        """The same of one that is solo in that epoch, whose core has not heard of it."""
        self._staged.append((replica, _SOLO, end, _NOBODY, epoch, NO_OFFSET))

    def answer(
        self, replica: SteadyReplica, to: NodeId, epoch: Epoch, base: Offset, match: Offset
    ) -> None:
        """A leader is to hear that its run is here, for good."""
        row = _answer_row((self._key_of(replica), epoch, base, match))
        answers = self._answers.get(to)
        if answers is None:
            self._answers[to] = [row]
        else:
            answers.append(row)

    def close_turn(self) -> None:
        """Give the outbox all that has come together."""
        if self._staged:
            staged, self._staged = self._staged, []
            self._outbox.stage((), partial(self._persisted, staged))
        if self._appends:
            all_appends, self._appends = self._appends, {}
            for to, appends in all_appends.items():
                self._say(to, appends.message)
        self._send_answers()

    def _say(self, to: tuple[NodeId, ...], message: SteadyAppends) -> None:
        for node in to:
            self._outbox.send(node, message)

    def _send_answers(self) -> None:
        if self._answers:
            all_answers, self._answers = self._answers, {}
            for to, rows in all_answers.items():
                self._outbox.send(to, SteadyAnswers(rows))

    def _persisted(self, staged: list[_Staged]) -> None:
        for replica, token, end, leader, epoch, base in staged:
            if token == _SOLO:
                replica.persisted_solo(epoch, end)
            elif replica.failure is None:
                if leader != _NOBODY:
                    self.answer(replica, leader, epoch, base, end)
                replica.persisted_steadily(token, end)

    def _key_of(self, replica: SteadyReplica) -> RowKey:
        key = self._keys.get(replica)
        if key is None:
            key = self._keys[replica] = row_key(replica.key)
        return key
