"""What one compaction is to do, and what has come of it: values that can go to another process."""

from dataclasses import asdict, field
from typing import Any, NamedTuple

from tidemark.partitions.storage.compaction.settings import CompactionLimits
from tidemark.protocol.types import Offset, ProducerId
from tidemark.protocol.values import dataclass


class SourceSegment(NamedTuple):
    """A segment as it lies in its file."""

    base_offset: Offset
    end_offset: Offset
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One run over the beginning of one log. Nothing in its files changes meanwhile."""

    directory: str
    segments: tuple[SourceSegment, ...]
    """Contiguous, from the log's first on; all of them are committed and on the disk."""
    dirty_from: Offset
    """Below it, no key stands twice."""
    now_ms: int
    delete_retention_ms: int
    segment_bytes: int
    interval_bytes: int
    producers: frozenset[ProducerId]
    """Those that may go on producing: the last batch of each is kept, empty if need be."""
    limits: CompactionLimits

    @property
    def end_offset(self) -> Offset:
        return self.segments[-1].end_offset

    def to_json(self) -> dict[str, Any]:  # Any: as json gives and takes it
        return asdict(self) | {
            "segments": [list(segment) for segment in self.segments],
            "producers": sorted(self.producers),
        }

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "Job":  # Any: as json gives and takes it
        return cls(
            **values
            | {
                "segments": tuple(SourceSegment(*row) for row in values["segments"]),
                "producers": frozenset(values["producers"]),
                "limits": CompactionLimits(**values["limits"]),
            }
        )


class Rewritten(NamedTuple):
    """A new segment in a file of its own, to stand for those from `base_offset` to `end_offset`."""

    base_offset: Offset
    end_offset: Offset
    size_bytes: int
    is_changed: bool
    """Else it says the same as the old ones, and there is no file."""


@dataclass(slots=True, kw_only=True)
class Tally:
    """What a run has read and left."""

    bytes_read: int = 0
    """Of the segments that were rewritten."""
    bytes_written: int = 0
    records_read: int = 0
    records_kept: int = 0
    unreadable_batches: int = 0
    """Kept as they were, for what is in them is no records."""
    keys: int = 0
    """In the map, of the part that was dirty."""
    cleaned_to: Offset = field(default=Offset(0))
    """Below it, no key stands twice now."""
