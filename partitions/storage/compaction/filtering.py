"""What stays of a batch.

| batch | what stays |
|-------|------------|
| of an aborted transaction | nothing |
| a commit | itself, while a record of it is there, and `delete.retention.ms` after |
| an abort | itself: readers are told of aborted transactions, and wait for it |
| records | of each key the last; a deletion for `delete.retention.ms` after the first compaction |
| records without a key | themselves: the topic was not compacted when they were written |
| no records that can be read | itself |
| the last one of a producer that may come back | its header at least |

From when on a deletion may go stands in the batch itself, as in Kafka (KIP-534): the first
compaction that keeps one sets the delete horizon.
"""

from collections.abc import Sequence
from typing import Final

from tidemark.partitions.storage.compaction.job import Tally
from tidemark.partitions.storage.compaction.keys import KEY_BYTES_MAX, KeyOffsets, short
from tidemark.partitions.storage.compaction.rewriting import SegmentRewriter
from tidemark.partitions.storage.compaction.scanning import ScannedRecord, Unreadable, scan_batch
from tidemark.partitions.storage.compaction.survey import Survey
from tidemark.protocol.records.compression import compress
from tidemark.protocol.records.gaps import emptied
from tidemark.protocol.records.header import DELETE_HORIZON_BIT, BatchHeader, build_batch
from tidemark.protocol.records.varints import varint
from tidemark.protocol.types import Offset, ProducerId
from tidemark.protocol.values import dataclass

_FOR_EVER_MS: Final = 2**54
"""The latest horizon, half a million years from 1970. Records' times count from it, and one that is
nearer to the largest number there is would have them take more bytes than most readers expect."""


@dataclass(slots=True, kw_only=True)
class BatchFilter:
    """Decides batch by batch, in order, from the log's first on."""

    survey: Survey
    keys: KeyOffsets
    cleaned_to: Offset
    """What lies at or above is not in the map, and stays."""
    now_ms: int
    delete_retention_ms: int
    tally: Tally
    _with_records: set[ProducerId]
    """Of whose transaction, since its last marker, a record was kept."""

    @classmethod
    def over(
        cls,
        survey: Survey,
        keys: KeyOffsets,
        *,
        now_ms: int,
        delete_retention_ms: int,
        tally: Tally,
    ) -> "BatchFilter":
        return cls(
            survey=survey,
            keys=keys,
            cleaned_to=tally.cleaned_to,
            now_ms=now_ms,
            delete_retention_ms=delete_retention_ms,
            tally=tally,
            _with_records=set(),
        )

    def put(self, header: BatchHeader, batch: memoryview, out: SegmentRewriter) -> None:
        """Write what stays of the batch."""
        if header.base_offset >= self.cleaned_to:
            out.keep(header, batch)
        elif header.is_control:
            self._put_marker(header, batch, out)
        elif header.record_count == 0 or self.survey.is_aborted(header):
            self.tally.records_read += header.record_count
            self._put_header(header, batch, out)
        else:
            self._put_records(header, batch, out)

    def _put_header(self, header: BatchHeader, batch: memoryview, out: SegmentRewriter) -> None:
        """No record of it stays."""
        if not self.survey.is_last(header):
            out.drop(header)
        elif header.record_count == 0 and not header.is_transactional:
            out.keep(header, batch)
        else:
            out.replace(emptied(header))

    def _put_marker(self, header: BatchHeader, batch: memoryview, out: SegmentRewriter) -> None:
        producer = ProducerId(header.producer_id)
        is_needed = producer in self._with_records
        self._with_records.discard(producer)
        if is_needed or header.base_offset not in self.survey.commits:
            out.keep(header, batch)
        elif header.delete_horizon_ms is None:
            section, records = scan_batch(batch, header)
            out.replace(self._with_horizon(header, section, records))
        elif self.now_ms < header.delete_horizon_ms or self.survey.is_last(header):
            out.keep(header, batch)
        else:
            out.drop(header)

    def _put_records(self, header: BatchHeader, batch: memoryview, out: SegmentRewriter) -> None:
        try:
            section, records = scan_batch(batch, header)
        except Unreadable:
            self.tally.unreadable_batches += 1
            self._note_kept(header)
            out.keep(header, batch)
            return
        kept = self._kept(header, records)
        self.tally.records_read += len(records)
        self.tally.records_kept += len(kept)
        if not kept:
            self._put_header(header, batch, out)
            return
        self._note_kept(header)
        if header.delete_horizon_ms is None and any(record.is_tombstone for record in kept):
            out.replace(self._with_horizon(header, section, kept))
        elif len(kept) == len(records):
            out.keep(header, batch)
        else:
            out.replace(_with_records(header, section, kept))

    def _note_kept(self, header: BatchHeader) -> None:
        if header.is_transactional:
            self._with_records.add(ProducerId(header.producer_id))

    def _kept(
        self, header: BatchHeader, records: Sequence[ScannedRecord]
    ) -> Sequence[ScannedRecord]:
        base, offsets = header.base_offset, self.keys.offsets
        horizon_ms = header.delete_horizon_ms
        drops_deletions = horizon_ms is not None and self.now_ms >= horizon_ms
        kept = []
        for record in records:
            key = record.key
            if key is not None:
                if len(key) > KEY_BYTES_MAX:
                    key = short(key)
                if offsets.get(key, -1) > base + record.offset_delta:
                    continue
                if drops_deletions and record.is_tombstone:
                    continue
            kept.append(record)
        return kept

    def _with_horizon(
        self, header: BatchHeader, section: bytes, records: Sequence[ScannedRecord]
    ) -> bytes:
        """The batch with these records, of which the deletions may go from then on.

        The horizon stands where the records' timestamps count from, so those change.
        """
        horizon_ms = min(self.now_ms + self.delete_retention_ms, _FOR_EVER_MS)
        shift = header.base_timestamp - horizon_ms
        parts: list[bytes] = []
        for _, end, after_timestamp, timestamp_delta, *_ in records:
            timestamp = varint(_bounded(timestamp_delta + shift))
            rest = section[after_timestamp:end]
            parts += (varint(1 + len(timestamp) + len(rest)), b"\x00", timestamp, rest)
        changed = header._replace(
            base_timestamp=horizon_ms, attributes=header.attributes | DELETE_HORIZON_BIT
        )
        return _built(changed, b"".join(parts), records, header.base_timestamp)


def _with_records(header: BatchHeader, section: bytes, records: Sequence[ScannedRecord]) -> bytes:
    """The batch with only these records, byte for byte as they were."""
    parts = [section[record.start : record.end] for record in records]
    return _built(header, b"".join(parts), records, header.base_timestamp)


def _built(
    header: BatchHeader, section: bytes, records: Sequence[ScannedRecord], base_timestamp: int
) -> bytes:
    """Offsets, sequences, epoch and producer are the batch's, as they were."""
    max_timestamp = header.max_timestamp
    if not header.is_log_append_time and not header.is_control:
        last = max(record.timestamp_delta for record in records)
        max_timestamp = _bounded(base_timestamp + last)
    changed = header._replace(record_count=len(records), max_timestamp=max_timestamp)
    return build_batch(compress(header.compression, section), changed)


def _bounded(ms: int) -> int:
    """What a field can hold. Producers say what time it is, and a sum may be beyond all times."""
    return max(-(2**63), min(ms, 2**63 - 1))
