"""What a log is made of, and what it says of itself."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from tidemark.partitions.storage.home import LogHome
from tidemark.partitions.storage.index import GrowingIndex
from tidemark.partitions.storage.recovery_report import RecoveryReport
from tidemark.partitions.storage.recycled_file import RecycledFile
from tidemark.partitions.storage.room import ALWAYS
from tidemark.partitions.storage.segment import Segment
from tidemark.partitions.storage.settings import LogSettings
from tidemark.partitions.storage.syncing import SyncState
from tidemark.protocol.errors import StorageError
from tidemark.protocol.types import NO_TIMESTAMP_MS, Offset

NOT_KNOWN_MS: Final = NO_TIMESTAMP_MS - 1
"""Below every timestamp, so that each asks."""
_NOT_LOADED: Final = GrowingIndex(Offset(0), 0)
UNSYNCED_BYTES_MAX: Final = 64 << 20
"""Worth a sync: a start after a crash checks about 200 MB in a second, and writes it again."""


class LogState:
    """The segments and what is known of them; how they change is in those that derive from it.

    Invariant: `start_offset <= end_offset`; the segments' offsets are contiguous and reach from
    at most `start_offset` to `end_offset`.
    """

    __slots__ = (
        "_active",
        "_begun_bytes",
        "_begun_end",
        "_cleaned_to",
        "_doubted_from",
        "_home",
        "_index",
        "_is_ragged",
        "_rolls_above_ms",
        "_sealed_bytes",
        "_segment_bytes",
        "_segments",
        "_settings",
        "_shared",
        "_take_snapshot",
        "_unsynced",
        "end_offset",
        "recovery",
        "room",
        "start_offset",
    )

    def __init__(
        self,
        home: LogHome,
        segments: list[Segment],
        settings: LogSettings,
        start_offset: Offset,
        recovery: RecoveryReport,
        take_snapshot: Callable[[], bytes] | None,
    ) -> None:
        """For `Log.open`. The segments are contiguous, and on the disk."""
        self.start_offset = max(start_offset, segments[0].base_offset)
        self.end_offset = segments[-1].end_offset
        self.recovery = recovery
        self.room = ALWAYS
        """Whether it takes appends; its owner may give it another."""
        self._home = home
        self._segments = segments
        self._sealed_bytes = sum(segment.size_bytes for segment in segments[:-1])
        self._active = segments[-1]
        # Of the active segment; loaded when it is first appended to, and its file is opened.
        has_file = self._active.writer is not None
        self._index = self._active.growing_index() if has_file else _NOT_LOADED
        # Whether the active file may hold more than the segment: what a failed append left.
        self._is_ragged = False
        self._settings = settings
        self._segment_bytes = settings.segment_bytes
        # A batch with a larger timestamp begins a new segment.
        self._rolls_above_ms = NOT_KNOWN_MS
        self._take_snapshot = take_snapshot
        # Made when there is something to be synced, or cut; of thousands most never have that.
        self._shared: SyncState | None = None
        # Complete segments of which something is not on the disk: bytes, or the indexes.
        self._unsynced = tuple(segment for segment in segments[:-1] if segment.unsaved_index)
        # What the last capture covers: the end offset, and the active segment's bytes.
        self._begun_end, self._begun_bytes = self.end_offset, self._active.size_bytes
        self._doubted_from: Offset | None = None
        # Loaded when it is first asked for.
        self._cleaned_to: Offset | None = None

    def __repr__(self) -> str:
        return f"<Log {self._home.directory} {self.start_offset} to {self.end_offset}>"

    @property
    def _state(self) -> SyncState:
        if self._shared is None:
            recycled = RecycledFile(self._home.files, self._home.directory)
            self._shared = SyncState(recycled)
        return self._shared

    @property
    def _is_swapping(self) -> bool:
        """Whether segments are being replaced."""
        return self._shared is not None and self._shared.swap is not None

    @property
    def directory(self) -> str:
        return self._home.directory

    @property
    def settings(self) -> LogSettings:
        """Settings may be changed at any time; those of the index keep to what is there."""
        return self._settings

    @settings.setter
    def settings(self, settings: LogSettings) -> None:
        if settings is self._settings:
            return
        self._settings = settings
        self._segment_bytes = settings.segment_bytes
        self._rolls_above_ms = NOT_KNOWN_MS
        self._home = replace(self._home, interval_bytes=settings.index_interval_bytes)

    @property
    def size_bytes(self) -> int:
        """Of all segments' batches, without indexes."""
        return self._sealed_bytes + self._active.size_bytes

    @property
    def segment_count(self) -> int:
        return len(self._segments)

    @property
    def has_failed(self) -> bool:
        """Whether a sync has failed: nothing is known about the disk since."""
        return self._shared is not None and self._shared.failure is not None

    @property
    def needs_sync(self) -> bool:
        """Whether a roll has left something to be written, or much was appended since the last
        sync: worth one in the background, even where nobody waits for it (`flush=os`), for it
        bounds what a crash makes the next start do."""
        if self._unsynced or (self._shared is not None and self._shared.unfinished):
            return True
        return self._active.size_bytes - self._begun_bytes >= UNSYNCED_BYTES_MAX

    def doubt(self, from_offset: Offset | None) -> None:
        """From there on the log may be another than its owner takes it for; `None`: it is not.

        What is in doubt is synced, and never said to be: so it lies above the recovery point,
        and the next opening checks it against the log's epochs.
        """
        self._doubted_from = from_offset

    @property
    def _certain_end(self) -> Offset:
        doubted_from = self._doubted_from
        return self.end_offset if doubted_from is None else min(self.end_offset, doubted_from)

    def _refuse_after_failure(self) -> None:
        if self.has_failed:
            raise StorageError(
                f"{self._home.directory}: a sync failed ({self._state.failure}); nothing is known "
                "about the disk since. Start the broker again"
            )
