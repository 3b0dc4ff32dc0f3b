"""A member of a group of the classic protocol, as far as it knows where it stands."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from tidemark.partitions.state_machines.groups.requests import (
    NO_GENERATION,
    UNKNOWN_MEMBER,
    Commit,
    Heartbeat,
    Join,
    JoinAnswer,
    OffsetToCommit,
    Sync,
    SyncAnswer,
)
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.types import Offset, TopicPartition
from tidemark.testing.simulator.rpc import Answered
from tidemark.testing.simulator.transactions.asking import FetchOffset
from tidemark.testing.simulator.transactions.places import Places
from tidemark.testing.simulator.transactions.talker import Talker

SESSION_MS: Final = 2000
REBALANCE_MS: Final = 1000
_PATIENCE_SECONDS: Final = 3.0


class Member:
    """Joins, and knows its part."""

    def __init__(self, talker: Talker, joining: Talker, places: Places, group_id: str) -> None:
        """`joining` waits for answers as long as a rebalance may take."""
        self._talker = talker
        self._joining = joining
        self._places = places
        self._key = places.groups_coordinator(group_id)
        self.group_id = group_id
        self.id = UNKNOWN_MEMBER
        self.generation = NO_GENERATION

    @property
    def now(self) -> float:
        return self._talker.now

    async def join(self) -> Sequence[TopicPartition] | None:
        """What it may read in the new generation; `None`: it has to be tried again."""
        join = Join(
            group_id=self.group_id,
            member_id=self.id,
            instance_id=None,
            client_id=self._talker.session.name,
            client_host="/",
            protocol_type="consumer",
            protocols=self._protocols(),
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            new_member_id=UNKNOWN_MEMBER,
        )
        answer = await self._joining.ask(self._key, join)
        joined = answer.value
        if isinstance(joined, JoinAnswer) and answer.error is ErrorCode.MEMBER_ID_REQUIRED:
            self.id = joined.member_id
            return None
        if answer.error is not ErrorCode.NONE or not isinstance(joined, JoinAnswer):
            self._refused(answer.error)
            return None
        self.id, self.generation = joined.member_id, joined.generation
        return await self._sync(joined)

    async def _sync(self, joined: JoinAnswer) -> Sequence[TopicPartition] | None:
        sync = Sync(
            group_id=self.group_id,
            member_id=self.id,
            instance_id=None,
            generation=self.generation,
            protocol_type=joined.protocol_type,
            protocol=joined.protocol,
            assignments=self._assign(joined) if joined.leader == self.id else {},
        )
        answer = await self._joining.ask(self._key, sync)
        if answer.error is not ErrorCode.NONE or not isinstance(answer.value, SyncAnswer):
            self._refused(answer.error)
            return None
        return self._read(answer.value.assignment)

    def _protocols(self) -> tuple[tuple[str, bytes], ...]:
        """What it can share out the group's partitions by, and what it says for each."""
        return (("range", b""),)

    def _assign(self, joined: JoinAnswer) -> dict[str, bytes]:
        """As the leader: everybody's part."""
        members = sorted(member.member_id for member in joined.members)
        parts = {id: self._places.inputs[at :: len(members)] for at, id in enumerate(members)}
        return {
            id: json.dumps([(each.topic, each.partition) for each in part]).encode()
            for id, part in parts.items()
        }

    def _read(self, assignment: bytes) -> Sequence[TopicPartition]:
        """What it was given."""
        return [TopicPartition(*each) for each in json.loads(assignment or b"[]")]

    def _refused(self, error: ErrorCode) -> None:
        """It is told that it is not what it takes itself for."""
        if error is ErrorCode.UNKNOWN_MEMBER_ID:
            self.id = UNKNOWN_MEMBER

    async def heartbeat(self) -> bool:
        """Say that it lives; false: it has to join anew."""
        answer = await self._beat()
        # Without an answer it goes on, and is mistaken perhaps: that is for others to notice.
        return answer.error is ErrorCode.NONE or answer.error.retriable

    async def _beat(self) -> Answered:
        heartbeat = Heartbeat(
            group_id=self.group_id,
            member_id=self.id,
            instance_id=None,
            generation=self.generation,
        )
        answer = await self._talker.ask(self._key, heartbeat)
        self._refused(answer.error)
        return answer

    async def position(self, partition: TopicPartition) -> Offset | None:
        """Where the group goes on; `None` if that is not to be had."""
        asked = FetchOffset(group_id=self.group_id, partition=partition)
        answer = await self._talker.ask_again(self._key, asked, _PATIENCE_SECONDS)
        if answer.error is not ErrorCode.NONE or not isinstance(answer.value, int):
            return None
        return Offset(max(answer.value, 0))

    def commit(self, partition: TopicPartition, offset: Offset) -> Commit:
        """What it says to have read that far; before it has joined, as nobody."""
        return Commit(
            group_id=self.group_id,
            offsets={partition: OffsetToCommit(offset=offset)},
            generation=self.generation,
            member_id=self.id,
        )
