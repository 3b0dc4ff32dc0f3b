"""Looking at a log's files from outside, without a broker and without changing anything.

`dump` gives what is there, batch by batch; `verify` says what is wrong with it. Both go on as far
as sense can be made of the bytes, and neither holds more than one batch in memory. The files may be
in use: what the broker is just appending may then look like a torn tail.
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
from tidemark.partitions.storage.names import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SNAPSHOT_SUFFIX,
    TIME_INDEX_SUFFIX,
    file_name,
    offset_in,
)
from tidemark.partitions.storage.older_tail import LEFT_BY_OLDER, is_left_by_older
from tidemark.partitions.storage.scan import iter_batches
from tidemark.partitions.storage.snapshots import Snapshots
from tidemark.protocol.errors import CorruptBatch, StorageError
from tidemark.protocol.records.control import Marker, read_marker
from tidemark.protocol.records.header import BatchHeader, check_crc
from tidemark.protocol.records.records import Record, decode_records
from tidemark.protocol.types import NO_EPOCH, Offset
from tidemark.protocol.values import dataclass

_LOOKS_MAX: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBatch:
    """One batch as it lies in a file."""

    path: str
    position: int
    header: BatchHeader
    records: tuple[Record, ...] | None
    """Decoded, if that was asked for and they can be."""
    damage: str | None
    """Why the batch is not sound; its header may then be wrong as well."""
    marker: Marker | None = None
    """How a transaction has ended, if this is its marker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something in a file that should not be so."""

    path: str
    position: int
    what: str
    is_harmless: bool = False
    """Whether no record is concerned: the broker makes an index anew when it needs it."""


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


def partition_directories(files: Files, path: str) -> list[str]:
    """The directories with a log in them: `path` itself, or those in it.

    Raises `StorageError` if there are none.
    """
    try:
        candidates = [path, *(f"{path}/{name}" for name in sorted(files.subdirectories(path)))]
        found = [directory for directory in candidates if _segments_in(files, directory)]
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error.strerror or error}") from error
    if not found:
        raise StorageError(f"{path} has no log in it: no file that ends in {LOG_SUFFIX}")
    return found[:1] if found[0] == path else found


def dump(files: Files, path: str, *, with_records: bool = False) -> Iterator[StoredBatch | Problem]:
    """Every batch of a segment file, or of all segments of a partition's directory.

    Where bytes are no batch, a `Problem` is given and the rest of that file left out, for nobody
    knows where the next batch begins. Raises `StorageError` if there is nothing to look at.
    """
    for segment_path in _segment_paths(files, path):
        file = _open(files, segment_path)
        least = offset_in(segment_path.rpartition("/")[2], LOG_SUFFIX) or Offset(0)
        try:
            for position, header in iter_batches(file, 0, file.size()):
                if header.base_offset < least and is_left_by_older(file, position, least):
                    yield _older(segment_path, position)
                    break
                yield _stored_batch(file, segment_path, position, header, with_records=with_records)
        except CorruptBatch as error:
            if is_left_by_older(file, error.at, least):
                yield _older(segment_path, error.at)
            else:
                yield Problem(path=segment_path, position=error.at, what=error.what)


def verify(
    files: Files, directory: str, *, progress: Callable[[int], None] = lambda size_bytes: None
) -> Verification:
    """Check every byte of one partition's log, and its indexes against it.

    `progress` is told of bytes as they have been checked. Raises `StorageError` if there is no log.

    A broker that runs removes segments, and puts others in their place: where one is gone by the
    time it is read, or something is wrong and there are others by then, the log is looked at anew.
    """
    paths = _segment_paths(files, directory)
    for _ in range(_LOOKS_MAX - 1):
        try:
            found = _verify(files, directory, paths, progress)
        except (StorageError, FileNotFoundError) as error:
            if not isinstance(error.__cause__ or error, FileNotFoundError):
                raise
            found = None
        seen, paths = paths, _segment_paths(files, directory)
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
        segment = _VerifiedSegment(path, _base_offset(path), _open(files, path))
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
                stored = _stored_batch(self.file, self.path, position, header, with_records=True)
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
        self.problems.append(_older(self.path, position))
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


def _stored_batch(
    file: File, path: str, position: int, header: BatchHeader, *, with_records: bool
) -> StoredBatch:
    records = damage = marker = None
    data = file.pread(header.size_bytes, position)
    try:
        check_crc(data, header)
        if header.is_control:
            marker = read_marker(data, header)
        elif with_records:
            records = tuple(decode_records(data))
            if len(records) != header.record_count:
                damage = f"{len(records)} records where {header.record_count} are stated"
    except CorruptBatch as error:
        damage = error.what
    return StoredBatch(
        path=path,
        position=position,
        header=header,
        records=records,
        damage=damage,
        marker=marker,
    )


def _older(path: str, position: int) -> Problem:
    return Problem(path=path, position=position, what=LEFT_BY_OLDER, is_harmless=True)


def _snapshot_problems(files: Files, directory: str) -> Iterator[Problem]:
    snapshots = Snapshots(files, directory)
    for offset in snapshots.offsets():
        if snapshots.load(offset) is None:
            path = f"{directory}/{file_name(offset, SNAPSHOT_SUFFIX)}"
            yield Problem(path=path, position=0, what="its CRC is wrong", is_harmless=True)


def _segment_paths(files: Files, path: str) -> list[str]:
    if path.endswith(LOG_SUFFIX):
        return [path]
    try:
        names = _segments_in(files, path)
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error.strerror or error}") from error
    if not names:
        raise StorageError(f"{path} has no log in it: no file that ends in {LOG_SUFFIX}")
    return [f"{path}/{name}" for name in names]


def _segments_in(files: Files, directory: str) -> list[str]:
    names = files.sizes(directory)
    return sorted(name for name in names if offset_in(name, LOG_SUFFIX) is not None)


def _base_offset(path: str) -> Offset:
    offset = offset_in(path.rpartition("/")[2], LOG_SUFFIX)
    if offset is None:
        raise StorageError(f"{path} is not named as a segment is: 20 digits and {LOG_SUFFIX}")
    return offset


def _open(files: Files, path: str) -> File:
    try:
        return files.open_reader(path)
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error.strerror or error}") from error
