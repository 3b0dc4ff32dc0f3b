"""A replica that takes entries from a leader, or waits for one. Learners are followers too."""

from __future__ import annotations

from bisect import insort
from itertools import pairwise
from typing import TYPE_CHECKING

from tidemark.partitions.raft.entries import Entry, EpochStart, Run
from tidemark.partitions.raft.marks import mark
from tidemark.partitions.raft.messages import AppendRequest, ResetRequest
from tidemark.protocol.types import ORIGIN, Epoch, NodeId, Position

if TYPE_CHECKING:
    from tidemark.partitions.raft.group import Group


class Follower:
    """Appends what follows its log, and says where the logs part if they do.

    Requests may overtake each other. Once its newest epoch is the leader's, its log is a part of
    the leader's, so a request that begins beyond its end is early and not divergent: it is kept.
    But not before one has been taken: an observer that becomes a learner has pulled entries of
    this epoch, and the leader, which does not know where its log ends, asks once and waits.
    """

    __slots__ = ("_clean_at", "_early", "_early_bytes", "_has_taken", "_leader_committed")

    def __init__(self) -> None:
        self._has_taken = False
        self._early: list[AppendRequest] | None = None  # ascending by prev
        self._early_bytes = 0
        self._clean_at: Position | None = None
        # How far the leader has committed may be heard before the entries come, and only once.
        self._leader_committed = ORIGIN

    @property
    def is_in_step(self) -> bool:
        """Whether it has taken entries of this epoch, and nothing waits for a gap to be filled."""
        return self._has_taken and not self._early and self._clean_at is None

    def hear_committed(self, group: Group, committed: Position) -> None:
        """This epoch's leader has committed its log up to there: so it is here, as far as held."""
        self._leader_committed = max(self._leader_committed, committed)
        last = group.shape.last
        if last.epoch == group.epoch:  # then all of this log is in the leader's
            group.commit_to(min(committed, last))

    def append(self, group: Group, source: NodeId, request: AppendRequest) -> None:
        """The request is of this epoch, from its leader."""
        # A doubt is ended only by a leader that knows of this very one.
        if request.clean_at is not None and (
            not group.in_doubt or group.life == request.ends_doubt
        ):
            self._clean_at = request.clean_at
            if group.is_clean and not self._is_clean_at(group, request.clean_at):
                # The leader has counted it anew since; so does it, or they would not agree again.
                mark("unclean_again")
                group.is_clean = False
        if not group.holds(request.prev):
            self._refuse_or_keep(group, source, request)
            return
        self._has_taken = True
        self._take(group, source, request)
        while self._early and group.failure is None and group.holds(self._early[0].prev):
            mark("early_arrival_used")
            request = self._early.pop(0)
            self._early_bytes -= _bytes_of(request)
            self._take(group, source, request)
        self.become_clean(group)

    def reset(self, group: Group, source: NodeId, request: ResetRequest) -> None:
        """The request is of this epoch, from its leader."""
        start = request.start
        if group.holds(start):
            mark("late_reset")  # camunda#6092: it would cut off what came after it
        elif is_table_of(request) and is_beyond_committed(group, start):
            self._early, self._early_bytes = None, 0
            group.reset(request)
        else:
            mark("bad_reset")
            return
        group.answer(source, group.response(start, start), holds=start)

    def persisted(self, group: Group) -> None:
        self.become_clean(group)

    def become_clean(self, group: Group) -> None:
        """It counts again once it holds all it can ever have acknowledged to this leader."""
        clean_at = self._clean_at
        if clean_at is None or group.is_clean or not self._is_clean_at(group, clean_at):
            return
        if not group.in_doubt:
            mark("became_clean")
            group.is_clean = True
            return
        if group.voted_for is None:  # it may have voted in this epoch: it does not again
            group.set_hard_state(group.epoch, group.node_id)
        if group.is_hard_state_durable:
            group.end_doubt()

    def _is_clean_at(self, group: Group, position: Position) -> bool:
        return group.durable >= position and group.shape.contains(position)

    def _refuse_or_keep(self, group: Group, source: NodeId, request: AppendRequest) -> None:
        shape = group.shape
        is_in_step = self._has_taken and shape.last.epoch == group.epoch and group.is_clean
        # A probe is answered: a learner that was given up and comes again is in step, and the
        # leader has forgotten where its log ends.
        if is_in_step and request.prev > shape.last and request.entries:
            self._keep(group, request)
            return
        mark("logs_part")
        conflict = shape.floor(request.prev.epoch)
        group.answer(source, group.response(request.prev, None, conflict))

    def _keep(self, group: Group, request: AppendRequest) -> None:
        """Keep an early arrival, in order. Beyond the bound the farthest are dropped first; the
        leader sends them again."""
        early = self._early = self._early or []
        if any(request.prev == other.prev for other in early):
            return
        mark("early_arrival_kept")
        insort(early, request, key=_prev_of)
        self._early_bytes += _bytes_of(request)
        while self._early_bytes > group.limits.early_bytes_max:
            mark("early_arrival_dropped")
            self._early_bytes -= _bytes_of(early.pop())

    def _take(self, group: Group, source: NodeId, request: AppendRequest) -> None:
        """The log holds `prev`: write what is new of the entries, and acknowledge."""
        entries = request.entries
        if not follow_each_other(request.prev, entries, group.epoch):
            mark("bad_entries")
            return
        matched = request.prev
        for index, entry in enumerate(entries):
            if group.holds(entry.position):
                matched = entry.position
                continue
            held = group.shape.floor(entry.epoch)
            if isinstance(entry, Run) and held.epoch == entry.epoch and held > matched:
                # The leader cut its runs otherwise this time, and a part of this one is here.
                # Nobody can cut it without reading it: so let the leader begin behind that part.
                mark("part_of_a_run_held")
                matched = held
                break
            if matched < group.shape.last:
                if matched < group.committed:
                    group.fail(matched)
                    return
                group.truncate(matched)
            group.write(entries[index:])
            matched = entries[-1].position
            break
        last = group.shape.last
        # Verified is what this request has compared, or all, if all is of this leader's epoch.
        verified = last if last.epoch == group.epoch else matched
        group.commit_to(min(max(request.committed, self._leader_committed), verified))
        group.answer(source, group.response(request.prev, matched), holds=matched)


def is_table_of(request: ResetRequest) -> bool:
    """Whether a reset's table ascends, and its start lies in the table's last epoch."""
    table, start = request.table, request.start
    if start.epoch > request.epoch:
        return False
    if not table:
        return True
    return all(
        before.epoch < after.epoch and before.start_offset <= after.start_offset
        for before, after in pairwise(table)
    ) and (table[-1].epoch == start.epoch and table[-1].start_offset <= start.offset)


def is_beyond_committed(group: Group, start: Position) -> bool:
    """Whether a log that begins there gives up nothing that is committed here: it has to be later
    both as a position and as an offset."""
    committed = group.committed
    return start > committed and start.offset >= committed.offset


def follow_each_other(prev: Position, entries: tuple[Entry, ...], epoch: Epoch) -> bool:
    """Whether these entries can be in one log, after `prev`, in a leader's `epoch`."""
    for entry in entries:
        if isinstance(entry, EpochStart):
            if not prev.epoch < entry.epoch <= epoch or entry.start_offset != prev.offset:
                return False
        elif (
            entry.epoch != prev.epoch
            or entry.base_offset != prev.offset
            or entry.end_offset <= prev.offset
        ):
            return False
        prev = entry.position
    return True


def _prev_of(request: AppendRequest) -> Position:
    return request.prev


def _bytes_of(request: AppendRequest) -> int:
    return sum(len(entry.records) for entry in request.entries if isinstance(entry, Run)) + 64
