"""A member of the classic protocol that tells its leader what it reads and owns, as Kafka's
consumers do: what a group needs to change its protocol with it (KIP-848's migration)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from tidemark.client.assignment import ASSIGNORS
from tidemark.partitions.state_machines.groups.requests import (
    NO_GENERATION,
    UNKNOWN_MEMBER,
    JoinAnswer,
    Leave,
    Leaver,
)
from tidemark.protocol.consumer_protocol import (
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.types import TopicPartition
from tidemark.testing.simulator.groups import INPUTS
from tidemark.testing.simulator.transactions.holdings import Holdings
from tidemark.testing.simulator.transactions.member import Member
from tidemark.testing.simulator.transactions.places import Places
from tidemark.testing.simulator.transactions.talker import Talker

_LET_GO_SECONDS_MAX: Final = 0.5
"""The client's listener has what it commits, or finishes, before it gives up partitions."""
_SLOW_SECONDS_MAX: Final = 3.0
"""Longer than a group waits for a member, and than a session lasts."""
_LOST: Final = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION})


class ClassicConsumer(Member):
    """An eager one gives up all that it reads before it joins. A cooperative one reads on, gives up
    what it was not given again, and then joins once more."""

    def __init__(
        self,
        talker: Talker,
        joining: Talker,
        places: Places,
        group_id: str,
        holdings: Holdings,
        *,
        is_cooperative: bool,
        lets_go: Callable[[], None],
        slow_to_join: float = 0.0,
    ) -> None:
        """`lets_go` is called when it is about to give up a part, and reads that as yet."""
        super().__init__(talker, joining, places, group_id)
        self._holdings = holdings
        self._lets_go = lets_go
        self._slow_to_join = slow_to_join
        self._assignor = ASSIGNORS["cooperative-sticky" if is_cooperative else "range"]
        self._has_to_join = True
        self.reads: Sequence[TopicPartition] = ()
        self._granted_at = -1e9
        """When it asked for what was granted last, of the generation that it is in."""
        self._joins_at = 0.0

    @property
    def is_settled(self) -> bool:
        """Whether it has nothing to do but to read."""
        return not self._has_to_join

    async def join(self) -> Sequence[TopicPartition]:
        """What it may read by now. It joins if it has to, and says that it lives if not."""
        if not self._has_to_join:
            await self.heartbeat()
            return self.reads
        if self._slow_to_join and self._talker.rng.random() < self._slow_to_join:
            await self._talker.sleep(self._talker.rng.random() * _SLOW_SECONDS_MAX)
        if not self._assignor.is_cooperative:
            self._take((), self.now)
        self._joins_at = self.now
        given = await super().join()
        if given is not None:
            self._granted_at = asked = self._joins_at
            too_many = {*self.reads} - {*given}
            if too_many:
                self._take(self.reads, asked)
                self._lets_go()
                await self._talker.sleep(self._talker.rng.random() * _LET_GO_SECONDS_MAX)
            self._take(given, asked)
            self._has_to_join = bool(too_many)
        return self.reads

    async def _sync(self, joined: JoinAnswer) -> Sequence[TopicPartition] | None:
        if joined.leader:  # all have waited for each other: what was owned then is so still
            self._joins_at = self.now
        return await super()._sync(joined)

    async def heartbeat(self) -> bool:
        """Say that it lives; false: it has to join anew."""
        if self._has_to_join:
            return False
        asked, id = self.now, self.id
        answer = await self._beat()
        if answer.error is ErrorCode.NONE:
            self._take(self.reads, asked)
            self._granted_at = asked
        elif answer.error in _LOST:
            self._holdings.check_out(self.group_id, id, granted=self._granted_at, now=self.now)
        elif not answer.error.retriable:
            self._has_to_join = True
        return not self._has_to_join

    async def ask_whether_to_join(self) -> bool:
        """Say that it lives, and do no more, whatever there is to do."""
        return (await self._beat()).error is ErrorCode.REBALANCE_IN_PROGRESS

    def hurries(self) -> None:
        """It joins at once from now on."""
        self._slow_to_join = 0.0

    async def leave(self) -> None:
        """Say so, if anybody knows of it."""
        self.vanish()
        if self.id:
            leave = Leave(group_id=self.group_id, leavers=(Leaver(member_id=self.id),))
            await self._talker.ask(self._key, leave)

    def vanish(self) -> None:
        """Read nothing any more, and say nothing of it."""
        self._take((), self.now)

    def _take(self, reads: Sequence[TopicPartition], asked: float) -> None:
        self.reads = reads
        self._holdings.now(self.group_id, self.id, reads, asked=asked, now=self.now)

    def _refused(self, error: ErrorCode) -> None:
        if error in _LOST:
            self._take((), self.now)
            self.generation = NO_GENERATION
            self._has_to_join = True
        if error is ErrorCode.UNKNOWN_MEMBER_ID:
            self.id = UNKNOWN_MEMBER

    # What members say to each other

    def _protocols(self) -> tuple[tuple[str, bytes], ...]:
        owned = frozenset(self.reads)
        said = Subscription(topics=(INPUTS,), owned=owned, generation=self.generation)
        return ((self._assignor.name, encode_subscription(said)),)

    def _assign(self, joined: JoinAnswer) -> dict[str, bytes]:
        said = {each.member_id: decode_subscription(each.metadata) for each in joined.members}
        parts = self._assignor.assign(said, {INPUTS: len(self._places.inputs)})
        return {member_id: encode_assignment(part) for member_id, part in parts.items()}

    def _read(self, assignment: bytes) -> Sequence[TopicPartition]:
        return decode_assignment(assignment)
