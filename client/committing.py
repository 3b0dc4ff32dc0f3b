"""A group's commits, made by a member or from outside."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

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
from tidemark.protocol.errors import RequestError
from tidemark.protocol.types import Offset, TopicPartition


class Committer:
    """Commits for one group, in the name of `member` as it is at that moment, if there is one."""

    def __init__(self, network: Network, group: str, member: GroupMember | None) -> None:
        self._network = network
        self._group = group
        self._member = member
        self._committing = trio.Lock()
        self._last: dict[TopicPartition, Offset] = {}  # what try_commit need not repeat

    async def commit(self, offsets: Mapping[TopicPartition, Offset | CommittedOffset]) -> None:
        """Commit; raises `RequestError` for the first partition that was refused.

        The offsets are of the generation in which this is called. A retry does not make them the
        next one's: there, the partitions may be another member's, whose commit would be set back.
        """
        commits = {tp: as_commit(offset) for tp, offset in offsets.items()}
        membership = self._membership
        # One after the other: one that is being tried again would set a later one back.
        async with self._committing:
            await self._commit(commits, membership)

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
        return GroupMembership(group=self._group, membership=self._membership)

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
