"""One replica with its disk, as a value that can be copied, compared and remembered."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from contextlib import suppress
from typing import Any, Final, NamedTuple, TypeAlias, cast

from tests.scenarios.disk import Image, Op
from tidemark.partitions.raft.candidate import Candidate, PreCandidate
from tidemark.partitions.raft.entries import Entry, Run
from tidemark.partitions.raft.epochs import LogShape
from tidemark.partitions.raft.follower import Follower
from tidemark.partitions.raft.group import Group, Limits
from tidemark.partitions.raft.held import Held
from tidemark.partitions.raft.leader import Leader
from tidemark.partitions.raft.messages import (
    AppendResponse,
    Ballot,
    HardState,
    Message,
    VoteRequest,
    VoteResponse,
)
from tidemark.partitions.raft.progress import Progress
from tidemark.partitions.raft.ready import Outgoing
from tidemark.partitions.raft.replica import NOWHERE
from tidemark.partitions.raft.voting import Tally
from tidemark.protocol.errors import RequestError
from tidemark.protocol.types import NO_EPOCH, ORIGIN, Epoch, NodeId, Offset, Position

_CORE: Final = {LogShape, Follower, PreCandidate, Candidate, Leader, Progress, Held, Tally}
"""What of a group is changed in place. All else in it is a value."""
_SURROUNDINGS: Final = {"peers", "read", "limits"}
_UNTOLD: Final = {
    # Counters and what has been told already: they make no difference to what happens next.
    *("_token", "_token_durable", "_hard_state_token", "_tokens", "answers", "has_ready"),
    *("_committed_told", "_epoch_told", "_leader_told", "_serving_told", "_failure_told"),
}


class News(NamedTuple):
    """A heartbeat's word that somebody leads, and how far its log is committed."""

    epoch: Epoch
    committed: Position


Letter: TypeAlias = Message | News


class Envelope(NamedTuple):
    """A message on its way."""

    source: int
    to: int
    message: Letter


class Event(NamedTuple):
    """Something that happens to one replica."""

    kind: str
    node: int
    argument: Hashable = None


class Broken(Exception):
    """A rule does not hold; says which."""


class _Pending(NamedTuple):
    """Writes that are not durable yet, and what may be said once they are."""

    token: int
    ops: tuple[Op, ...]
    messages: tuple[Outgoing, ...]


class Local:
    """A replica, what it has written, and what of that a crash would leave."""

    __slots__ = ("all_alive", "durable", "group", "id", "pending", "sent", "unstaged", "written")

    def __init__(
        self, node: int, image: Image, limits: Limits, *, all_alive: bool, doubts: int = 0
    ) -> None:
        """`doubts`: how often it has forgotten what it promised, the last time just now."""
        self.id, self.all_alive = node, all_alive
        self.durable, self.written = image.copy(), image.copy()
        self.unstaged: list[Op] = []
        self.pending: list[_Pending] = []
        self.sent: list[Envelope] = []
        self.group = Group(
            node_id=NodeId(node),
            shape=image.shape(),
            hard_state=image.hard_state,
            committed=image.start.offset,
            read=self._read,
            peers=self,
            limits=limits,
            life=doubts,
            in_doubt=doubts > 0,
        )

    def is_alive(self, node: NodeId) -> bool:
        """Nobody takes its leader for alive, so that everybody may vote at any time; but whoever
        asks for votes has a majority in sight, else it would not lead."""
        is_elected = isinstance(self.group.role, Candidate)
        return self.all_alive or node == self.id or is_elected

    def _read(self, after: Position, up_to: Position, bytes_max: int) -> tuple[Entry, ...]:
        """One entry at a time: what is sent together cannot be parted by anything."""
        return self.written.read(after, up_to, bytes_max)[:1]

    @property
    def log(self) -> Lineage:
        return lineage(self.written)

    def copy(self) -> Local:
        new = Local.__new__(Local)
        new.id, new.all_alive = self.id, self.all_alive
        new.durable, new.written = self.durable.copy(), self.written.copy()
        new.unstaged, new.sent = [], []
        new.pending = [*self.pending]
        new.group = group = Group.__new__(Group)
        for slot in _SLOTS:
            setattr(group, slot, _copied(getattr(self.group, slot)))
        group.limits = self.group.limits
        group.peers, group.read = new, new._read
        return new

    def key(self) -> Hashable:
        """Equal for two that will do the same whatever happens to them."""
        group = self.group
        places = {token: place for place, (token, _) in enumerate(group._tokens)}
        return (
            self.id,
            tuple(_frozen(getattr(group, slot)) for slot in _TELLING_SLOTS),
            places.get(group._hard_state_token),
            tuple(position for _, position in group._tokens),
            _key_of(self.durable),
            tuple((places[p.token], tuple(map(_key_of, p.ops)), p.messages) for p in self.pending),
        )

    def take(self, event: Event) -> None:
        """Let it happen; write and say what comes of it. Raises `Broken` if a rule was."""
        group = self.group
        before = group.committed
        match event.kind, event.argument:
            case "deliver", (int(source), News(epoch, committed)):
                group.heard_leader(NodeId(source), epoch, committed)
            case "deliver", (int(source), message):
                group.receive(NodeId(source), cast(Message, message))  # all that News is not
            case "campaign", None:
                group.campaign()
            case "campaign", "at once":
                group.campaign(is_migration=True)
            case "lost", _:
                group.leader_lost()
            case "append", _:
                self._append()
            case "persist", _:
                self._persist()
            case "beat", tuple(others):
                news = News(group.epoch, group.committed)
                self.sent += [Envelope(self.id, other, news) for other in others]
            case "reset", int(peer):
                group.peer_reset(NodeId(peer))
            case "learner", int(peer):
                group.add_learner(NodeId(peer))
            case "change", tuple(voters):
                with suppress(RequestError):
                    group.change_config(voters)
            case "hand over", int(to):
                with suppress(RequestError):
                    group.hand_over(NodeId(to))
            case "quorum", _:
                group.check_quorum()
            case _:
                raise AssertionError(event)
        self.drain()
        if group.committed < before:
            raise Broken("what is committed never goes back")

    def persist_all(self) -> None:
        while self.pending:
            self._persist()
            self.drain()

    def after_crash(self, keep: int) -> Local:
        """What starts again when of the pending writes the first `keep` have reached the disk."""
        image = self.durable.copy()
        for pending in self.pending[:keep]:
            for op in pending.ops:
                image.apply(op)
        return Local(self.id, image, self.group.limits, all_alive=self.all_alive)

    def after_damage(self, rows_kept: int) -> Local:
        """What starts again when all is forgotten that was written since an epoch began here: its
        entries, and every later epoch and vote."""
        image = self.durable.copy()
        if rows_kept < len(image.rows):
            del image.records[image.rows[rows_kept].start_offset - image.start.offset :]
            del image.rows[rows_kept:]
        image.hard_state = HardState(NO_EPOCH, None)
        doubts = self.group.life + 1
        return Local(self.id, image, self.group.limits, all_alive=self.all_alive, doubts=doubts)

    def drain(self) -> None:
        while self.group.has_ready:
            ready = self.group.take_ready()
            for op in (ready.reset, ready.truncate_to, *ready.entries, ready.hard_state):
                if op is not None:
                    self._write(op)
            if ready.token:
                ops, self.unstaged = tuple(self.unstaged), []
                self.pending.append(_Pending(ready.token, ops, ready.send_after))
            self._say(ready.send)
        self._check()

    def _write(self, op: Op) -> None:
        self.written.apply(op)
        self.unstaged.append(op)

    def _append(self) -> None:
        """As a leader: write one record. No record of another epoch is like it."""
        group, end = self.group, self.written.end_offset
        record = bytes([(16 * group.epoch + end) % 256])
        self._write(Run(group.epoch, end, Offset(end + 1), record))
        group.appended(Offset(end + 1))

    def _persist(self) -> None:
        done = self.pending.pop(0)
        for op in done.ops:
            self.durable.apply(op)
        self._say(done.messages)
        self.group.persisted(done.token)

    def _say(self, messages: Iterable[Outgoing]) -> None:
        for out in messages:
            self._check_spoken(out)
            self.sent.append(Envelope(self.id, out.to, out.message))

    # Rules that one replica can break alone

    def _check(self) -> None:
        group, image = self.group, self.written
        rows = [row.position for row in image.rows]
        if group.shape.last != image.last or [r.position for r in group.shape.rows] != rows:
            raise Broken("the core knows what its log is")
        if not max(group.durable, group.committed) <= group.shape.last:
            raise Broken("what is durable, and what is committed, is in the log")
        if group.durable > NOWHERE and not lineage(self.durable).contains(group.durable):
            raise Broken("what counts as durable is on the disk")
        if group.failure is not None:
            raise Broken(f"nobody has to cut what is committed: {group.failure}")
        if isinstance(group.role, Leader):
            for progress in group.role._progress.values():
                if progress.held.match > progress.next:
                    raise Broken("what is sent next begins behind what is known to be there")

    def _check_spoken(self, out: Outgoing) -> None:
        """Persist before you speak."""
        disk, message = self.durable, out.message
        match message:
            case AppendResponse(match=Position() as held):
                if not lineage(disk).contains(held):
                    raise Broken("entries are durable before they are acknowledged")
                if max(disk.hard_state.epoch, disk.last.epoch) < message.epoch:
                    raise Broken("an epoch is durable before anything is acknowledged in it")
            case VoteResponse(granted=True) if message.ballot is not Ballot.PRE:
                if disk.hard_state != HardState(message.epoch, out.to):
                    raise Broken("a vote is durable before it is given")
            case VoteRequest() if message.ballot is not Ballot.PRE:
                if disk.hard_state != HardState(message.epoch, NodeId(self.id)):
                    raise Broken("a candidate's own vote is durable before it asks for others")


class Lineage(NamedTuple):
    """Which entries a log holds: where its epochs start, and where it ends."""

    rows: tuple[Position, ...]
    end: Offset

    @property
    def last(self) -> Position:
        return Position(self.rows[-1].epoch, self.end) if self.rows else ORIGIN

    def contains(self, position: Position) -> bool:
        return self.upto(position).last == position

    def upto(self, position: Position) -> Lineage:
        """The part of it that ends there, if it holds that position."""
        rows = tuple(row for row in self.rows if row <= position)
        is_newest = len(rows) == len(self.rows)
        end = self.end if is_newest else self.rows[len(rows)].offset
        return Lineage(rows, min(end, position.offset))

    def agrees(self, other: Lineage) -> bool:
        """Whether one of the two is a part of the other."""
        short, long = sorted((self, other), key=lambda log: log.last)
        return long.upto(short.last) == short

    def matches(self, other: Lineage) -> bool:
        """Whether the two are the same up to the last entry that both have."""
        common = {row.epoch for row in self.rows} & {row.epoch for row in other.rows}
        if not common:
            return True
        newest = max(common)
        ends = [log.upto(Position(newest, Offset(1 << 60))).end for log in (self, other)]
        shared = Position(newest, min(ends))
        return self.upto(shared) == other.upto(shared)


def lineage(image: Image) -> Lineage:
    return Lineage(tuple(row.position for row in image.rows), image.end_offset)


def _slots(kind: type) -> tuple[str, ...]:
    return tuple(slot for base in kind.__mro__ for slot in getattr(base, "__slots__", ()))


_SLOTS: Final = tuple(slot for slot in _slots(Group) if slot not in _SURROUNDINGS)
_TELLING_SLOTS: Final = tuple(slot for slot in _SLOTS if slot not in _UNTOLD)


def _copied(value: Any) -> Any:  # Any: whatever the core holds
    kind = type(value)
    if kind is list:
        return [_copied(item) for item in value]
    if kind is dict:
        return {key: _copied(item) for key, item in value.items()}
    if kind in _CORE:
        new = object.__new__(kind)
        for slot in _slots(kind):
            setattr(new, slot, _copied(getattr(value, slot)))
        return new
    return value


def _frozen(value: Any) -> Hashable:  # Any: whatever the core holds
    kind = type(value)
    if kind is list:
        return tuple(map(_frozen, value))
    if kind is dict:
        return tuple(sorted((key, _frozen(item)) for key, item in value.items()))
    if kind in _CORE:
        slots = (slot for slot in _slots(kind) if slot not in _UNTOLD)
        return (kind.__name__, *(_frozen(getattr(value, slot)) for slot in slots))
    frozen: Hashable = value
    return frozen


def _key_of(op: Image | Op) -> Hashable:
    if isinstance(op, Image):
        return (op.start, tuple(op.rows), tuple(op.records), op.hard_state)
    return op
