"""A transactional producer: one instance of a transactional id, until it is fenced or gives up.

`bumps`: it speaks the protocol in which each end raises its epoch (KIP-890), and adds no partitions
itself. An older one whose batch has an unknown fate asks for a new epoch after the abort (KIP-360).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from tidemark.partitions.state_machines.groups.requests import Commit as GroupCommit
from tidemark.partitions.state_machines.groups.requests import CommittingProducer
from tidemark.partitions.state_machines.transactions.requests import (
    Add,
    End,
    Init,
    ProducerAnswer,
)
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.records.records import Record, encode_batch
from tidemark.protocol.types import NO_PRODUCER, Offset, ProducerId, TopicPartition
from tidemark.testing.checkers.history import Outcome, Send, Value
from tidemark.testing.checkers.transactions import Commit, Transaction
from tidemark.testing.simulator.rpc import Answered
from tidemark.testing.simulator.transactions.asking import (
    CommitInTransaction,
    ProduceInTransaction,
)
from tidemark.testing.simulator.transactions.places import Places
from tidemark.testing.simulator.transactions.talker import Talker

_END_SECONDS: Final = 6.0
_FENCED: Final = frozenset(
    {
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    }
)


class Fenced(Exception):
    """Another instance has taken over, or nobody knows what has become of this one."""


class Failed(Exception):
    """The transaction has to be aborted."""


class TransactionalProducer:
    """Raises `Fenced` once it is to be begun anew."""

    def __init__(
        self,
        talker: Talker,
        places: Places,
        transactional_id: str,
        *,
        bumps: bool,
        timeout_ms: int,
        give_up_seconds: float,
    ) -> None:
        self.talker = talker
        self.transactional_id = transactional_id
        self._places = places
        self._coordinator = places.coordinator(transactional_id)
        self._bumps = bumps
        self._timeout_ms = timeout_ms
        self._give_up_seconds = give_up_seconds
        self._id = NO_PRODUCER
        self._epoch = -1
        self._sequences: dict[TopicPartition, int] = {}
        self._is_in_doubt = False
        self._added: set[TopicPartition] = set()
        self.transaction: Transaction | None = None

    async def init(self) -> None:
        """Take the id over, or go on with the next epoch."""
        request = Init(
            transactional_id=self.transactional_id,
            timeout_ms=self._timeout_ms,
            producer_id=self._id,
            epoch=self._epoch,
        )
        self._become(await self._ask(request))

    def begin(self) -> Transaction:
        self._added = set()
        now = self.talker.now
        self.transaction = Transaction(client=self.talker.session.name, started=now, ended=now)
        return self.transaction

    async def add(self, partitions: Collection[TopicPartition]) -> None:
        """For who does it itself: before anything is sent to them."""
        new = frozenset(partitions) - self._added
        if self._bumps or not new:
            return
        request = Add(
            transactional_id=self.transactional_id,
            producer_id=self._id,
            epoch=self._epoch,
            partitions=new,
        )
        self._check(await self._ask(request))
        self._added |= new

    async def send(self, partition: TopicPartition, key: str, values: Sequence[Value]) -> None:
        """One batch. Raises `Failed` if it is not known to be there."""
        transaction, started = self.transaction, self.talker.now
        assert transaction is not None
        await self.add([partition])
        sequence = self._sequences.get(partition, 0)
        records = [
            Record(Offset(at), 0, key.encode(), str(value).encode(), ())
            for at, value in enumerate(values)
        ]
        batch = encode_batch(
            records,
            producer_id=self._id,
            producer_epoch=self._epoch,
            base_sequence=sequence,
            is_transactional=True,
        )
        body = ProduceInTransaction(
            transactional_id=self.transactional_id,
            partition=partition,
            batch=batch,
            adds=self._bumps,
        )
        place = len(transaction.sends)
        transaction.sends.append(self._sent(partition, key, values, started, None))
        self._is_in_doubt = True
        answer = await self.talker.ask_again(
            self._places.key(partition), body, self._give_up_seconds
        )
        self._check(answer)
        self._is_in_doubt = False
        self._sequences[partition] = sequence + len(values)
        offset = answer.value
        assert isinstance(offset, int)
        transaction.sends[place] = self._sent(partition, key, values, started, Offset(offset))

    def _sent(
        self,
        partition: TopicPartition,
        key: str,
        values: Sequence[Value],
        started: float,
        first: Offset | None,
    ) -> Send:
        return Send(
            client=self.talker.session.name,
            partition=partition,
            values=tuple(values),
            key=key,
            started=started,
            ended=self.talker.now,
            outcome=Outcome.INFO if first is None else Outcome.OK,
            offsets=() if first is None else tuple(Offset(first + i) for i in range(len(values))),
        )

    async def commit_offset(self, commit: GroupCommit) -> None:
        """In the transaction, in the name of a member of a group."""
        assert self.transaction is not None
        await self.add([self._places.offsets_of(commit.group_id)])
        producer = CommittingProducer(ProducerId(self._id), self._epoch)
        body = CommitInTransaction(
            transactional_id=self.transactional_id,
            commit=_with_producer(commit, producer),
            adds=self._bumps,
        )
        for partition, offset in commit.offsets.items():
            said = Commit(commit.group_id, partition, Offset(offset.offset), self.talker.now)
            self.transaction.commits.append(said)
        key = self._places.groups_coordinator(commit.group_id)
        self._check(await self.talker.ask_again(key, body, self._give_up_seconds))

    async def end(self, *, is_commit: bool) -> None:
        """Raises `Fenced` if it is not known what has become of it."""
        transaction = self.transaction
        assert transaction is not None
        if is_commit:
            transaction.outcome = Outcome.INFO
        request = End(
            transactional_id=self.transactional_id,
            producer_id=self._id,
            epoch=self._epoch,
            is_commit=is_commit,
            bumps_epoch=self._bumps,
        )
        answer = await self._ask(request)
        transaction.ended = self.talker.now
        if answer.error is not ErrorCode.NONE:
            raise Fenced
        if is_commit:
            transaction.outcome = Outcome.OK
        self.transaction = None
        if self._bumps:
            self._become(answer)

    async def abort(self) -> None:
        """Whatever has gone wrong in it."""
        is_empty = not self._bumps and not self._added
        if not is_empty:
            await self.end(is_commit=False)
        self.transaction = None
        if self._is_in_doubt and not self._bumps:
            # What is late of it may come now.
            await self.talker.sleep(self.talker.rng.choice((0.0, 0.5, 2.0)))
            await self.init()

    async def _ask(self, request: Init | Add | End) -> Answered:
        return await self.talker.ask_again(self._coordinator, request, _END_SECONDS)

    def _check(self, answer: Answered) -> None:
        if answer.error in _FENCED:
            raise Fenced
        if answer.error is not ErrorCode.NONE:
            raise Failed(answer.error.name)

    def _become(self, answer: Answered) -> None:
        if answer.error is not ErrorCode.NONE:
            raise Fenced
        value = answer.value
        assert isinstance(value, ProducerAnswer)
        if (self._id, self._epoch) != (value.producer_id, value.epoch):
            self._sequences = {}
        self._id, self._epoch = value.producer_id, value.epoch
        self._is_in_doubt = False


def _with_producer(commit: GroupCommit, producer: CommittingProducer) -> GroupCommit:
    return GroupCommit(
        group_id=commit.group_id,
        offsets=commit.offsets,
        generation=commit.generation,
        member_id=commit.member_id,
        producer=producer,
    )
