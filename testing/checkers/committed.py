"""The log that all replicas of a group must agree on: what any of them ever called committed."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tidemark.protocol.records.header import BatchHeader
from tidemark.protocol.types import ORIGIN, Epoch, NodeId, Offset, Position, ProducerId
from tidemark.testing.checkers.beliefs import holds
from tidemark.testing.checkers.lineage import Lineage
from tidemark.testing.checkers.violation import Violation, require


class Committed(NamedTuple):
    """One committed batch: what two replicas must have the same."""

    base_offset: Offset
    end_offset: Offset
    epoch: Epoch
    crc: int


class CommittedLog:
    """What is committed in one group. It is appended to, and nothing in it ever changes."""

    def __init__(self, group: str, *, may_be_compacted: bool = False) -> None:
        self._group = group
        self._may_be_compacted = may_be_compacted
        self._batches: list[Committed] = []
        self._bases: list[Offset] = []
        # By base offset, the one that was judged last.
        self._judged: dict[Offset, BatchHeader] = {}
        self._producers: dict[tuple[int, int, int], Offset] = {}
        self.newest: dict[ProducerId, BatchHeader] = {}
        """Of each producer, the last batch with a sequence."""
        self._told: dict[NodeId, Position] = {}
        # How far was first called committed in which epoch; the positions ascend.
        self._first_in: list[tuple[Epoch, Position]] = []
        self.lineage = Lineage()

    @property
    def last(self) -> Position:
        return self.lineage.last

    @property
    def end_offset(self) -> Offset:
        return self.lineage.end_offset

    def told(self, node: NodeId) -> Position:
        """What a node has called committed since it started."""
        return self._told.get(node, ORIGIN)

    def advances(
        self,
        node: NodeId,
        *,
        in_epoch: Epoch,
        committed: Position,
        starts: Sequence[Position],
        batches: Iterable[BatchHeader],
    ) -> None:
        """A node at epoch `in_epoch` calls its log committed up to `committed`.

        `starts` are the epochs of its log, at least those behind what it last called committed;
        `batches` is what lies in it from there up to now.
        """
        before = self.told(node)
        if committed < before:
            what = f"{node} calls {committed} committed after {before}"
            raise Violation("committed never goes back", self._group, what)
        self._told[node] = committed
        news = [start for start in starts if before < start <= committed]
        judged = self._judged
        for header in batches:
            while news and news[0].epoch <= header.partition_leader_epoch:
                self._take_start(node, news.pop(0))
            # The very same object, which others have in their logs, too: nothing new about it.
            if judged.get(header.base_offset) is header:
                continue
            self._take_batch(node, header)
            self._take_producer(header)
            judged[header.base_offset] = header
        for start in news:
            self._take_start(node, start)
        if not self.lineage.contains(committed):
            what = f"{node} calls {committed} committed, and {self.lineage} is all it has shown"
            raise Violation("what is committed is in the log", self._group, what)
        if not self._first_in or committed > self._first_in[-1][1]:
            self._first_in.append((in_epoch, committed))

    def restarts(self, node: NodeId) -> None:
        """A node has forgotten what it called committed; it may begin lower."""
        self._told.pop(node, None)

    def batch_at(self, offset: Offset) -> Committed | None:
        """The committed batch that holds an offset."""
        at = bisect_right(self._bases, offset) - 1
        if at < 0 or offset >= self._batches[at].end_offset:
            return None
        return self._batches[at]

    def check_read(self, headers: Iterable[BatchHeader]) -> None:
        """Someone was given these batches: they must be committed, and the same."""
        for header in headers:
            if not self._is_known(header):
                what = f"batch {header.base_offset}@{header.partition_leader_epoch} was read"
                raise Violation("only what is committed is read", self._group, what)

    def check_leader(self, node: NodeId, epoch: Epoch, log: Lineage) -> None:
        """A node begins to lead `epoch`: what was committed before that epoch must be in its log.

        Only what was committed in lower epochs: one that wakes up late and leads an old epoch,
        which it had won long ago, has a right not to know what came after.
        """
        before = self._committed_before(epoch)
        if not log.contains(before):
            what = f"{node} leads epoch {epoch} without {before}: {log}"
            raise Violation("a leader holds what is committed", self._group, what)

    def check_vote(
        self, voter: NodeId, its_log: Lineage, candidate: NodeId, log: Lineage, epoch: Epoch
    ) -> None:
        """A vote is given: the candidate must have what is committed and wholly in the voter's log.

        Else this vote is of no use to those who rely on it, whether or not it decides. Wholly: up
        to an entry of the epoch in which it was committed. Who has older parts of it alone has not
        helped to commit it, and may not know better than to vote for a log without them.
        """
        committed = (p for e, p in reversed(self._first_in) if e < epoch)
        known = next((p for p in committed if its_log.contains(p)), ORIGIN)
        if not holds(log, known):
            what = f"{voter} votes for {candidate} in epoch {epoch}, which lacks {known}: {log}"
            raise Violation("a vote is for a log with all that is committed", self._group, what)

    def _committed_before(self, epoch: Epoch) -> Position:
        """What was called committed in lower epochs."""
        return next((p for e, p in reversed(self._first_in) if e < epoch), ORIGIN)

    def check_cut(self, node: NodeId, epoch: Epoch, log: Lineage, to: Position) -> None:
        """A node at `epoch` cuts its log: no entry that it held, and that was committed, may go.

        Not what was committed in higher epochs: one that does not know of those does what the
        leader of its own says, which comes late and may be of another mind. It did not help to
        commit that.
        """
        kept = min(log.shared(self.lineage), self._committed_before(Epoch(epoch + 1)))
        if kept > to:
            what = f"{node} cuts to {to} in epoch {epoch}, and held {kept}"
            raise Violation("no committed entry is cut off", self._group, what)

    def _is_known(self, header: BatchHeader) -> bool:
        """Whether that is what was committed there, or what compaction has left of it."""
        batch, there = _of(header), self.batch_at(header.base_offset)
        if there == batch or there is None or not self._may_be_compacted:
            return there == batch
        if header.record_count:
            return there[:3] == batch[:3]
        end = Position(batch.epoch, batch.end_offset)
        return there.epoch == batch.epoch and self.lineage.contains(end)

    def _take_batch(self, node: NodeId, header: BatchHeader) -> None:
        batch = _of(header)
        if batch.base_offset < self.end_offset:
            if not self._is_known(header):
                there = self.batch_at(batch.base_offset)
                what = f"{node} has {batch}, and {there} is committed"
                raise Violation("committed entries never change", self._group, what)
            return
        last = self.last
        if batch.base_offset != last.offset or batch.epoch != last.epoch:
            what = f"{node} has {batch}, and {last} is the last that is committed"
            raise Violation("committed entries follow each other", self._group, what)
        self._batches.append(batch)
        self._bases.append(batch.base_offset)
        self.lineage.extend(Position(batch.epoch, batch.end_offset))

    def _take_producer(self, header: BatchHeader) -> None:
        if header.producer_id < 0 or header.base_sequence < 0:
            return  # Coordinators do not number what they write for a producer.
        key = (header.producer_id, header.producer_epoch, header.base_sequence)
        offset = self._producers.setdefault(key, header.base_offset)
        if offset != header.base_offset:
            what = f"producer, epoch, sequence {key} at {offset} and {header.base_offset}"
            raise Violation("a batch is in once", self._group, what)
        newest = self.newest.get(ProducerId(header.producer_id))
        if newest is None or newest.base_offset < header.base_offset:
            self.newest[ProducerId(header.producer_id)] = header

    def _take_start(self, node: NodeId, start: Position) -> None:
        if start > self.last:
            what = f"{node} has epoch {start}, and {self.last} is the last that is committed"
            is_next = start.offset == self.end_offset
            require(is_next, "committed entries follow each other", self._group, what)
            self.lineage.begin(start)
            return
        there = self.lineage.start_of(start.epoch)
        if there != start.offset:
            what = f"{node} has epoch {start}, which starts at {there} in {self.lineage}"
            raise Violation("committed entries never change", self._group, what)


def _of(header: BatchHeader) -> Committed:
    return Committed(
        header.base_offset, header.next_offset, header.partition_leader_epoch, header.crc
    )
