"""What is still to be said to one broker: frames in two lanes, the urgent one first.

Frames are handed to the socket's queue a few at a time. So what is urgent waits for the frame that
is being sent and for what the kernel has, not for all the batches before it.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from tidemark.broker.network.send_queue import SendQueue
from tidemark.broker.peers.encoding import Frame

# Enough for one system call to be worth it.
_AHEAD_BYTES: Final = 256 * 1024


class Outbox:
    """One connection's frames that no system call has seen yet."""

    __slots__ = ("_bulk", "_urgent", "memory_bytes", "size_bytes")

    def __init__(self) -> None:
        self._urgent: deque[Frame] = deque()
        self._bulk: deque[Frame] = deque()
        self.size_bytes = 0
        self.memory_bytes = 0
        """The bytes that are in memory; the rest is in files."""

    def __bool__(self) -> bool:
        return bool(self._urgent or self._bulk)

    def add(self, frame: Frame) -> None:
        (self._urgent if frame.is_urgent else self._bulk).append(frame)
        self.size_bytes += frame.size_bytes
        self.memory_bytes += frame.memory_bytes

    def fill(self, queue: SendQueue) -> int:
        """Move frames to `queue` until that has enough; how many."""
        moved = 0
        while self and queue.size_bytes < _AHEAD_BYTES:
            frame = (self._urgent or self._bulk).popleft()
            self.size_bytes -= frame.size_bytes
            self.memory_bytes -= frame.memory_bytes
            queue.add(frame.parts)
            moved += 1
        return moved

    def release(self) -> None:
        """Drop everything, for a connection that is gone."""
        for frame in (*self._urgent, *self._bulk):
            frame.release()
        self._urgent.clear()
        self._bulk.clear()
        self.size_bytes = self.memory_bytes = 0
