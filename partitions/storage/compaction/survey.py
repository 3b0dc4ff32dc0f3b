"""What has to be known of producers and transactions before a record is dropped.

One walk over the headers, and into the markers. A transaction that is undecided at the end of what
is looked at ends what may be compacted: so nothing at or above the last stable offset is, whatever
the partition's own table of transactions says.
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import field
from operator import itemgetter
from typing import Final

from tidemark.partitions.storage.compaction.job import Job
from tidemark.partitions.storage.compaction.reading import segment_path
from tidemark.partitions.storage.files import File, Files, corrupt
from tidemark.partitions.storage.scan import iter_batches
from tidemark.protocol.errors import CorruptBatch
from tidemark.protocol.records.control import Marker, read_marker
from tidemark.protocol.records.header import BatchHeader
from tidemark.protocol.types import Offset, ProducerId
from tidemark.protocol.values import dataclass

_marker_of: Final = itemgetter(1)


@dataclass(slots=True)
class Survey:
    """Of a log's beginning."""

    end_offset: Offset
    """Below it every transaction has its marker."""
    aborted: dict[ProducerId, list[tuple[Offset, Offset]]] = field(default_factory=dict)
    """For each producer, from where to which marker a transaction reached that was given up, in
    their order. Their markers stay in the log, so these may be many."""
    commits: set[Offset] = field(default_factory=set)
    """The markers of those that were committed."""
    last_batch: dict[ProducerId, Offset] = field(default_factory=dict)
    last_marker: dict[ProducerId, Offset] = field(default_factory=dict)

    def is_aborted(self, header: BatchHeader) -> bool:
        """Whether nobody is to see what is in this batch."""
        if not header.is_transactional or header.is_control:
            return False
        reaches = self.aborted.get(ProducerId(header.producer_id), ())
        # The first that has not ended before it: a producer's transactions follow each other.
        at = bisect_right(reaches, header.base_offset, key=_marker_of)
        return at < len(reaches) and reaches[at][0] <= header.base_offset

    def is_last(self, header: BatchHeader) -> bool:
        """Whether its producer's state would be another without it."""
        last = self.last_marker if header.is_control else self.last_batch
        return last.get(ProducerId(header.producer_id)) == header.base_offset


def survey(files: Files, job: Job) -> Survey:
    """Raises `StorageError` for a file whose headers do not join."""
    found = Survey(job.end_offset)
    undecided: dict[ProducerId, Offset] = {}
    for path, file, position, header in _headers(files, job):
        if header.producer_id < 0:
            continue
        producer = ProducerId(header.producer_id)
        if producer in job.producers:
            last = found.last_marker if header.is_control else found.last_batch
            last[producer] = header.base_offset
        if header.is_control:
            marker = _marker(path, file, position, header)
            if marker is None:
                continue
            first = undecided.pop(producer, None)
            if marker.is_commit:
                found.commits.add(header.base_offset)
            elif first is not None:
                found.aborted.setdefault(producer, []).append((first, header.base_offset))
        elif header.is_transactional:
            undecided.setdefault(producer, header.base_offset)
    found.end_offset = min([job.end_offset, *undecided.values()])
    return found


def _headers(files: Files, job: Job) -> Iterator[tuple[str, File, int, BatchHeader]]:
    for base_offset, end_offset, size_bytes in job.segments:
        path = segment_path(job.directory, base_offset)
        file, expected = files.open_reader(path), base_offset
        try:
            for position, header in iter_batches(file, 0, size_bytes):
                if header.base_offset != expected:
                    raise CorruptBatch(
                        position, f"offset {header.base_offset} where {expected} is next"
                    )
                expected = header.next_offset
                yield path, file, position, header
        except CorruptBatch as error:
            raise corrupt(path, error.at, error.what) from error
        if expected != end_offset:
            raise corrupt(path, size_bytes, f"it ends at {expected}, and {end_offset} is next")


def _marker(path: str, file: File, position: int, header: BatchHeader) -> Marker | None:
    try:
        return read_marker(file.pread(header.size_bytes, position), header)
    except CorruptBatch as error:
        raise corrupt(path, position, error.what) from error
