"""The bytes a connection has received and not yet handled, cut into frames.

A buffer holds the frames where `recv_into` put them: a frame is a memoryview of it, valid until
more is received. It starts small, grows as bytes really arrive (never by what a length promises),
and goes away when the connection is quiet, so ten thousand idle connections cost nothing. What is
larger than the first size comes out of a budget that all connections share.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from tidemark.broker.network.wire import Wire
from tidemark.protocol.errors import FrameTooLarge

FIRST_BYTES: Final = 16 * 1024
# A client that fills the buffer at once is sending as fast as it can: reading more at a time
# saves system calls, until the buffer leaves the processor's own cache.
STREAMING_BYTES: Final = 256 * 1024
GATHERED_BYTES: Final = 4 * 1024 * 1024
"""So much is received together of a client whose requests are taken together."""
_ROUND_TO_BYTES: Final = 64 * 1024
# So few bytes are moved to the front at once, for the sake of the room behind them.
_MOVE_BYTES: Final = 64
_LENGTH: Final = struct.Struct(">i")


class MemoryBudget:
    """Bytes that all connections together may have in receive buffers beyond the first size."""

    __slots__ = ("bytes_max", "taken_bytes")

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self.taken_bytes = 0

    def take(self, size_bytes: int) -> bool:
        """Take `size_bytes` if they are there; whether they were."""
        if self.taken_bytes + size_bytes > self.bytes_max:
            return False
        self.taken_bytes += size_bytes
        return True

    @property
    def is_plenty(self) -> bool:
        """Whether more than half of it is left."""
        return 2 * self.taken_bytes < self.bytes_max

    def give_back(self, size_bytes: int) -> None:
        self.taken_bytes -= size_bytes
        assert self.taken_bytes >= 0


class ReceiveBuffer:
    """One connection's. Invariant: start <= end <= capacity; frames lie in [start, end)."""

    __slots__ = ("_budget", "_frame_bytes_max", "_view", "_wanted_bytes", "end", "start")

    def __init__(self, *, frame_bytes_max: int, budget: MemoryBudget) -> None:
        self._frame_bytes_max = frame_bytes_max
        self._budget = budget
        self._view: memoryview | None = None
        self.start = self.end = 0
        """Where what is received and not yet cut begins and ends. To look at: asking whether it
        `is_empty` takes longer, and is done for every request."""
        self._wanted_bytes = FIRST_BYTES

    @property
    def capacity_bytes(self) -> int:
        return 0 if self._view is None else len(self._view)

    @property
    def is_empty(self) -> bool:
        return self.start == self.end

    @property
    def is_large(self) -> bool:
        return self.capacity_bytes > FIRST_BYTES

    def accept_frames(self, frame_bytes_max: int) -> None:
        """From now on take frames of this size."""
        self._frame_bytes_max = frame_bytes_max

    def receive(self, client: Wire) -> int | None:
        """Receive what is there, as far as there is room; 0 is the end of the stream.

        `None` when a larger buffer is needed and the budget has no more: try again later.
        Frames cut before are not valid any more. Raises `OSError` as `recv_into` does.
        """
        view = self._make_room()
        if view is None:
            return None
        received = client.recv_into(view[self.end :])
        self.end += received
        if self.end == len(view) < STREAMING_BYTES:
            wanted = min(2 * len(view), STREAMING_BYTES)
            self._wanted_bytes = max(self._wanted_bytes, wanted)
        return received

    def gather(self, client: Wire) -> int:
        """Receive what else is there, as far as there is room for it; how much that was. More room
        is made of memory that nobody is likely to need. Raises `OSError` as `receive` does."""
        gathered = 0
        if self._budget.is_plenty:
            self._wanted_bytes = max(self._wanted_bytes, GATHERED_BYTES)
        with suppress(BlockingIOError):
            while received := self.receive(client):
                gathered += received
        return gathered

    def next_frame(self) -> memoryview | None:
        """The next complete frame without its length; `None` if more has to be received.

        Raises `FrameTooLarge` for a length that is negative or over the limit.
        """
        view = self._view
        start = self.start + 4
        if view is None or self.end < start:
            return None
        (length,) = _LENGTH.unpack_from(view, self.start)
        if not 0 <= length <= self._frame_bytes_max:
            raise FrameTooLarge(length, self._frame_bytes_max)
        end = start + length
        if self.end < end:
            self._wanted_bytes = max(self._wanted_bytes, length + 4)
            return None
        self.start = end
        return view[start:end]

    def next_frames(self, count_max: int) -> list[memoryview]:
        """The complete frames that are there, as `next_frame` cuts them; at most so many.

        Raises `FrameTooLarge` once all before it have been taken.
        """
        frames: list[memoryview] = []
        view, start, end = self._view, self.start + 4, self.end
        while view is not None and start <= end and len(frames) < count_max:
            (length,) = _LENGTH.unpack_from(view, start - 4)
            if not 0 <= length <= end - start:
                break
            frames.append(view[start : start + length])
            start += length + 4
        self.start = start - 4
        if not frames and count_max > 0:
            # There is none; or what is there of it is too large, or says how large it will be.
            frame = self.next_frame()
            assert frame is None
        return frames

    def put_back(self, frames: Sequence[memoryview]) -> None:
        """Have the frames that were cut last come again; nothing was received since."""
        self.start -= sum(map(len, frames)) + 4 * len(frames)
        assert self.start >= 0

    def release(self) -> None:
        """Let go of the memory, and of what is in it."""
        self._budget.give_back(_beyond_first(self.capacity_bytes))
        self._view = None
        self.start = self.end = 0
        self._wanted_bytes = FIRST_BYTES

    def _make_room(self) -> memoryview | None:
        """The buffer with room at its end, or `None` without memory for that."""
        view = self._view
        if view is None:
            view = self._view = memoryview(bytearray(FIRST_BYTES))
            return view
        if self.start == self.end:
            self.start = self.end = 0
        is_full = self.end == len(view)
        if is_full and self._wanted() > len(view) and (grown := self._grow(view)):
            return grown
        if is_full and self.start == 0:
            return None
        if is_full or 0 < self.end - self.start < _MOVE_BYTES:
            self._move(view)
        return view

    def _wanted(self) -> int:
        """How large a full buffer is to be: for a large frame, if another follows it at once and
        memory is plenty, as large as two. The second is received with the first then, while its
        client is not busy sending; received meanwhile it takes several times as long."""
        wanted = self._wanted_bytes
        if wanted <= STREAMING_BYTES or self.start == 0 or not self._budget.is_plenty:
            return wanted
        return max(wanted, min(2 * wanted, GATHERED_BYTES))

    def _move(self, to: memoryview) -> None:
        """Put the incomplete frame at the front of `to`, which may be the buffer itself."""
        assert self._view is not None
        size = self.end - self.start
        to[:size] = self._view[self.start : self.end]
        self._view, self.start, self.end = to, 0, size

    def _grow(self, view: memoryview) -> memoryview | None:
        """At most twice the size at a time: a client pays with bytes for the memory it gets."""
        wanted = min(self._wanted(), 2 * len(view))
        capacity = -(-wanted // _ROUND_TO_BYTES) * _ROUND_TO_BYTES
        if not self._budget.take(_beyond_first(capacity) - _beyond_first(len(view))):
            return None
        grown = memoryview(bytearray(capacity))
        self._move(grown)
        return grown


def _beyond_first(capacity_bytes: int) -> int:
    return max(capacity_bytes - FIRST_BYTES, 0)
