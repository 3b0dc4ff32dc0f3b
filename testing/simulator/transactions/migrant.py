"""Members of a group that is restarted process by process, from one protocol to the other and back
(KIP-848's migration), while the others read on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from random import Random
from typing import Final

from tidemark.partitions.state_machines.groups.requests import Commit
from tidemark.protocol.types import Offset, TopicPartition
from tidemark.testing.checkers.violation import Violation
from tidemark.testing.simulator.transactions.classic_consumer import ClassicConsumer
from tidemark.testing.simulator.transactions.consumer_member import ConsumerMember
from tidemark.testing.simulator.transactions.holdings import Holdings
from tidemark.testing.simulator.transactions.member import Member
from tidemark.testing.simulator.transactions.places import Places
from tidemark.testing.simulator.transactions.talker import Talker

_LEAVES: Final = 0.7
"""The others are killed: their session has to end."""
_AS_ROLLED_OUT: Final = 0.95
_LOOK_SECONDS: Final = 0.1
_HANGS: Final = 0.5
_HASTENS: Final = 0.5
_STARTS_LATE: Final = 0.5
_STARTS_SECONDS_MAX: Final = 1.0
"""The others have what it read by then, and have to give it up again."""
_ROUND_SECONDS_MAX: Final = 5.0
"""To join again, with a coordinator in between that begins to count anew."""
SETTLE_SECONDS_MAX: Final = 12.0
"""The sessions of who was killed last end, and the rebalance after that, with requests that nobody
has answered in between."""

Process = ClassicConsumer | ConsumerMember


class Rollout:
    """Of one group: which protocol the next process speaks, and whether all has come to rest."""

    def __init__(
        self,
        group_id: str,
        places: Places,
        rng: Random,
        kind_of: Callable[[str], str | None],
        has_coordinator: Callable[[str], bool],
        *,
        is_hasty: bool,
    ) -> None:
        """`kind_of` says what the group's coordinator takes it for, if there is one. `is_hasty`:
        one of the consumer protocol comes when a classic one lets go, and at no other time."""
        self._group_id = group_id
        self._places = places
        self._rng = rng
        self._kind_of = kind_of
        self._has_coordinator = has_coordinator
        self.is_hasty = is_hasty
        self._begun = 0
        self._settling_since: float | None = None
        self._settling = 0
        self._is_over = False
        self._hangs = rng.random() < _HANGS
        self._hanging: Migrant | None = None
        self.is_hastened = False
        """Whether the next one is to come at once, and is of the consumer protocol."""
        self.members: list[Migrant] = []

    def begin_next(self) -> bool:
        """Whether it is of the consumer protocol: all of one, then all of the other, but for some
        that were forgotten."""
        if self.is_hastened:
            self.is_hastened = False
            return True
        if self.is_hasty:
            return False
        wave, self._begun = self._begun // len(self.members), self._begun + 1
        return (wave % 2 == 1) == (self._rng.random() < _AS_ROLLED_OUT)

    def hasten(self) -> None:
        """Somebody is about to give up a part of what it reads: what if the group changes now?"""
        self.is_hastened = self.is_hasty or self._rng.random() < _HASTENS

    def begins_to_settle(self, now: float) -> None:
        """One more of its members is replaced no more."""
        self._settling += 1
        self._settling_since = now

    def leave_hanging(self, member: Migrant) -> bool:
        """Whether this is the one that goes on reading, and joins no more. Somebody else comes late
        then, so that the group has to do without it."""
        process = member.process
        is_ready = isinstance(process, ClassicConsumer) and process.is_settled
        if self._hangs and is_ready and self._hanging is None and len(self.members) > 1:
            self._hanging = member
        return self._hanging is member

    def comes_back(self) -> None:
        """Whoever was out joins like anybody."""
        self._hanging = None

    def is_late(self, member: Migrant) -> bool:
        """Whether that is for this one to do: the last."""
        is_last = self._settling == len(self.members) - 1
        return is_last and self._hanging not in (None, member)

    def look_whether_settled(self, now: float) -> bool:
        """Whether the members read everything, each its part, and know of nothing left to do.

        Raises `Violation` if that takes too long, from when there is a coordinator to be asked.
        """
        self._is_over = self._is_over or not (why := self._why_not())
        if self._is_over:
            return True
        if not self._has_coordinator(self._group_id):
            self._settling_since = now
        since = self._settling_since
        if self._settling == len(self.members) and since and now - since > SETTLE_SECONDS_MAX:
            raise Violation("a group settles", self._group_id, why)
        return False

    def _why_not(self) -> str:
        if self._settling < len(self.members):
            return "some members are being replaced"
        hanging = self._hanging.process if self._hanging else None
        processes = [member.process for member in self.members]
        reads = [partition for process in processes for partition in process.reads]
        if not all(process.is_settled for process in processes if process is not hanging):
            return f"some of {[process.id for process in processes]} have to join"
        if sorted(reads) != [*self._places.inputs]:
            return f"{sorted(reads)} are read"
        has_consumers = any(isinstance(process, ConsumerMember) for process in processes)
        wanted = "consumer" if has_consumers else "classic"
        if (kind := self._kind_of(self._group_id)) != wanted:
            return f"the group is {kind}, and its members make it {wanted}"
        return ""


class Migrant(Member):
    """Whoever is started in one place, one process after the other."""

    def __init__(
        self,
        talker: Talker,
        joining: Talker,
        places: Places,
        group_id: str,
        rollout: Rollout,
        holdings: Holdings,
        *,
        replaced_per_second: float,
        is_cooperative: bool,
        slow_to_join: float,
    ) -> None:
        super().__init__(talker, joining, places, group_id)
        self._rollout = rollout
        self._holdings = holdings
        self._replaced_per_second = replaced_per_second
        self._is_cooperative = is_cooperative
        self._slow_to_join = slow_to_join
        self._numbers = count(1)
        self._is_replaced = True
        rollout.members.append(self)
        self.process: Process = self._begin(is_of_consumer_protocol=False)

    async def join(self) -> Sequence[TopicPartition] | None:
        return await self.process.join()

    async def heartbeat(self) -> bool:
        if self._is_replaced and (self.now >= self._until or self._rollout.is_hastened):
            await self._replace()
            return False
        return await self.process.heartbeat()

    def commit(self, partition: TopicPartition, offset: Offset) -> Commit:
        return self.process.commit(partition, offset)

    async def settle(self) -> None:
        """Go on as a member, and be replaced no more, until the group has come to rest."""
        self._is_replaced = False
        if isinstance(self.process, ClassicConsumer):
            self.process.hurries()
        is_hanging = self._rollout.leave_hanging(self)
        if self._rollout.is_late(self):
            await self._replace()
        self._rollout.begins_to_settle(self.now)
        if is_hanging:
            await self._hang()
        while not self._rollout.look_whether_settled(self.now):
            await self.process.join()
            await self._talker.sleep(_LOOK_SECONDS)

    async def _hang(self) -> None:
        """Say that it lives, as Kafka's clients do while records are at work, until it is out.

        Raises `Violation` if it is asked to join for longer than anybody is waited for.
        """
        process, asked_since = self.process, self.now
        assert isinstance(process, ClassicConsumer)
        while process.is_settled and not self._rollout.look_whether_settled(self.now):
            if not await process.ask_whether_to_join():
                asked_since = self.now
            elif self.now - asked_since > _ROUND_SECONDS_MAX:
                what = f"{process.id} is asked to join since {asked_since:.3f}"
                raise Violation("who does not join in time is out", self.group_id, what)
            await self._talker.sleep(_LOOK_SECONDS)
        self._rollout.comes_back()

    async def _replace(self) -> None:
        if self._talker.rng.random() < _LEAVES:
            await self.process.leave()
        else:
            self.process.vanish()
        is_of_consumer_protocol = self._rollout.begin_next()
        if not is_of_consumer_protocol and self._starts_late():
            await self._talker.sleep(self._talker.rng.random() * _STARTS_SECONDS_MAX)
        self.process = self._begin(is_of_consumer_protocol=is_of_consumer_protocol)

    def _starts_late(self) -> bool:
        return self._rollout.is_hasty or self._talker.rng.random() < _STARTS_LATE

    def _begin(self, *, is_of_consumer_protocol: bool) -> Process:
        self._until = self.now + self._talker.rng.expovariate(self._replaced_per_second)
        talker, places, group_id = self._talker, self._places, self.group_id
        if is_of_consumer_protocol:
            name = f"member {talker.session.name} {next(self._numbers)}"
            return ConsumerMember(talker, places, group_id, self._holdings, name=name)
        return ClassicConsumer(
            talker,
            self._joining,
            places,
            group_id,
            self._holdings,
            is_cooperative=self._is_cooperative,
            lets_go=self._rollout.hasten,
            slow_to_join=self._slow_to_join if self._is_replaced else 0.0,
        )
