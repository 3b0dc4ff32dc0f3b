"""A group's commits, made by a member or from outside."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Final

import trio

from tidemark.client.connection import Connection
from tidemark.client.coordinator import (
    OUTSIDE,
    GroupMembership,
    Membership,
    as_commit,
    commit,
    fetch_commits,
    on_coordinator,
)
from tidemark.client.descriptions import BrokerDescription, CommittedOffset
from tidemark.client.group import GroupMember
from tidemark.client.network import Network
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.types import Offset, TopicPartition

_REBALANCES: Final = frozenset({ErrorCode.ILLEGAL_GENERATION, ErrorCode.REBALANCE_IN_PROGRESS})
_NO_GENERATION: Final = 0
"""No group has it: the first is 1."""


class Committer:
    """Commits for one group, in the name of `member` as it is at that moment, if there is one."""

    def __init__(self, network: Network, group: str, member: GroupMember | None) -> None:
        self._network = network
        self._group = group
        self._member = member
        self._committing = trio.Lock()
        self._last: dict[TopicPartition, Offset] = {}  # what try_commit need not repeat

    async def commit(
        self,
        offsets: Mapping[TopicPartition, int | CommittedOffset],
        *,
        is_kept: Callable[[], bool] = lambda: False,
    ) -> None:
        """Commit; raises `RequestError` for the first partition that was refused.

        The offsets are of the generation in which this is called. A retry makes them the next
        one's only if `is_kept`, that is, the member has had all these partitions without a break.
        Else they may be another member's, whose commit would be set back.
        """
        commits = {tp: as_commit(offset) for tp, offset in offsets.items()}
        membership = self._membership
        deadline = trio.current_time() + self._network.settings.retry_timeout_seconds
        # One after the other: one that is being tried again would set a later one back.
        async with self._committing:
            for pause in self._network.settings.backoff.delays(self._network.random):
                try:
                    await self._commit(commits, membership)
                    return
                except RequestError as error:
                    if error.code not in _REBALANCES or trio.current_time() + pause > deadline:
                        raise
                    if not self._may_go_on(error.code, membership):
                        raise
                    refusal = error
                await trio.sleep(pause)
                if not (is_kept() and self._goes_on_as(self._membership, membership)):
                    raise refusal
                membership = self._membership

    def _may_go_on(self, code: ErrorCode, membership: Membership) -> bool:
        """Whether the refusal of a commit in that name may be of a rebalance, and pass with it."""
        if self._member is None or not self._goes_on_as(self._membership, membership):
            return False
        # In this generation all is over, unless there is one that the member is not told yet.
        is_over = code is ErrorCode.ILLEGAL_GENERATION and self._membership == membership
        return self._member.is_joining or not is_over

    @staticmethod
    def _goes_on_as(now: Membership, then: Membership) -> bool:
        """Whether it is still that member, and not one that has lost its place."""
        return now.member_id == then.member_id and now.generation >= then.generation

    async def _commit(
        self, commits: Mapping[TopicPartition, CommittedOffset], membership: Membership
    ) -> None:
        if not commits:
            return

        async def ask(_: BrokerDescription, connection: Connection) -> None:
            await commit(connection, self._group, commits, membership)

        await on_coordinator(self._network, self._group, ask)
        self._last |= {tp: committed.offset for tp, committed in commits.items()}

    @property
    def group_membership(self) -> GroupMembership:
        """In whose name commits are made now."""
        membership = self._membership
        if self._member is not None and membership.generation < 0:
            # Else it would be taken for one that is in no group, and whose commits nobody checks.
            membership = replace(membership, generation=_NO_GENERATION)
        return GroupMembership(group=self._group, membership=membership)

    @property
    def _membership(self) -> Membership:
        return OUTSIDE if self._member is None else self._member.membership

    async def try_commit(self, done: Callable[[], Mapping[TopicPartition, Offset]]) -> None:
        """Commit what is new in `done`, which is asked once the commits before this are made.

        A refusal is not an error here: what is not committed is read again by whoever gets the
        partition next.
        """
        async with self._committing:
            new = {tp: as_commit(at) for tp, at in done().items() if self._last.get(tp) != at}
            with suppress(OSError, RequestError):
                await self._commit(new, self._membership)

    async def committed(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, CommittedOffset]:
        """The commits of these partitions; those without one are left out."""
        asked = list(partitions)

        async def ask(
            _: BrokerDescription, connection: Connection
        ) -> dict[TopicPartition, CommittedOffset]:
            return await fetch_commits(connection, self._group, asked)

        found = await on_coordinator(self._network, self._group, ask)
        self._last |= {tp: committed.offset for tp, committed in found.items()}
        return found
