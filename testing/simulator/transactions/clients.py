"""What the clients do, over and over: write, transform, count, look on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import TYPE_CHECKING, Final

from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.types import READ_COMMITTED, Offset, TopicPartition
from tidemark.testing.checkers.transactions import Commit
from tidemark.testing.simulator.transactions.asking import Found, Read
from tidemark.testing.simulator.transactions.member import Member
from tidemark.testing.simulator.transactions.producer import (
    Failed,
    Fenced,
    TransactionalProducer,
)
from tidemark.testing.simulator.transactions.readers import Cursor
from tidemark.testing.simulator.transactions.talker import Talker

if TYPE_CHECKING:
    from tidemark.testing.simulator.transactions.play import Play

TRANSFORMERS: Final = "transformers"
COUNTERS: Final = "counters"
_ABORTS: Final = 0.15
_CRASHES: Final = 0.05
_PAUSES: Final = 0.1
_KEYS: Final = 4
_PACE: Final = 15.0
"""How often in a second something new is begun."""
_READ_BYTES: Final = 150

NewProducer = Callable[[], TransactionalProducer]


class Writer:
    """One of those who share a transactional id: begins anew whenever it is fenced."""

    def __init__(
        self, play: Play, talker: Talker, new_producer: NewProducer, *, aborts: float, pauses: float
    ) -> None:
        self._play = play
        self._talker = talker
        self._new_producer = new_producer
        self._aborts = aborts
        self._pauses = pauses
        self._values = count(1)

    async def run(self) -> None:
        talker, rng = self._talker, self._talker.rng
        while not self._play.is_stopped:
            producer = self._new_producer()
            try:
                await producer.init()
                while not self._play.is_stopped:
                    await self._write(producer)
                    await talker.sleep(rng.expovariate(_PACE))
            except Fenced:
                await talker.sleep(rng.expovariate(1.0))

    async def _write(self, producer: TransactionalProducer) -> None:
        talker, rng, play = self._talker, self._talker.rng, self._play
        play.transactions.append(producer.begin())
        try:
            where = [*play.places.words, *play.places.table]
            chosen = rng.sample(where, rng.randint(1, len(where)))
            if rng.random() < 0.5:
                await producer.add(chosen)
            for partition in chosen:
                for _ in range(rng.randint(1, 2)):
                    await self._send(producer, partition)
                if rng.random() < self._pauses:
                    await talker.sleep(rng.random() * 3)
            if rng.random() < _CRASHES:
                raise Fenced
            if rng.random() < self._aborts:
                raise Failed("as it wishes")
        except Failed:
            await producer.abort()
        else:
            await producer.end(is_commit=True)

    async def _send(self, producer: TransactionalProducer, partition: TopicPartition) -> None:
        rng, name = self._talker.rng, self._talker.session.name
        values = [f"{name}/{next(self._values)}" for _ in range(rng.randint(1, 3))]
        await producer.send(partition, f"k{rng.randrange(_KEYS)}", values)


class Transformer:
    """Each input becomes an output, in the transaction that commits how far its group has read.

    A member of the group; or, where partitions are `assigned` to it, nobody that the group knows:
    then its transactional id is that of the partition, and fences who had it before.
    """

    def __init__(
        self,
        play: Play,
        talker: Talker,
        member: Member,
        new_producer: NewProducer,
        assigned: Sequence[TopicPartition] = (),
    ) -> None:
        self._play = play
        self._talker = talker
        self._member = member
        self._new_producer = new_producer
        self._assigned = assigned
        self._attempts = count(1)

    async def run(self) -> None:
        rng = self._talker.rng
        while not self._play.is_stopped:
            producer = self._new_producer()
            try:
                await producer.init()
                while not self._play.is_stopped:
                    await self._take_part(producer)
                    await self._talker.sleep(rng.expovariate(_PACE))
            except Fenced:
                await self._talker.sleep(rng.expovariate(1.0))

    async def _take_part(self, producer: TransactionalProducer) -> None:
        """Until it has to join again."""
        assigned = self._assigned or await self._member.join()
        if assigned is None:
            return
        cursors: dict[TopicPartition, Cursor] = {}
        while not self._play.is_stopped and (self._assigned or await self._member.heartbeat()):
            for partition in assigned:
                if partition not in cursors:
                    offset = await self._member.position(partition)
                    if offset is None:
                        continue
                    cursors[partition] = Cursor(offset)
                if not await self._transform(producer, partition, cursors[partition]):
                    del cursors[partition]
            await self._talker.sleep(self._talker.rng.expovariate(_PACE))

    async def _transform(
        self, producer: TransactionalProducer, source: TopicPartition, cursor: Cursor
    ) -> bool:
        """Some inputs. Whether the cursor is where the group is."""
        play, rng, name = self._play, self._talker.rng, self._talker.session.name
        offsets = await read_some(play, self._talker, source, cursor)
        if not offsets:
            return True
        play.transactions.append(producer.begin())
        try:
            for offset in offsets:
                target = rng.choice(play.places.words)
                output = f"{source}@{offset}#{name}/{next(self._attempts)}"
                await producer.send(target, "t", [output])
            if rng.random() < _PAUSES:
                await self._talker.sleep(rng.random() * 3)
            await producer.commit_offset(self._member.commit(source, cursor.offset))
            if rng.random() < _CRASHES:
                raise Fenced
            if rng.random() < _ABORTS:
                raise Failed("as it wishes")
        except Failed:
            await producer.abort()
            return False
        transaction = producer.transaction
        await producer.end(is_commit=True)
        assert transaction is not None
        for said in transaction.commits:
            play.commits.append(said._replace(ended=self._talker.now))
        return True


class Counter:
    """A member of a group that only reads, and commits how far it has got."""

    def __init__(self, play: Play, talker: Talker, member: Member, *, pauses: float) -> None:
        self._play = play
        self._talker = talker
        self._member = member
        self._pauses = pauses

    async def run(self) -> None:
        while not self._play.is_stopped:
            await self._take_part()
            await self._talker.sleep(self._talker.rng.expovariate(_PACE))

    async def _take_part(self) -> None:
        assigned = await self._member.join()
        cursors: dict[TopicPartition, Cursor] = {}
        while assigned and not self._play.is_stopped and await self._member.heartbeat():
            for partition in assigned:
                if partition not in cursors:
                    offset = await self._member.position(partition)
                    if offset is None:
                        continue
                    cursors[partition] = Cursor(offset)
                if not await self._count(partition, cursors[partition]):
                    return
            await self._talker.sleep(self._talker.rng.expovariate(_PACE))

    async def _count(self, partition: TopicPartition, cursor: Cursor) -> bool:
        """Whether it is still a member."""
        play, member = self._play, self._member
        if not await read_some(play, self._talker, partition, cursor):
            return True
        if self._talker.rng.random() < self._pauses:
            # Long enough for the others to go on without it, which it hears of last.
            await self._talker.sleep(self._talker.rng.random() * 4)
        commit = member.commit(partition, cursor.offset)
        key = play.places.groups_coordinator(member.group_id)
        answer = await self._talker.ask_again(key, commit, 1.0)
        if answer.error is not ErrorCode.NONE:
            return False
        play.commits.append(Commit(member.group_id, partition, cursor.offset, self._talker.now))
        return True


async def read_some(
    play: Play, talker: Talker, partition: TopicPartition, cursor: Cursor
) -> list[Offset]:
    """The offsets of the records that come next, where there are some."""
    read = Read(offset=cursor.offset, bytes_max=_READ_BYTES, isolation=READ_COMMITTED)
    answer = await talker.ask(play.places.key(partition), read)
    if answer.error is not ErrorCode.NONE or not isinstance(answer.value, Found):
        return []
    records = cursor.take(answer.value, isolation=READ_COMMITTED)
    return [record.offset for record in records]
