"""A member of a group of the consumer protocol (KIP-848): the coordinator says what it reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tidemark.partitions.state_machines.groups.consumer.member import (
    JOINING_EPOCH,
    LEAVING_EPOCH,
)
from tidemark.partitions.state_machines.groups.requests import (
    ConsumerHeartbeat,
    ConsumerHeartbeatAnswer,
)
from tidemark.partitions.state_machines.groups.topic_view import TopicIdPartition
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.types import TopicPartition
from tidemark.testing.simulator.rpc import Answered
from tidemark.testing.simulator.transactions.holdings import Holdings
from tidemark.testing.simulator.transactions.member import REBALANCE_MS, Member
from tidemark.testing.simulator.transactions.places import Places
from tidemark.testing.simulator.transactions.talker import Talker

_FENCED: Final = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH})


class ConsumerMember(Member):
    """Its generation is its epoch. It says what it owns with each heartbeat, and gives up what it
    is told to: who reads a partition next is told only then."""

    reads: tuple[TopicPartition, ...] = ()
    _told: tuple[TopicPartition, ...] = ()
    """What it is to read, by the latest answer."""
    _is_heard = False
    """Whether its last request was granted."""
    _heard_at = 0.0
    """When it asked for that."""
    _times_granted = 0
    """How often that has been so, by what its coordinators have said until then."""
    _owes = False
    """Whether it reads what it is not to read, by the latest answer."""
    _stays_since = 0.0
    """When it asked for what it cannot be put out for so soon. Its time to give something up runs
    from when that was said first, which it may not have heard."""

    def __init__(
        self, talker: Talker, places: Places, group_id: str, holdings: Holdings, name: str = ""
    ) -> None:
        super().__init__(talker, talker, places, group_id)
        self._holdings = holdings
        self._name = name or f"member {talker.session.name}"

    @property
    def is_settled(self) -> bool:
        """Whether it has nothing to do but to read."""
        return self.generation > JOINING_EPOCH and self.reads == self._told

    async def join(self) -> Sequence[TopicPartition] | None:
        """What it may read by now; `None`: it is no member yet. What it is to give up, it has."""
        self.id = self._name
        if self.generation <= JOINING_EPOCH:
            self.generation = JOINING_EPOCH
        self._give_up()
        await self._beat()
        if self.generation <= JOINING_EPOCH:
            return None
        self._take(self._told)
        return self.reads

    async def heartbeat(self) -> bool:
        """Say that it lives; false: it is to read something else, or nothing."""
        answer = await self._beat()
        is_heard = answer.error is ErrorCode.NONE or answer.error.retriable
        return is_heard and self.reads == self._told

    async def leave(self) -> None:
        """Say so, if anybody knows of it."""
        self.vanish()
        if self.generation > JOINING_EPOCH:
            leaving = ConsumerHeartbeat(
                group_id=self.group_id, member_id=self.id, epoch=LEAVING_EPOCH
            )
            await self._talker.ask(self._key, leaving)

    def vanish(self) -> None:
        """Read nothing any more, and say nothing of it."""
        self._take(())

    def _give_up(self) -> None:
        """What it is not to read any more, before it says so."""
        self.reads = tuple(each for each in self.reads if each in self._told)
        self._holdings.only(self.group_id, self.id, self.reads)

    def _take(self, told: tuple[TopicPartition, ...]) -> None:
        self.reads = told
        self._note_reads(self._heard_at)

    def _note_reads(self, asked: float) -> None:
        self._holdings.now(self.group_id, self.id, self.reads, asked=asked, now=self.now)

    async def _beat(self) -> Answered:
        # Who has heard nothing says everything: it is told again then what it may have missed.
        is_full = self.generation == JOINING_EPOCH or not self._is_heard
        inputs = {self._places.key(each): each for each in self._places.inputs}
        owned = (self._places.key(each) for each in self.reads)
        heartbeat = ConsumerHeartbeat(
            group_id=self.group_id,
            member_id=self.id,
            epoch=self.generation,
            client_id=self._talker.session.name,
            client_host="/",
            rebalance_timeout_ms=REBALANCE_MS if is_full else None,
            topics=frozenset(each.topic for each in inputs.values()) if is_full else None,
            owned=frozenset(TopicIdPartition(key.topic_id, key.partition) for key in owned),
        )
        asked = self.now
        answer = await self._talker.ask(self._key, heartbeat)
        self._is_heard = answer.error is ErrorCode.NONE
        if answer.error is ErrorCode.UNKNOWN_MEMBER_ID and self.generation > JOINING_EPOCH:
            out_of, granted = self.group_id, self._stays_since
            self._holdings.check_out(out_of, self.id, granted=granted, now=self.now)
        if answer.error in _FENCED:
            self.generation, self._told = JOINING_EPOCH, ()
            self._take(())
        said = answer.value
        if answer.error is ErrorCode.NONE and isinstance(said, ConsumerHeartbeatAnswer):
            self.generation, self._heard_at = said.epoch, asked
            if said.assignment is not None:
                self._told = tuple(
                    each
                    for key, each in inputs.items()
                    if TopicIdPartition(key.topic_id, key.partition) in said.assignment
                )
            self._stays(asked)
            self._note_reads(asked)
        return answer

    def _stays(self, asked: float) -> None:
        granted = self._holdings.times_granted(self.group_id, self.id)
        has_heard_all = granted == self._times_granted + 1
        owed, self._owes = self._owes, not {*self.reads} <= {*self._told}
        self._times_granted = granted
        if not self._owes or (has_heard_all and not owed):
            self._stays_since = asked
