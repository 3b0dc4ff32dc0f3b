"""Reading a log: by offset, by time, and all that it tells its owner."""

from bisect import bisect_right
from collections.abc import Callable
from contextlib import suppress
from operator import attrgetter
from typing import Final

from tidemark.partitions.storage.derived_state import DerivedState, tell_batches
from tidemark.partitions.storage.log_syncing import SyncingLog
from tidemark.partitions.storage.segment import Segment
from tidemark.partitions.storage.slices import EMPTY_SLICE, LogSlice
from tidemark.partitions.storage.timestamps import Look, Search
from tidemark.protocol.errors import ErrorCode, RequestError, TidemarkError
from tidemark.protocol.records.gaps import is_gap
from tidemark.protocol.records.header import BatchHeader
from tidemark.protocol.types import Offset

_ZERO: Final = Offset(0)
base_offset_of: Final = attrgetter("base_offset")


class ReadingLog(SyncingLog):
    """A log that is looked into. Nothing here changes it."""

    __slots__ = ()

    def read(
        self,
        offset: Offset,
        *,
        bytes_max: int,
        end_offset: Offset,
        at_least_one: bool = True,
    ) -> LogSlice:
        """Whole batches, from the one that holds `offset` on, to `end_offset` and `bytes_max`.

        With `at_least_one` the first batch is given whole, whatever its size (KIP-74). The slice
        ends with its segment, so it may be shorter than asked; it is empty only if there is
        nothing below `end_offset`, or nothing that fits. Raises `RequestError` for an offset
        outside of the log.
        """
        if not self.start_offset <= offset <= self.end_offset:
            raise RequestError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"offset {offset}; the log is {self.start_offset} to {self.end_offset}",
            )
        if offset >= end_offset:
            return EMPTY_SLICE
        return self._segment_of(offset).slice(
            offset, bytes_max=bytes_max, end_offset=end_offset, at_least_one=at_least_one
        )

    def _segment_of(self, offset: Offset) -> Segment:
        if offset >= self._active.base_offset:
            return self._active
        return self._segments[bisect_right(self._segments, offset, key=base_offset_of) - 1]

    def batch_around(self, offset: Offset) -> tuple[Offset, Offset]:
        """From where to where the batch reaches that `offset` is within; `offset` twice, if one
        begins or the log ends there, or where nothing is (`gaps`): that may be cut anywhere.

        Raises `StorageError` if it cannot be found, or `OSError`.
        """
        segment = self._segment_of(offset)
        if segment.base_offset < offset < segment.end_offset:
            for _, header in segment.batches_from(segment.position_of(offset)):
                if not is_gap(header):
                    within = header.base_offset < offset
                    return (header.base_offset, header.next_offset) if within else (offset, offset)
                break
        return offset, offset

    def next_look(self, search: Search, *, end_offset: Offset) -> Look | None:
        """A step of a search by time below `end_offset`, as `Search.next` has it."""
        return search.next(self._segments, self.start_offset, end_offset)

    def snapshot_at_start(self) -> bytes:
        """The snapshot that the start was moved with, or that a roll has left there; or nothing."""
        start_offset = self.start_offset
        for pending in reversed(self._state.unsaved):
            if pending.offset == start_offset:
                return pending.payload
        return self._home.snapshots.load(start_offset) or b""

    def observe(
        self,
        *,
        load_snapshot: Callable[[bytes], None],
        on_batch: Callable[[BatchHeader], None],
        on_control: Callable[[BatchHeader, bytes], None] | None = None,
    ) -> None:
        """Tell once more what opening tells: for state that a truncation has made wrong.

        `load_snapshot` is called at most once, then the others with every batch behind it.
        """
        state = DerivedState(load=load_snapshot, on_batch=on_batch, on_control=on_control)
        tell_batches(self._segments, self._load_snapshot(load_snapshot), state)

    def _load_snapshot(self, load: Callable[[bytes], None]) -> Offset:
        snapshots = self._home.snapshots
        # The unsaved ones last: what moved the start goes before what a roll has left there.
        pending = {snapshot.offset: snapshot.payload for snapshot in self._state.unsaved}
        # Not below what the log's files hold: the batches in between are gone.
        first, end_offset = self._segments[0].base_offset, self.end_offset
        for offset in sorted({*snapshots.offsets(), *pending}, reverse=True):
            if first <= offset <= end_offset:
                payload = pending.get(offset) or snapshots.load(offset)
                if payload is not None:
                    with suppress(TidemarkError):
                        load(payload)
                        return offset
        return _ZERO
