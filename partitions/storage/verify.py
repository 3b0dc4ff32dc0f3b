"""Whether a log's files are sound: every byte of its segments, and the indexes held against them.

Files are read as `inspect` does, from outside, and one batch at a time.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from typing import Final

from tidemark.partitions.storage.files import File, Files, read_file
from tidemark.partitions.storage.index import (
    ENTRY_BYTES,
    TIME_ENTRY_BYTES,
    decode_entries,
    decode_time_entries,
)
from tidemark.partitions.storage.inspect import (
    Problem,
    base_offset_of,
    leftover,
    open_segment,
    read_batch,
    segment_paths,
)
from tidemark.partitions.storage.names import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SNAPSHOT_SUFFIX,
    TIME_INDEX_SUFFIX,
    file_name,
)
from tidemark.partitions.storage.older_tail import is_left_by_older
from tidemark.partitions.storage.scan import iter_batches
from tidemark.partitions.storage.snapshots import Snapshots
from tidemark.protocol.errors import CorruptBatch, StorageError
from tidemark.protocol.types import NO_EPOCH, Offset
from tidemark.protocol.values import dataclass

_LOOKS_MAX: Final = 5


@dataclass(slots=True, kw_only=True)
class Verification:
    """What a look at all files of one partition's log came to."""

    directory: str
    segments: int = 0
    batches: int = 0
    records: int = 0
    size_bytes: int = 0
    """Of the segments' files, without `older_bytes`."""
    older_bytes: int = 0
    """What older segments have left in them, behind their ends."""
    start_offset: Offset | None = None
    end_offset: Offset | None = None
    problems: list[Problem] = field(default_factory=list)

    @property
    def is_sound(self) -> bool:
        """Whether every record is there as it was written."""
        return all(problem.is_harmless for problem in self.problems)


def verify(
    files: Files, directory: str, *, progress: Callable[[int], None] = lambda size_bytes: None
) -> Verification:
    """Check every byte of one partition's log, and its indexes against it.

    `progress` is told of bytes as they have been checked. Raises `StorageError` if there is no log.

    A broker that runs removes segments, and puts others in their place: where one is gone by the
    time it is read, or something is wrong and there are others by then, the log is looked at anew.
    """
    paths = segment_paths(files, directory)
    for _ in range(_LOOKS_MAX - 1):
        try:
            found = _verify(files, directory, paths, progress)
        except (StorageError, FileNotFoundError) as error:
            if not isinstance(error.__cause__ or error, FileNotFoundError):
                raise
            found = None
        seen, paths = paths, segment_paths(files, directory)
        if found is not None and (found.is_sound or seen == paths):
            return found
    return _verify(files, directory, paths, progress)


def _verify(
    files: Files, directory: str, paths: Sequence[str], progress: Callable[[int], None]
) -> Verification:
    found = Verification(directory=directory)
    expected: Offset | None = None
    epoch: int = NO_EPOCH
    for path in paths:
        segment = _VerifiedSegment(path, base_offset_of(path), open_segment(files, path))
        if expected is not None and expected != segment.base_offset:
            segment.problem(0, f"it begins at {segment.base_offset}, {expected} is next")
        epoch = segment.check(epoch, progress)
        segment.check_index(files)
        segment.check_time_index(files)
        expected = segment.end_offset
        found.segments += 1
        found.batches += len(segment.batches)
        found.records += segment.records
        found.size_bytes += segment.size_bytes - segment.older_bytes
        found.older_bytes += segment.older_bytes
        found.problems += segment.problems
        if found.start_offset is None:
            found.start_offset = segment.base_offset
        found.end_offset = segment.end_offset
    found.problems += _snapshot_problems(files, directory)
    return found


class _VerifiedSegment:
    """One segment while it is checked: where its batches are, to hold the indexes against."""

    def __init__(self, path: str, base_offset: Offset, file: File) -> None:
        self.path = path
        self.base_offset = base_offset
        self.end_offset = base_offset
        self.file = file
        self.size_bytes = file.size()
        self.older_bytes = 0
        self.records = 0
        self.problems: list[Problem] = []
        self.batches: dict[int, tuple[Offset, int]] = {}
        """By position: the last offset and the largest timestamp."""

    def problem(self, position: int, what: str) -> None:
        self.problems.append(Problem(path=self.path, position=position, what=what))

    def check(self, epoch: int, progress: Callable[[int], None]) -> int:
        """Check the batches; returns the last leader epoch."""
        try:
            for position, header in iter_batches(self.file, 0, self.size_bytes):
                if header.base_offset < self.base_offset and self._is_older(position):
                    self._leave_out(position, progress)
                    break
                stored = read_batch(self.file, self.path, position, header, with_records=True)
                if stored.damage is not None:
                    self.problem(position, stored.damage)
                if header.base_offset != self.end_offset:
                    self.problem(
                        position, f"offset {header.base_offset} where {self.end_offset} is next"
                    )
                if header.partition_leader_epoch < epoch:
                    self.problem(
                        position, f"leader epoch {header.partition_leader_epoch} after {epoch}"
                    )
                epoch = header.partition_leader_epoch
                self.end_offset = header.next_offset
                self.records += header.record_count
                self.batches[position] = (header.last_offset, header.max_timestamp)
                progress(header.size_bytes)
        except CorruptBatch as error:
            if self._is_older(error.at):
                self._leave_out(error.at, progress)
            else:
                self.problem(error.at, f"{error.what}; nothing behind it can be read")
        return epoch

    def _is_older(self, position: int) -> bool:
        return is_left_by_older(self.file, position, self.base_offset)

    def _leave_out(self, position: int, progress: Callable[[int], None]) -> None:
        self.problems.append(leftover(self.path, position))
        self.older_bytes = self.size_bytes - position
        progress(self.older_bytes)

    def check_index(self, files: Files) -> None:
        path = self.path.removesuffix(LOG_SUFFIX) + INDEX_SUFFIX
        data = self._index_data(files, path, ENTRY_BYTES)
        last = (-1, -1)
        for number, entry in enumerate(decode_entries(self.base_offset, data)):
            batch = self.batches.get(entry.position)
            if batch is None or batch[0] != entry.last_offset:
                what = f"no batch at {entry.position} ends with offset {entry.last_offset}"
                self._index_problem(path, number * ENTRY_BYTES, what)
            if entry <= last:
                self._index_problem(path, number * ENTRY_BYTES, "not larger than the entry before")
            last = entry

    def check_time_index(self, files: Files) -> None:
        path = self.path.removesuffix(LOG_SUFFIX) + TIME_INDEX_SUFFIX
        if not files.exists(path):
            return
        data = self._index_data(files, path, TIME_ENTRY_BYTES)
        records = self._records_of_timestamps()
        for number, entry in enumerate(decode_time_entries(self.base_offset, data)):
            if records.get(entry.offset) != entry.timestamp_ms:
                what = f"timestamp {entry.timestamp_ms} is not the largest up to {entry.offset}"
                self._index_problem(path, number * TIME_ENTRY_BYTES, what)

    def _records_of_timestamps(self) -> dict[Offset, int]:
        """Each batch that has a larger timestamp than all before it, by its last offset."""
        records: dict[Offset, int] = {}
        largest = -1
        for last_offset, timestamp_ms in self.batches.values():
            if timestamp_ms > largest:
                largest = records[last_offset] = timestamp_ms
        return records

    def _index_data(self, files: Files, path: str, entry_bytes: int) -> bytes:
        """Whole entries; none if there is no file, as for a segment that is still written."""
        if not files.exists(path):
            return b""
        data = read_file(files, path)
        whole = len(data) - len(data) % entry_bytes
        if whole != len(data):
            self._index_problem(path, whole, "it ends within an entry")
        return data[:whole]

    def _index_problem(self, path: str, position: int, what: str) -> None:
        self.problems.append(Problem(path=path, position=position, what=what, is_harmless=True))


def _snapshot_problems(files: Files, directory: str) -> Iterator[Problem]:
    snapshots = Snapshots(files, directory)
    for offset in snapshots.offsets():
        if snapshots.load(offset) is None:
            path = f"{directory}/{file_name(offset, SNAPSHOT_SUFFIX)}"
            yield Problem(path=path, position=0, what="its CRC is wrong", is_harmless=True)
