"""What a partition knows of transactions: which are open, which were aborted, how far it is stable.

A function of the log, as the table of producers is: fed with all its batches in order it says the
same. Whether a transaction is over is a matter of the log's end, and whether readers may rely on it
one of the high watermark: a marker may yet be cut with the log's tail.

A snapshot, big-endian, its integrity its owner's matter:

| part    | layout                                                  |
|---------|---------------------------------------------------------|
| header  | int32 open, int32 over but not yet stable, int32 aborted |
| open    | int64 producer id, first offset                          |
| the two | int64 producer id, first offset, marker's offset         |
"""

from bisect import bisect_left
from collections import deque
from operator import attrgetter
from struct import Struct
from typing import Final, NamedTuple

from tidemark.protocol.errors import StorageError
from tidemark.protocol.types import Offset, ProducerId

_HEADER: Final = Struct(">iii")
_OPEN: Final = Struct(">qq")
_OVER: Final = Struct(">qqq")


class Over(NamedTuple):
    """A transaction that has its marker."""

    producer_id: ProducerId
    first_offset: Offset
    marker_offset: Offset


class OpenTransactions:
    """Of one partition."""

    __slots__ = ("_aborted", "_open", "_unstable")

    def __init__(self) -> None:
        # In the order in which they began.
        self._open: dict[ProducerId, Offset] = {}
        # With a marker above the last high watermark that was told, in the order of the markers.
        self._unstable: deque[Over] = deque()
        # In the order of the markers.
        self._aborted: list[Over] = []

    def append(self, producer_id: ProducerId, base_offset: Offset) -> None:
        """A batch of a transaction is in the log: its first, or one more."""
        self._open.setdefault(producer_id, base_offset)

    def end(self, producer_id: ProducerId, marker_offset: Offset, *, is_commit: bool) -> None:
        """Its marker is in the log. One without a transaction, or a second one, changes nothing."""
        first_offset = self._open.pop(producer_id, None)
        if first_offset is None:
            return
        over = Over(producer_id, first_offset, marker_offset)
        self._unstable.append(over)
        if not is_commit:
            self._aborted.append(over)

    def first_offset(self, producer_id: ProducerId) -> Offset | None:
        """Where the producer's open transaction begins, if it has one."""
        return self._open.get(producer_id)

    def last_stable_offset(self, high_watermark: Offset) -> Offset:
        """Below it every transaction is decided for good. `high_watermark` never goes back."""
        while self._unstable and self._unstable[0].marker_offset < high_watermark:
            self._unstable.popleft()
        stable = high_watermark
        if self._open:
            stable = min(stable, next(iter(self._open.values())))
        return min([stable, *(over.first_offset for over in self._unstable)])

    def aborted(self, start: Offset, end: Offset) -> list[Over]:
        """The aborted transactions that have records from `start` up to `end`.

        `end` is at most the last stable offset, and a reader has to leave their records out.
        """
        first = bisect_left(self._aborted, start, key=attrgetter("marker_offset"))
        return [over for over in self._aborted[first:] if over.first_offset < end]

    def trim(self, log_start: Offset) -> None:
        """Forget what lies below the log's start."""
        first = bisect_left(self._aborted, log_start, key=attrgetter("marker_offset"))
        del self._aborted[:first]

    def encode(self) -> bytes:
        parts = [_HEADER.pack(len(self._open), len(self._unstable), len(self._aborted))]
        parts += [_OPEN.pack(*item) for item in self._open.items()]
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
        for producer_id, offset in _OPEN.iter_unpack(data[_HEADER.size : over_at]):
            table._open[ProducerId(producer_id)] = Offset(offset)
        over = [Over(*fields) for fields in _OVER.iter_unpack(data[over_at:])]
        table._unstable.extend(over[:unstable])
        table._aborted = over[unstable:]
        return table
