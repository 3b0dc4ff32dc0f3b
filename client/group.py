"""A member of a consumer group, in Kafka's classic protocol: join, sync, heartbeat, leave.

The member's task runs rebalances in the background; the caller need not be reading for them to go
on. What has to happen to the partitions is done by its `GroupListener`, in that task, so a slow
listener delays heartbeats.

With an eager assignor everything is given up before each join. With a cooperative one the member
keeps reading; it gives up only what a new assignment lacks, and then joins again so that others
can have it.
"""

from collections.abc import Set
from contextlib import suppress
from typing import Final, Protocol

import trio

from tidemark.client.codes import check, error_code
from tidemark.client.connection import Connection
from tidemark.client.coordinator import OUTSIDE, Membership, on_coordinator
from tidemark.client.descriptions import BrokerDescription
from tidemark.client.group_coordinator import GroupCoordinator
from tidemark.client.group_leader import GroupLeader
from tidemark.client.group_requests import join_request, leave_request, sync_request
from tidemark.client.group_settings import GroupSettings
from tidemark.client.network import Network
from tidemark.client.pool import Pool
from tidemark.client.retries import STALE_COORDINATOR, may_pass
from tidemark.protocol.consumer_protocol import decode_assignment
from tidemark.protocol.errors import ErrorCode, MalformedMessage, RequestError
from tidemark.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from tidemark.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from tidemark.protocol.messages.sync_group import SyncGroupResponse
from tidemark.protocol.types import TopicPartition

# The member is not what it believes to be: it owns nothing any more.
_LOST: Final = frozenset({ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID})
_JOIN_AGAIN: Final = _LOST | {ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.MEMBER_ID_REQUIRED}


class GroupListener(Protocol):
    """What a rebalance does to the partitions."""

    async def assigned(self, partitions: frozenset[TopicPartition]) -> None:
        """These are the member's now, in addition to what it kept."""

    async def revoked(self, partitions: frozenset[TopicPartition]) -> None:
        """These are about to go to others; the group still takes this member's commits."""

    async def lost(self, partitions: frozenset[TopicPartition]) -> None:
        """These are gone already; commits would be refused."""

    def failed(self, error: OSError | RequestError) -> None:
        """The member has given up."""

    def is_callers(self, error: Exception) -> bool:
        """Whether one of the above has raised what a callback of the caller's had: no trouble of
        the group's, whatever its type, but for the caller to see."""


class GroupMember:
    """See the module."""

    def __init__(
        self,
        network: Network,
        pool: Pool,
        settings: GroupSettings,
        topics: tuple[str, ...],
        listener: GroupListener,
    ) -> None:
        self._network = network
        self._settings = settings
        self._topics = topics
        self._listener = listener
        self._coordinator = GroupCoordinator(network, pool, settings)
        self._leader = GroupLeader(network, settings.group)
        self._is_leader = False
        self._found: set[str] = set()
        """Of the topics, those that there have been."""
        self._owned: frozenset[TopicPartition] = frozenset()
        self.membership = Membership(instance_id=settings.instance_id)
        self.is_joining = False
        """Whether the next generation may have begun without this member knowing it yet."""

    async def take_part_until_cancelled(self) -> None:
        """The member's task. Ends by itself only after telling the listener why.

        Raises what a callback of the caller's has raised, and nothing else.
        """
        with self._network.using(self._topics_to_know):
            await self._take_part()

    def _topics_to_know(self) -> Set[str]:
        """Its own that there have been, and while it leads, those of the others."""
        return self._leader.topics | self._found if self._is_leader else self._found

    async def _take_part(self) -> None:
        failures, failing_since = 0, trio.current_time()
        while True:
            try:
                await self._join()
                failures = 0
                await self._stay()
            except (OSError, RequestError, MalformedMessage) as error:
                if self._listener.is_callers(error):
                    raise
                failing_since = trio.current_time() if failures == 0 else failing_since
                if not await self._heed(error, trio.current_time() - failing_since):
                    return
                backoff, random = self._network.settings.backoff, self._network.random
                if not _is_part_of_joining(error):
                    await trio.sleep(backoff.delay(failures, random))
                    failures += 1

    async def _heed(self, error: OSError | RequestError | MalformedMessage, seconds: float) -> bool:
        """Do what an error calls for; whether there is any use in going on."""
        if isinstance(error, MalformedMessage):
            error = RequestError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, str(error))
        if isinstance(error, RequestError) and error.code in _JOIN_AGAIN:
            if error.code in _LOST:
                await self._lose(keep_id=error.code is ErrorCode.ILLEGAL_GENERATION)
            return True
        too_long = seconds > self._network.settings.retry_timeout_seconds
        if not may_pass(error) or too_long:
            await self._lose(keep_id=False)
            self._listener.failed(error)
            return False
        if isinstance(error, OSError) or error.code in STALE_COORDINATOR:
            self._coordinator.forget()
            await self._network.heed(error)
        return True

    async def _lose(self, *, keep_id: bool) -> None:
        owned, self._owned = self._owned, frozenset()
        self.membership = Membership(
            member_id=self.membership.member_id if keep_id else "",
            instance_id=self._settings.instance_id,
        )
        if owned:
            await self._listener.lost(owned)

    # Joining

    async def _join(self) -> None:
        """Become a member of the next generation, and take what it gives."""
        if self._owned and not self._settings.is_cooperative:
            await self._listener.revoked(self._owned)
            self._owned = frozenset()
        for topic in self._topics:
            # One that is deleted later keeps nobody from the others.
            if topic not in self._found:
                await self._network.topic(topic)
                self._found.add(topic)
        connection = await self._coordinator.connection()
        self.is_joining = True
        try:
            joined = await self._ask_to_join(connection)
            assignments = await self._leader.assign(joined) if self._is_leader else {}
            partitions = await self._sync(connection, joined, assignments)
        finally:
            self.is_joining = False
        await self._take(partitions)

    async def _ask_to_join(self, connection: Connection) -> JoinGroupResponse:
        settings = self._settings
        version = connection.version(JoinGroupRequest)
        if settings.instance_id is not None and version < 5:
            check(ErrorCode.UNSUPPORTED_VERSION, "the broker knows no static members")
        request = join_request(settings, self.membership, self._topics, self._owned)
        answer = await connection.request(
            request, JoinGroupResponse, patience_seconds=settings.rebalance_timeout_seconds
        )
        if error_code(answer.error_code) is ErrorCode.MEMBER_ID_REQUIRED:
            self.membership = Membership(
                member_id=answer.member_id, instance_id=settings.instance_id
            )
        check(answer.error_code, f"group {settings.group}")
        self.membership = Membership(
            generation=answer.generation_id,
            member_id=answer.member_id,
            instance_id=settings.instance_id,
        )
        self._is_leader = answer.leader == answer.member_id
        return answer

    async def _sync(
        self,
        connection: Connection,
        joined: JoinGroupResponse,
        assignments: dict[str, list[TopicPartition]],
    ) -> frozenset[TopicPartition]:
        request = sync_request(
            self._settings.group, self.membership, joined.protocol_name, assignments
        )
        answer = await connection.request(
            request,
            SyncGroupResponse,
            patience_seconds=self._settings.rebalance_timeout_seconds,
        )
        check(answer.error_code, f"group {self._settings.group}")
        return frozenset(decode_assignment(answer.assignment))

    async def _take(self, partitions: frozenset[TopicPartition]) -> None:
        revoked, added = self._owned - partitions, partitions - self._owned
        if revoked:
            await self._listener.revoked(revoked)
        self._owned -= revoked
        await self._listener.assigned(added)
        self._owned = partitions
        if revoked:
            # Others wait for what was given up just now.
            raise RequestError(ErrorCode.REBALANCE_IN_PROGRESS)

    # Being a member

    async def _stay(self) -> None:
        """Send heartbeats until there is a reason to join again, which is raised."""
        while True:
            await trio.sleep(self._settings.heartbeat_seconds)
            await self._coordinator.beat(self.membership)
            if self._is_leader and self._leader.is_outdated():
                raise RequestError(ErrorCode.REBALANCE_IN_PROGRESS, "a topic has changed")

    async def leave(self) -> None:
        """Let the group go on at once without this member.

        The coordinator is looked up: it may be another one than when this member spoke to it last.
        A static member does not leave: its place is kept until its session times out. Not being
        able to say so is no error; the group will notice.
        """
        membership, self.membership = self.membership, OUTSIDE
        if not membership.member_id or membership.instance_id is not None:
            return

        async def ask(_: BrokerDescription, connection: Connection) -> None:
            version = connection.version(LeaveGroupRequest)
            request = leave_request(self._settings.group, membership, version)
            answer = await connection.request(request, LeaveGroupResponse)
            check(answer.error_code, f"group {self._settings.group}")

        with suppress(OSError, RequestError):
            await on_coordinator(self._network, self._settings.group, ask)


def _is_part_of_joining(error: Exception) -> bool:
    """Whether to join again at once."""
    return isinstance(error, RequestError) and error.code in _JOIN_AGAIN
