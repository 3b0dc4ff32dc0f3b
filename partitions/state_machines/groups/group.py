"""One group: its members, its generation, and the bookkeeping that both must agree with.

This module keeps the counts and maps consistent; when something happens is decided by the modules
named after the requests, and by `rebalance`.
"""

from collections.abc import Iterator

from tidemark.partitions.state_machines.agenda import NEVER
from tidemark.partitions.state_machines.groups.history import History
from tidemark.partitions.state_machines.groups.identity import check_identity
from tidemark.partitions.state_machines.groups.requests import (
    GroupState,
    Join,
    JoinAnswer,
    MemberMetadata,
)
from tidemark.partitions.state_machines.token import Token
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages.consumer_offsets import CoordinatorKey


class Member:
    """One member. Invariant: it waits for a join or for a sync, or for neither, never for both."""

    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "deadline_ms",
        "id",
        "instance_id",
        "is_new",
        "join_token",
        "protocols",
        "rebalance_timeout_ms",
        "session_timeout_ms",
        "sync_token",
    )

    def __init__(self, member_id: str, request: Join) -> None:
        self.id = member_id
        self.instance_id = request.instance_id
        self.assignment = b""
        self.deadline_ms = NEVER
        # Whether it was never in a generation: then it cannot send heartbeats yet.
        self.is_new = False
        self.join_token: Token | None = None
        self.sync_token: Token | None = None
        self.describe(request)

    def describe(self, request: Join) -> None:
        """Take over what a (re)joining client says of itself."""
        self.client_id = request.client_id
        self.client_host = request.client_host
        self.protocols = request.protocols
        self.session_timeout_ms = request.session_timeout_ms
        self.rebalance_timeout_ms = request.rebalance_timeout_ms

    def __str__(self) -> str:
        """What the member is called in a sentence."""
        instance = f" (instance {self.instance_id})" if self.instance_id is not None else ""
        host = self.client_host.lstrip("/")
        return f"member {self.id}{instance} of client {self.client_id or '-'} at {host}"

    @property
    def is_static(self) -> bool:
        return self.instance_id is not None

    @property
    def is_joining(self) -> bool:
        return self.join_token is not None

    @property
    def is_waiting(self) -> bool:
        """Whether it has a request here, and so need not prove that it is alive."""
        return self.join_token is not None or self.sync_token is not None

    def metadata(self, protocol: str | None) -> bytes:
        """What it said of itself under `protocol`; empty if it does not speak it."""
        return next((data for name, data in self.protocols if name == protocol), b"")

    def is_overdue(self, ticks_ms: int) -> bool:
        return self.deadline_ms <= ticks_ms and (self.is_new or not self.is_waiting)


class ClassicGroup:
    """A group's live state. Invariant: `state` is EMPTY, PREPARING_REBALANCE or DEAD without
    members; `leader` is a member's id exactly if there are members."""

    def __init__(self, group_id: str, *, wall_ms: int) -> None:
        self.id = group_id
        self.state = GroupState.EMPTY
        self.state_since_ms = wall_ms
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leader: str | None = None
        self.members: dict[str, Member] = {}
        self.static_ids: dict[str, str] = {}
        # Ids given out with MEMBER_ID_REQUIRED, until they are used or expire: id -> deadline.
        self.pending: dict[str, int] = {}
        # Members of the generation that have not asked for their assignment yet, in order.
        self.unsynced: dict[str, None] = {}
        self.joining_count = 0
        self.is_storing_assignment = False
        self.join_deadline_ms = NEVER
        self.sync_deadline_ms = NEVER
        # While a group that was empty waits for more members: until when at most.
        self.initial_limit_ms: int | None = None
        self.had_newcomer = False
        # The earliest of all deadlines, or earlier: a heartbeat only moves its own.
        self.wake_ms = NEVER
        self._protocol_counts: dict[str, int] = {}
        self.history = History()
        self.leftovers: frozenset[CoordinatorKey] = frozenset()
        """What the log may still hold of the group of the consumer protocol that this one was."""

    @property
    def is_initial_rebalance(self) -> bool:
        return self.initial_limit_ms is not None

    @property
    def is_unused(self) -> bool:
        """Whether nobody is in it or about to be, nobody ever was, and nothing is being done."""
        is_idle = self.state is GroupState.EMPTY
        return is_idle and not (self.members or self.pending or self.generation)

    @property
    def all_joined(self) -> bool:
        return self.joining_count == len(self.members) and not self.pending

    def enter(self, state: GroupState, wall_ms: int) -> None:
        self.state, self.state_since_ms = state, wall_ms

    def check_member(self, member_id: str, instance_id: str | None) -> ErrorCode:
        """NONE if the client is the member it says; an instance has one member id at a time."""
        return check_identity(self.members, self.static_ids, member_id, instance_id)

    def add(self, member: Member) -> None:
        assert member.id not in self.members
        if not self.members:
            self.leader = member.id
        self.pending.pop(member.id, None)
        self.members[member.id] = member
        if member.instance_id is not None:
            self.static_ids[member.instance_id] = member.id
        self._count_protocols(member, 1)

    def remove(self, member: Member) -> None:
        """Take a member out; whoever waits in its name is answered by the caller before."""
        assert not member.is_waiting
        del self.members[member.id]
        self.unsynced.pop(member.id, None)
        if member.instance_id is not None:
            del self.static_ids[member.instance_id]
        self._count_protocols(member, -1)
        if self.leader == member.id:
            self.leader = next(iter(self.members), None)

    def rename(self, member: Member, member_id: str) -> None:
        """Give a static member another id: its place, assignment and leadership stay its own."""
        assert member.instance_id is not None
        assert member_id not in self.members
        renamed = {m.id if m is not member else member_id: m for m in self.members.values()}
        if self.leader == member.id:
            self.leader = member_id
        if member.id in self.unsynced:
            del self.unsynced[member.id]
            self.unsynced[member_id] = None
        self.members = renamed
        self.static_ids[member.instance_id] = member_id
        member.id = member_id

    def describe_member(self, member: Member, request: Join) -> None:
        self._count_protocols(member, -1)
        member.describe(request)
        self._count_protocols(member, 1)

    def begin_join(self, member: Member, token: Token) -> None:
        assert member.join_token is None
        assert member.sync_token is None
        member.join_token = token
        self.joining_count += 1

    def end_join(self, member: Member) -> Token | None:
        """Who waits for the member's join, if anybody does; nobody does afterwards."""
        token, member.join_token = member.join_token, None
        if token is not None:
            self.joining_count -= 1
        return token

    def supports(self, request: Join) -> bool:
        """Whether a member that speaks these protocols could be in one generation with the rest."""
        if self.state is GroupState.EMPTY:
            return bool(request.protocol_type and request.protocols)
        return request.protocol_type == self.protocol_type and any(
            self._protocol_counts.get(name, 0) == len(self.members)
            for name in request.protocol_names
        )

    def elect_protocol(self) -> str:
        """The protocol that most members like best, of those that all of them speak.

        A tie goes to the one that the earlier member likes, so that every node elects the same.
        """
        assert self.members
        votes: dict[str, int] = {}
        for member in self.members.values():
            vote = next(name for name, _ in member.protocols if self._is_spoken_by_all(name))
            votes[vote] = votes.get(vote, 0) + 1
        return max(votes, key=lambda name: votes[name])

    def member_list(self) -> tuple[MemberMetadata, ...]:
        """What the leader needs to assign."""
        return tuple(
            MemberMetadata(
                member_id=member.id,
                instance_id=member.instance_id,
                metadata=member.metadata(self.protocol),
            )
            for member in self.members.values()
        )

    def joined(self, member: Member) -> JoinAnswer:
        """The answer that lets a member into the current generation."""
        return JoinAnswer(
            member_id=member.id,
            generation=self.generation,
            protocol_type=self.protocol_type,
            protocol=self.protocol,
            leader=self.leader or "",
            members=self.member_list() if member.id == self.leader else (),
        )

    def rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def expect_heartbeat(
        self, member: Member, ticks_ms: int, timeout_ms: int | None = None
    ) -> None:
        """The member has just been heard, and must be again within its session timeout."""
        timeout = member.session_timeout_ms if timeout_ms is None else timeout_ms
        member.deadline_ms = ticks_ms + timeout
        self.wake_by(member.deadline_ms)

    def wake_by(self, deadline_ms: int) -> None:
        self.wake_ms = min(self.wake_ms, deadline_ms)

    def first_deadline(self) -> int:
        """The earliest of all deadlines, looked up; NEVER if there is none."""
        return min(self._deadlines(), default=NEVER)

    def _deadlines(self) -> Iterator[int]:
        yield self.join_deadline_ms
        yield self.sync_deadline_ms
        yield from self.pending.values()
        for member in self.members.values():
            if member.is_new or not member.is_waiting:
                yield member.deadline_ms

    def _is_spoken_by_all(self, name: str) -> bool:
        return self._protocol_counts[name] == len(self.members)

    def _count_protocols(self, member: Member, change: int) -> None:
        for name in dict.fromkeys(name for name, _ in member.protocols):
            count = self._protocol_counts.get(name, 0) + change
            if count:
                self._protocol_counts[name] = count
            else:
                del self._protocol_counts[name]
