"""What of a log's tail is sound: batch by batch, where a crash may have left anything.

What a batch's CRC leaves out is checked against the neighbours: a base offset continues the batch
before, and a leader epoch is not smaller than the last, nor larger than the largest opened; where
the log's epochs are known, it is the one in force at that offset.
"""

from tidemark.partitions.storage.derived_state import DerivedState
from tidemark.partitions.storage.epoch_rows import EpochsByOffset
from tidemark.partitions.storage.index import GrowingIndex
from tidemark.partitions.storage.recovery_report import RecoveryReport
from tidemark.partitions.storage.scan import iter_batches
from tidemark.partitions.storage.segment import Segment
from tidemark.protocol.errors import CorruptBatch
from tidemark.protocol.records.gaps import is_gap
from tidemark.protocol.records.header import BatchHeader, check_crc
from tidemark.protocol.types import NO_EPOCH, Epoch, Offset


class Torn(Exception):
    """The first thing in a segment that is no batch, and where the batches before it end."""

    def __init__(self, position: int, end_offset: Offset, what: str) -> None:
        super().__init__(what)
        self.position = position
        self.end_offset = end_offset
        self.what = what


class LongGap(Exception):
    """A gap that reaches into another epoch: the log was cut within it, and then went on."""

    def __init__(self, position: int, gap: BatchHeader, end_offset: Offset) -> None:
        super().__init__(
            f"a gap up to {gap.next_offset}, where another epoch begins at {end_offset}"
        )
        self.position = position
        self.gap = gap
        self.end_offset = end_offset


class TailCheck:
    """Goes through a log's last segments in order, and remembers the epoch that it has come to."""

    def __init__(
        self,
        *,
        recovery_point: Offset,
        epoch_max: Epoch | None,
        epochs: EpochsByOffset | None,
        state: DerivedState | None,
        told_to: Offset,
        report: RecoveryReport,
    ) -> None:
        """Below `recovery_point` no CRC is checked. `state` is told of the batches from `told_to`
        on, each once it has been found sound; `report` counts them."""
        self._recovery_point = recovery_point
        self._epoch_max = epoch_max
        self._epochs = epochs
        self._state = state
        self._told_to = told_to
        self._report = report
        self._epoch = NO_EPOCH

    def check(self, segment: Segment, index: GrowingIndex) -> Offset:
        """Check every batch of a segment, and enter it in `index`; the offset where they end.

        Raises `Torn` at the first that is wrong, `LongGap` at a gap of which only a part counts.
        """
        file, expected, position = segment.file, segment.base_offset, 0
        state = self._state
        try:
            for position, header in iter_batches(file, 0, segment.size_bytes):
                self._check_place(position, header, expected)
                self._check_reach(position, header)
                if header.next_offset > self._recovery_point:
                    data = file.pread(header.size_bytes, position)
                    check_crc(data, header)
                    self._report.checked_batches += 1
                    self._report.checked_bytes += len(data)
                expected = header.next_offset
                self._epoch = header.partition_leader_epoch
                index.add(position, header.size_bytes, header.last_offset, header.max_timestamp)
                if state is not None and header.base_offset >= self._told_to:
                    state.tell(segment, position, header)
        except CorruptBatch as error:
            # A CRC's error counts from the batch, the walk's from the file.
            at = max(position, error.at)
            raise Torn(at, expected, error.what) from error
        return expected

    def _check_place(self, position: int, header: BatchHeader, expected: Offset) -> None:
        """What the CRC does not cover, against the neighbours."""
        epoch = header.partition_leader_epoch
        if header.base_offset != expected:
            raise CorruptBatch(position, misplaced(header, expected))
        if epoch < self._epoch:
            raise CorruptBatch(position, f"leader epoch {epoch} after {self._epoch}")
        if self._epoch_max is not None and epoch > self._epoch_max:
            raise CorruptBatch(position, f"leader epoch {epoch}, the last was {self._epoch_max}")
        if self._epochs is not None and not self._epochs.allow(epoch, header.base_offset):
            raise CorruptBatch(position, f"leader epoch {epoch} did not reach to this offset")

    def _check_reach(self, position: int, header: BatchHeader) -> None:
        """A gap may reach beyond where the log was cut later; nothing else can."""
        if self._epochs is not None and is_gap(header):
            end_offset = self._epochs.end_of(header.partition_leader_epoch)
            if end_offset is not None and end_offset < header.next_offset:
                raise LongGap(position, header, end_offset)


def misplaced(header: BatchHeader, expected: Offset) -> str:
    """What is wrong with a batch that does not begin at the expected offset."""
    return f"offset {header.base_offset} where {expected} is next"
