"""Looking at a log's files from outside, without a broker and without changing anything.

`dump` gives what is there, batch by batch; what is wrong with it is `verify`'s to say. Both go on
as far as sense can be made of the bytes, and neither holds more than one batch in memory. The files
may be in use: what the broker is just appending may then look like a torn tail.
"""

from collections.abc import Iterator
from typing import Final

from tidemark.partitions.storage.files import File, Files
from tidemark.partitions.storage.names import LOG_SUFFIX, offset_in
from tidemark.partitions.storage.older_tail import LEFT_BY_OLDER, is_left_by_older
from tidemark.partitions.storage.scan import iter_batches
from tidemark.protocol.errors import CorruptBatch, StorageError
from tidemark.protocol.records.control import Marker, read_marker
from tidemark.protocol.records.header import BatchHeader, check_crc
from tidemark.protocol.records.records import Record, decode_records
from tidemark.protocol.types import Offset
from tidemark.protocol.values import dataclass

_LOOKS_MAX: Final = 5
_REMOVED: Final = "removed while it was read"


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


def partition_directories(files: Files, path: str) -> list[str]:
    """The directories with a log in them: `path` itself, or those in it.

    Raises `StorageError` if there are none.
    """
    try:
        candidates = [path, *(f"{path}/{name}" for name in sorted(files.subdirectories(path)))]
        found = [directory for directory in candidates if _has_segments(files, directory)]
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error.strerror or error}") from error
    if not found:
        raise StorageError(f"{path} has no log in it: no file that ends in {LOG_SUFFIX}")
    return found[:1] if found[0] == path else found


def dump(files: Files, path: str, *, with_records: bool = False) -> Iterator[StoredBatch | Problem]:
    """Every batch of a segment file, or of all segments of a partition's directory.

    Where bytes are no batch, a `Problem` is given and the rest of that file left out, for nobody
    knows where the next batch begins. Raises `StorageError` if there is nothing to look at.

    A broker that runs removes segments, and puts others in their place: where one is gone by the
    time it is read, that is a harmless `Problem`, and what is there by then is gone on with.
    """
    paths = segment_paths(files, path)
    begin = end = Offset(0)
    looks = 0
    while paths:
        try:
            for found in _dump(files, paths[0], begin, with_records=with_records):
                looks = 0
                if isinstance(found, StoredBatch) and found.damage is None:
                    end = found.header.next_offset
                yield found
        except StorageError as error:
            looks += 1
            is_gone = isinstance(error.__cause__, FileNotFoundError)
            if not is_gone or paths[0] == path or looks == _LOOKS_MAX:
                raise
            what = f"{_REMOVED}: what is there by now follows"
            yield Problem(path=paths[0], position=0, what=what, is_harmless=True)
            begin = end
            paths = _paths_from(files, path, begin)
        else:
            del paths[0]


def _dump(
    files: Files, path: str, begin: Offset, *, with_records: bool
) -> Iterator[StoredBatch | Problem]:
    """What one segment has, from an offset on. Raises `StorageError`, from `FileNotFoundError` once
    it is gone: its file may be another segment's by then."""
    file = open_segment(files, path)
    least = offset_in(path.rpartition("/")[2], LOG_SUFFIX) or Offset(0)
    try:
        for position, header in iter_batches(file, 0, file.size()):
            if 0 < header.next_offset <= begin:
                continue
            is_older = header.base_offset < least and is_left_by_older(file, position, least)
            stored = read_batch(file, path, position, header, with_records=with_records)
            _require(files, path)
            yield leftover(path, position) if is_older else stored
            if is_older:
                return
    except CorruptBatch as error:
        is_older = is_left_by_older(file, error.at, least)
        _require(files, path)
        problem = Problem(path=path, position=error.at, what=error.what)
        yield leftover(path, error.at) if is_older else problem


def _require(files: Files, path: str) -> None:
    if not files.exists(path):
        raise StorageError(f"{path} was {_REMOVED}") from FileNotFoundError(path)


def _paths_from(files: Files, directory: str, begin: Offset) -> list[str]:
    """The segments that are there now, from the one on that would hold this offset."""
    try:
        paths = segment_paths(files, directory)
    except StorageError:
        return []
    before = [path for path in paths if base_offset_of(path) <= begin]
    return before[-1:] + paths[len(before) :]


def read_batch(
    file: File, path: str, position: int, header: BatchHeader, *, with_records: bool
) -> StoredBatch:
    """The batch of a header that was read at that position, sound or not."""
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


def leftover(path: str, position: int) -> Problem:
    """From there on, what an older segment has left in the file is in the segment's place."""
    return Problem(path=path, position=position, what=LEFT_BY_OLDER, is_harmless=True)


def base_offset_of(path: str) -> Offset:
    """Of a segment, by its file's name. Raises `StorageError` if it is not named as one."""
    offset = offset_in(path.rpartition("/")[2], LOG_SUFFIX)
    if offset is None:
        raise StorageError(f"{path} is not named as a segment is: 20 digits and {LOG_SUFFIX}")
    return offset


def segment_paths(files: Files, path: str) -> list[str]:
    """A segment's file itself, or those of a partition's directory. Raises `StorageError` if there
    are none."""
    if path.endswith(LOG_SUFFIX):
        return [path]
    try:
        names = _segments_in(files, path)
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error.strerror or error}") from error
    if not names:
        raise StorageError(f"{path} has no log in it: no file that ends in {LOG_SUFFIX}")
    return [f"{path}/{name}" for name in names]


def open_segment(files: Files, path: str) -> File:
    """Raises `StorageError`."""
    try:
        return files.open_reader(path)
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error.strerror or error}") from error


def _has_segments(files: Files, directory: str) -> bool:
    try:
        return bool(_segments_in(files, directory))
    except FileNotFoundError:
        return False  # a broker that runs has just removed it


def _segments_in(files: Files, directory: str) -> list[str]:
    names = files.sizes(directory)
    return sorted(name for name in names if offset_in(name, LOG_SUFFIX) is not None)
