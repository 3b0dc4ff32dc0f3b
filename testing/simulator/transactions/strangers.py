"""Producers that commit offsets of one group in their transactions, and are none of its members.

Nobody keeps them from having transactions open at once: of one partition the last record counts,
in whichever order they end.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Final

from tidemark.partitions.state_machines.groups.requests import (
    NO_GENERATION,
    UNKNOWN_MEMBER,
    Commit,
    OffsetToCommit,
)
from tidemark.testing.simulator.transactions.producer import Failed, Fenced, TransactionalProducer
from tidemark.testing.simulator.transactions.talker import Talker

if TYPE_CHECKING:
    from tidemark.testing.simulator.transactions.clients import NewProducer
    from tidemark.testing.simulator.transactions.play import Play

STRANGERS: Final = "strangers"
_OPEN_SECONDS_MAX: Final = 0.5
_ABORTS: Final = 0.3


class Stranger:
    """One of them."""

    def __init__(self, play: Play, talker: Talker, new_producer: NewProducer) -> None:
        self._play = play
        self._talker = talker
        self._new_producer = new_producer
        self._offsets = count(1)

    async def run(self) -> None:
        while not self._play.is_stopped:
            producer = self._new_producer()
            try:
                await producer.init()
                while not self._play.is_stopped:
                    await self._commit(producer)
            except Fenced:
                await self._talker.sleep(self._talker.rng.random())

    async def _commit(self, producer: TransactionalProducer) -> None:
        rng = self._talker.rng
        producer.begin()
        try:
            await producer.commit_offset(self._said())
            await self._talker.sleep(rng.random() * _OPEN_SECONDS_MAX)
            if rng.random() < _ABORTS:
                raise Failed("as it wishes")
        except Failed:
            await producer.abort()
        else:
            await producer.end(is_commit=True)

    def _said(self) -> Commit:
        partition = self._play.places.inputs[0]
        return Commit(
            group_id=STRANGERS,
            offsets={partition: OffsetToCommit(offset=next(self._offsets))},
            generation=NO_GENERATION,
            member_id=UNKNOWN_MEMBER,
        )
