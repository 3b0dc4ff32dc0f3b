"""Batches that were appended a moment ago, kept in memory for the followers they go to.

Followers that keep up get the very bytes that went into the journal; one that is behind is read to
from the log's files.
"""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple, TypeAlias

from tidemark.protocol.types import Epoch, Offset

BYTES_MAX: Final = 16 << 20
RUN_BYTES: Final = 300
"""What a run takes beside its records: of one of 75 bytes that is four times as much."""
_JOIN_BYTES_MAX: Final = 64 << 10


class KeptRun(NamedTuple):
    """As a `Run`, which takes longer to make: one is kept for every batch."""

    epoch: Epoch
    base_offset: Offset
    end_offset: Offset
    records: bytes


RecentRuns: TypeAlias = dict[Offset, KeptRun]
"""Of one group, by base offset."""
NO_RUNS: Final[RecentRuns] = {}
"""Shared by thousands of groups to which nothing is appended; nothing is ever put in."""


class RecentBytes:
    """The bound on what all groups of a broker keep: the oldest go first."""

    def __init__(self, bytes_max: int = BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._size_bytes = 0
        self._kept: deque[tuple[RecentRuns, KeptRun]] = deque()

    @property
    def size_bytes(self) -> int:
        return self._size_bytes

    def keep(self, runs: RecentRuns, run: KeptRun) -> None:
        runs[run.base_offset] = run
        self._kept.append((runs, run))
        self._size_bytes += RUN_BYTES + len(run.records)
        while self._size_bytes > self._bytes_max:
            oldest_runs, oldest = self._kept.popleft()
            self._size_bytes -= RUN_BYTES + len(oldest.records)
            if oldest_runs.get(oldest.base_offset) is oldest:
                del oldest_runs[oldest.base_offset]


def find(runs: RecentRuns, offset: Offset, *, end: Offset, bytes_max: int) -> KeptRun | None:
    """What begins at `offset`, small batches joined up to about `bytes_max`; `None` if not kept."""
    first = runs.get(offset)
    if first is None or first.end_offset > end:
        return None
    size_bytes = len(first.records)
    if size_bytes >= _JOIN_BYTES_MAX:
        return first
    parts, last = [first.records], first
    while size_bytes < bytes_max:
        following = runs.get(last.end_offset)
        if (
            following is None
            or following.epoch != first.epoch
            or following.end_offset > end
            or size_bytes + len(following.records) > bytes_max
        ):
            break
        parts.append(following.records)
        size_bytes += len(following.records)
        last = following
    if last is first:
        return first
    return KeptRun(first.epoch, offset, last.end_offset, b"".join(parts))
