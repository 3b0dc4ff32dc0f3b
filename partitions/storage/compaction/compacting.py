"""One run: what is dirty goes into a map of keys, then the log is written anew by it.

| step | reads | |
|------|-------|-|
| survey | headers and markers | transactions, and the last batch of each producer |
| map | the dirty part | the last offset of each key, until the map is full |
| rewriting | the log up to there | segments, small neighbours together, the oldest first |

The oldest first: where a run ends in between, a deletion is still there for every record that is.
A map that is full ends the part that this run cleans. What has more keys than fit is cleaned by the
runs that follow, each of which goes on where the one before has ended.
"""

from collections.abc import Iterator, Sequence

from tidemark.partitions.storage.compaction.filtering import BatchFilter
from tidemark.partitions.storage.compaction.job import Job, Rewritten, SourceSegment, Tally
from tidemark.partitions.storage.compaction.keys import KEY_BYTES_MAX, KeyOffsets, short
from tidemark.partitions.storage.compaction.names import (
    SwapRange,
    new_index_path,
    new_log_path,
    new_time_index_path,
)
from tidemark.partitions.storage.compaction.reading import Pace, read_batches, segment_path
from tidemark.partitions.storage.compaction.rewriting import SegmentRewriter
from tidemark.partitions.storage.compaction.scanning import Unreadable, scan_batch
from tidemark.partitions.storage.compaction.survey import Survey, survey
from tidemark.partitions.storage.compaction.swapping import give_up_swap
from tidemark.partitions.storage.files import Files
from tidemark.partitions.storage.index import RELATIVE_OFFSET_MAX
from tidemark.protocol.records.header import BatchHeader
from tidemark.protocol.types import Offset


class CompactionRun:
    """Blocking; for a thread, or a process, that serves nobody else."""

    def __init__(self, files: Files, job: Job, pace: Pace) -> None:
        self.tally = Tally(cleaned_to=job.dirty_from)
        self._files = files
        self._job = job
        self._pace = pace

    def __iter__(self) -> Iterator[Rewritten]:
        """The new segments, each on the disk under a name of its own, the oldest first.

        Each is to be put in its place, or given up, before the next is asked for. Raises
        `StorageError` for a log that is not sound, and `OSError`.
        """
        job = self._job
        found = survey(self._files, job)
        keys = self._map_keys(found)
        if self.tally.cleaned_to <= job.dirty_from:
            return
        chosen = BatchFilter.over(
            found,
            keys,
            now_ms=job.now_ms,
            delete_retention_ms=job.delete_retention_ms,
            tally=self.tally,
        )
        sources = [each for each in job.segments if each.base_offset < self.tally.cleaned_to]
        for group in grouped(sources, job.segment_bytes):
            yield self._rewrite(group, chosen)

    def _map_keys(self, found: Survey) -> KeyOffsets:
        """The last offset of each key, from where the log is dirty on."""
        keys, tally = KeyOffsets(self._job.limits.map_bytes_max), self.tally
        for header, batch in self._dirty_batches():
            if header.base_offset >= found.end_offset or keys.is_full:
                break
            if header.record_count and not header.is_control and not found.is_aborted(header):
                _add_keys(keys, header, batch)
            tally.cleaned_to = header.next_offset
        tally.keys = len(keys)
        return keys

    def _dirty_batches(self) -> Iterator[tuple[BatchHeader, memoryview]]:
        dirty_from = self._job.dirty_from
        for source in self._job.segments:
            if source.end_offset > dirty_from:
                for header, batch in self._batches(source):
                    if header.base_offset >= dirty_from:
                        yield header, batch

    def _batches(self, source: SourceSegment) -> Iterator[tuple[BatchHeader, memoryview]]:
        path = segment_path(self._job.directory, source.base_offset)
        return read_batches(self._files, path, source.size_bytes, self._pace)

    def _rewrite(self, group: Sequence[SourceSegment], chosen: BatchFilter) -> Rewritten:
        span = SwapRange(group[0].base_offset, group[-1].end_offset)
        try:
            rewritten = self._write_anew(group, span, chosen)
        except BaseException:
            give_up_swap(self._files, self._job.directory, span)
            raise
        if not rewritten.is_changed:
            give_up_swap(self._files, self._job.directory, span)
        return rewritten

    def _write_anew(
        self, group: Sequence[SourceSegment], span: SwapRange, chosen: BatchFilter
    ) -> Rewritten:
        job, tally = self._job, self.tally
        out = SegmentRewriter(
            self._files,
            new_log_path(job.directory, *span),
            span.base_offset,
            interval_bytes=job.interval_bytes,
            pace=self._pace,
        )
        for source in group:
            for header, batch in self._batches(source):
                chosen.put(header, batch, out)
            tally.bytes_read += source.size_bytes
        out.finish()
        tally.bytes_written += out.size_bytes
        self._write(new_index_path(job.directory, *span), out.index.encode())
        self._write(new_time_index_path(job.directory, *span), out.index.encode_times())
        is_changed = out.is_changed or len(group) > 1
        return Rewritten(span.base_offset, span.end_offset, out.size_bytes, is_changed)

    def _write(self, path: str, data: bytes) -> None:
        file = self._files.create(path)
        file.pwrite(data, 0)
        file.sync()


def _add_keys(keys: KeyOffsets, header: BatchHeader, batch: memoryview) -> None:
    try:
        _, records = scan_batch(batch, header)
    except Unreadable:
        return
    base, offsets = header.base_offset, keys.offsets
    for record in records:
        key = record.key
        if key is not None:
            if len(key) > KEY_BYTES_MAX:
                key = short(key)
            offsets[key] = Offset(base + record.offset_delta)


def grouped(
    sources: Sequence[SourceSegment], segment_bytes: int
) -> Iterator[Sequence[SourceSegment]]:
    """Neighbours that fit into one segment even if all of them stays."""
    group: list[SourceSegment] = []
    for source in sources:
        size_bytes = sum(each.size_bytes for each in group) + source.size_bytes
        if group and (
            size_bytes > segment_bytes
            or source.end_offset - group[0].base_offset > RELATIVE_OFFSET_MAX
        ):
            yield group
            group = []
        group.append(source)
    if group:
        yield group
