"""What a broker's groups want done, collected until the end of the turn.

*Persist before you speak* by construction: there are two ways to hand a message over. `send` is for
what needs nothing to be durable; `stage` takes records together with what may happen only once they
are, and keeps that inside until the journal write they are in has been persisted. Records are
written, and writes persisted, in the order in which they were staged.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import field
from functools import partial
from typing import Final, NamedTuple, TypeAlias

from tidemark.partitions.replication.ended_move import EndedMove
from tidemark.partitions.replication.peer_messages import PeerMessage
from tidemark.partitions.storage.journal.records import JournalRecord
from tidemark.partitions.storage.retention import Removal
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.partitions.storage.syncing import TailSync
from tidemark.protocol.types import NodeId
from tidemark.protocol.values import dataclass, maker_of

Sends: TypeAlias = dict[NodeId, list[PeerMessage]]


class GroupChange(NamedTuple):
    """What of a group changed in a turn; the values are the replica's."""

    key: PartitionKey
    committed: bool = False
    leadership: bool = False
    """Who leads it. Also told of groups that have no replica here."""
    serving: bool = False
    failed: bool = False
    resumed: bool = False
    """Clients' writes were held, and are not any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What has come of a turn."""

    write: int
    """The number to report with `persisted`; 0: there is nothing to make durable."""
    records: Sequence[JournalRecord]
    """To be written to the journal in this order, behind those of all earlier writes."""
    sends: Sends
    """May go at once."""
    changes: Sequence[GroupChange]
    syncs: Sequence[TailSync] = ()
    """To be run before the records are written, some of which say that it was done."""
    removals: Sequence[Removal] = ()
    """Segments to remove, on a thread, once the write is persisted."""
    warnings: Sequence[str] = ()
    """What should not happen, for people to read."""
    ended_moves: Sequence[EndedMove] = ()
    """Leaders that were to go, and have gone, or stay."""
    disk_failure: OSError | None = None
    """Nothing is known about the disk since: the process is to end."""


# Made for every turn: calling the class takes twice the time.
_made_change: Final = partial(tuple.__new__, GroupChange)
_made_output: Final = maker_of(Output)

NOTHING: Final = Output(write=0, records=(), sends={}, changes=())
_COMMITTED: Final = 1
_LEADERSHIP: Final = 2
_SERVING: Final = 4
_FAILED: Final = 8
_RESUMED: Final = 16


@dataclass(slots=True)
class _Write:
    number: int
    records: list[JournalRecord] = field(default_factory=list)
    syncs: dict[PartitionKey, TailSync] = field(default_factory=dict)
    removals: list[Removal] = field(default_factory=list)
    then: list[Callable[[], None]] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        return not (self.records or self.removals or self.then)


class Outbox:
    """The one of a broker."""

    def __init__(self) -> None:
        self._open = _Write(1)
        self._waiting: deque[_Write] = deque()
        self._sends: Sends = {}
        self._changes: dict[PartitionKey, int] = {}
        self.leaderships = 0
        """How often it was said that a group has another leader, or none."""
        self.led_anew: set[PartitionKey] | None = None
        """Of which groups, since somebody who wants to know has put an empty set here."""

    @property
    def staging(self) -> int:
        """The number of the write that is being collected."""
        return self._open.number

    @property
    def is_empty(self) -> bool:
        return self._open.is_empty and not self._sends and not self._changes

    def send(self, to: NodeId, message: PeerMessage) -> None:
        """For what is true whatever the disk does."""
        messages = self._sends.get(to)
        if messages is None:
            self._sends[to] = [message]
        else:
            messages.append(message)

    def stage(
        self, records: Sequence[JournalRecord], then: Callable[[], None] | None = None
    ) -> int:
        """Write these, and once they and all before them are durable, do `then`.

        Returns the write they are in.
        """
        self._open.records += records
        if then is not None:
            self._open.then.append(then)
        return self._open.number

    def stage_record(self, record: JournalRecord) -> int:
        """Like `stage`, for one record that nothing but later ones waits for."""
        self._open.records.append(record)
        return self._open.number

    def stage_sync(self, key: PartitionKey, sync: TailSync) -> None:
        """Have the end of a group's log synced before what is staged now is written."""
        self._open.syncs[key] = sync

    @property
    def has_syncs(self) -> bool:
        """Whether a log's end is to be synced for what is staged now."""
        return bool(self._open.syncs)

    def stage_removal(self, removal: Removal) -> None:
        """Have segments removed once the write is persisted."""
        self._open.removals.append(removal)

    def wait_for(self, write: int, then: Callable[[], None]) -> None:
        """Do `then` once that write is persisted: at once if it is already."""
        for waiting in self._waiting:
            if waiting.number >= write:
                waiting.then.append(then)
                return
        if write >= self._open.number:
            self._open.then.append(then)
        else:
            then()

    def is_persisted(self, write: int) -> bool:
        oldest = self._waiting[0].number if self._waiting else self._open.number
        return write < oldest

    def persisted(self, write: int) -> None:
        """All writes up to that one are durable."""
        assert write < self._open.number, "a write that was never handed out"
        while self._waiting and self._waiting[0].number <= write:
            for then in self._waiting.popleft().then:
                then()

    def committed(self, key: PartitionKey) -> None:
        self._note(key, _COMMITTED)

    def leadership(self, key: PartitionKey) -> None:
        self.leaderships += 1
        if self.led_anew is not None:
            self.led_anew.add(key)
        self._note(key, _LEADERSHIP)

    def serving(self, key: PartitionKey) -> None:
        self._note(key, _SERVING)

    def failed(self, key: PartitionKey) -> None:
        self._note(key, _FAILED)

    def resumed(self, key: PartitionKey) -> None:
        self._note(key, _RESUMED)

    def _note(self, key: PartitionKey, what: int) -> None:
        self._changes[key] = self._changes.get(key, 0) | what

    def take(self) -> Output:
        """All that was collected; what waits for durability stays here."""
        if self.is_empty:
            return NOTHING
        write = self._open
        if not write.is_empty:
            self._waiting.append(write)
            self._open = _Write(write.number + 1)
        sends, self._sends = self._sends, {}
        changes, self._changes = self._changes, {}
        return _made_output(
            write=0 if write.is_empty else write.number,
            records=write.records,
            syncs=tuple(write.syncs.values()),
            sends=sends,
            changes=[_change(key, what) for key, what in changes.items()],
            removals=write.removals,
        )


def _change(key: PartitionKey, what: int) -> GroupChange:
    if what == _COMMITTED:  # nearly always
        return _made_change((key, True, False, False, False, False))
    return GroupChange(
        key,
        bool(what & _COMMITTED),
        bool(what & _LEADERSHIP),
        bool(what & _SERVING),
        bool(what & _FAILED),
        bool(what & _RESUMED),
    )
