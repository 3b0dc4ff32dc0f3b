"""A member of a group of the consumer protocol (KIP-848): the coordinator says what it reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tidemark.partitions.state_machines.groups.requests import (
    ConsumerHeartbeat,
    ConsumerHeartbeatAnswer,
)
from tidemark.partitions.state_machines.groups.topic_view import TopicIdPartition
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.types import TopicPartition
from tidemark.testing.checkers.violation import Violation
from tidemark.testing.simulator.rpc import Answered
from tidemark.testing.simulator.transactions.member import REBALANCE_MS, Member
from tidemark.testing.simulator.transactions.places import Places
from tidemark.testing.simulator.transactions.talker import Talker

_SURE_SECONDS: Final = 0.7
"""So long after a heartbeat that was answered, whoever it was for has not lost what it had: neither
the session's time is over nor that to give up, by any clock."""
_FENCED: Final = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH})
_JOINING: Final = 0


class Holdings:
    """Who reads what, as far as members know it themselves."""

    def __init__(self, *, is_judged: bool) -> None:
        """Not where requests come late or twice: a doubled one can be the sender's new beginning,
        which it does not know of."""
        self._is_judged = is_judged
        self._held: dict[tuple[str, TopicPartition], tuple[str, float]] = {}

    def now(self, member: Member, assigned: Sequence[TopicPartition], asked: float) -> None:
        """A heartbeat from then was answered: these are its member's."""
        group, now = member.group_id, member.now
        mine = [key for key, (name, _) in self._held.items() if name == member.id]
        for key in mine:
            if key[0] == group:
                del self._held[key]
        for partition in assigned:
            other, since = self._held.get((group, partition), ("", -1e9))
            if other and self._is_judged and now - since < _SURE_SECONDS:
                what = f"{member.id} and {other} of {group}, at {now:.3f} and {since:.3f}"
                raise Violation("one member reads a partition", str(partition), what)
            self._held[group, partition] = member.id, asked


class ConsumerMember(Member):
    """Its generation is its epoch. It says what it owns with each heartbeat, and gives up what it
    is told to: who reads a partition next is told only then."""

    _assigned: tuple[TopicPartition, ...] = ()
    """What it reads."""
    _told: tuple[TopicPartition, ...] = ()
    """What it is to read, by the latest answer."""
    _heard_at = 0.0
    """When it asked for that."""

    def __init__(self, talker: Talker, places: Places, group_id: str, holdings: Holdings) -> None:
        super().__init__(talker, talker, places, group_id)
        self._holdings = holdings

    async def join(self) -> Sequence[TopicPartition] | None:
        """What it may read by now; `None`: it is no member yet. What it is to give up, it has."""
        self.id = self.id or f"member {self._talker.session.name}"
        if self.generation <= _JOINING:
            self.generation = _JOINING
        self._assigned = self._told
        await self._beat()
        if self.generation <= _JOINING:
            return None
        self._take(self._told)
        return self._assigned

    async def is_current(self) -> bool:
        """Say that it lives; false: it is to read something else, or nothing."""
        answer = await self._beat()
        is_heard = answer.error is ErrorCode.NONE or answer.error.retriable
        return is_heard and self._assigned == self._told

    def _take(self, told: tuple[TopicPartition, ...]) -> None:
        self._assigned = told
        self._holdings.now(self, told, self._heard_at)

    async def _beat(self) -> Answered:
        is_joining = self.generation == _JOINING
        inputs = {self._places.key(each): each for each in self._places.inputs}
        owned = (self._places.key(each) for each in self._assigned)
        heartbeat = ConsumerHeartbeat(
            group_id=self.group_id,
            member_id=self.id,
            epoch=self.generation,
            client_id=self._talker.session.name,
            client_host="/",
            rebalance_timeout_ms=REBALANCE_MS if is_joining else None,
            topics=frozenset(each.topic for each in inputs.values()) if is_joining else None,
            owned=frozenset(TopicIdPartition(key.topic_id, key.partition) for key in owned),
        )
        asked = self.now
        answer = await self._talker.ask(self._key, heartbeat)
        if answer.error in _FENCED:
            self.generation, self._told = _JOINING, ()
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
            self._holdings.now(self, self._assigned, asked)
        return answer
