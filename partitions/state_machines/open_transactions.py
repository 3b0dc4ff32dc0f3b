"""What a partition knows of transactions: which are open, which were aborted, how far it is stable.

A function of the log, as the table of producers is: fed with all its batches in order it says the
same. Whether a transaction is over is a matter of the log's end, and whether readers may rely on it
one of the high watermark: a marker may yet be cut with the log's tail.

A snapshot, big-endian, its integrity its owner's matter:

| part    | layout                                                                      |
|---------|-----------------------------------------------------------------------------|
| header  | int32 open, int32 over but not yet stable, int32 aborted                     |
| open    | int64 producer id, first offset, began ms                                    |
| the two | int64 producer id, first offset, marker's offset, where later ones may begin |
"""

from bisect import bisect_left
from operator import attrgetter
from struct import Struct
from typing import Final, NamedTuple

from tidemark.protocol.errors import StorageError
from tidemark.protocol.types import NO_TIMESTAMP_MS, Offset, ProducerId

_HEADER: Final = Struct(">iii")
_OPEN: Final = Struct(">qqq")
_OVER: Final = Struct(">qqqq")
_MARKER: Final = attrgetter("marker_offset")
_LATER_FROM: Final = attrgetter("later_from")


class Opened(NamedTuple):
    """A transaction that has no marker yet."""

    first_offset: Offset
    began_ms: int
    """By the broker's clock; after a replay, by its first batch's own time; -1: not known."""


class Over(NamedTuple):
    """A transaction that has its marker."""

    producer_id: ProducerId
    first_offset: Offset
    marker_offset: Offset
    later_from: Offset
    """None that ends later begins below this."""


class OpenTransactions:
    """Of one partition."""

    __slots__ = ("_aborted", "_unstable", "opened")

    def __init__(self) -> None:
        self.opened: dict[ProducerId, Opened] = {}
        """In the order in which they began. To look at."""
        # With a marker above the last high watermark that was told, in the order of the markers.
        # A list, for there are few at a time; a deque takes 760 bytes for every idle partition.
        self._unstable: list[Over] = []
        # In the order of the markers.
        self._aborted: list[Over] = []

    def __bool__(self) -> bool:
        """Whether anything is known."""
        return bool(self.opened or self._unstable or self._aborted)

    def append(self, producer_id: ProducerId, base_offset: Offset, heard_ms: int) -> None:
        """A batch of a transaction is in the log: its first, or one more."""
        if producer_id not in self.opened:
            self.opened[producer_id] = Opened(base_offset, heard_ms)

    def end(self, producer_id: ProducerId, marker_offset: Offset, *, is_commit: bool) -> None:
        """Its marker is in the log. One without a transaction, or a second one, changes nothing."""
        opened = self.opened.pop(producer_id, None)
        if opened is None:
            return
        oldest = self.oldest
        later_from = Offset(marker_offset + 1) if oldest is None else oldest.first_offset
        over = Over(producer_id, opened.first_offset, marker_offset, later_from)
        self._unstable.append(over)
        if not is_commit:
            self._aborted.append(over)

    @property
    def oldest(self) -> Opened | None:
        """The open transaction that began first."""
        return next(iter(self.opened.values()), None)

    @property
    def aborted_count(self) -> int:
        """How many aborted transactions are remembered."""
        return len(self._aborted)

    @property
    def is_settled(self) -> bool:
        """Whether every marker that is known is known to be committed."""
        return not self._unstable

    def settle(self, high_watermark: Offset) -> None:
        """What is below is committed. It never goes back."""
        del self._unstable[: bisect_left(self._unstable, high_watermark, key=_MARKER)]

    def last_stable_offset(self, high_watermark: Offset) -> Offset:
        """Below it every transaction is decided for good. `high_watermark` never goes back."""
        if not self.opened and not self._unstable:
            return high_watermark
        self.settle(high_watermark)
        oldest = self.oldest
        begun = [] if oldest is None else [oldest.first_offset]
        return min([high_watermark, *begun, *(over.first_offset for over in self._unstable)])

    def aborted(self, start: Offset, end: Offset) -> list[Over]:
        """The aborted transactions that have records from `start` up to `end`.

        `end` is at most the last stable offset, and a reader has to leave their records out.
        """
        first = bisect_left(self._aborted, start, key=_MARKER)
        # Behind the first that ends when only later ones are open, all begin too late.
        last = bisect_left(self._aborted, end, key=_LATER_FROM)
        return [over for over in self._aborted[first : last + 1] if over.first_offset < end]

    def trim(self, log_start: Offset) -> None:
        """Forget what lies below the log's start."""
        del self._aborted[: bisect_left(self._aborted, log_start, key=_MARKER)]

    def forget_from(self, offset: Offset) -> None:
        """The log has lost what it had from `offset` on, for good.

        A transaction whose abort was there is open again. One whose commit was there is not: it
        was decided, and readers know its records.
        """
        while self._unstable and self._unstable[-1].marker_offset >= offset:
            self._unstable.pop()
        kept = bisect_left(self._aborted, offset, key=_MARKER)
        lost, self._aborted = self._aborted[kept:], self._aborted[:kept]
        found = [(over.producer_id, Opened(over.first_offset, NO_TIMESTAMP_MS)) for over in lost]
        found += self.opened.items()
        self.opened = {
            producer_id: opened
            for producer_id, opened in sorted(found, key=lambda item: item[1].first_offset)
            if opened.first_offset < offset
        }

    def encode(self) -> bytes:
        parts = [_HEADER.pack(len(self.opened), len(self._unstable), len(self._aborted))]
        parts += [_OPEN.pack(producer_id, *opened) for producer_id, opened in self.opened.items()]
        parts += [_OVER.pack(*over) for over in (*self._unstable, *self._aborted)]
        return b"".join(parts)

    @classmethod
    def decode(cls, data: bytes) -> "OpenTransactions":
        """Raises `StorageError` if it is no snapshot."""
        if len(data) < _HEADER.size:
            raise StorageError("a snapshot of transactions that is cut off")
        opened, unstable, aborted = _HEADER.unpack_from(data)
        over_at = _HEADER.size + opened * _OPEN.size
        if min(opened, unstable, aborted) < 0 or len(data) != (
            over_at + (unstable + aborted) * _OVER.size
        ):
            raise StorageError("a snapshot of transactions whose length does not fit what it has")
        table = cls()
        for producer_id, offset, began_ms in _OPEN.iter_unpack(data[_HEADER.size : over_at]):
            table.opened[ProducerId(producer_id)] = Opened(Offset(offset), began_ms)
        over = [Over(*fields) for fields in _OVER.iter_unpack(data[over_at:])]
        table._unstable.extend(over[:unstable])
        table._aborted = over[unstable:]
        return table
