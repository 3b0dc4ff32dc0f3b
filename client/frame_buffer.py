"""The stream of one connection, cut into frames: where bytes go, and what they complete."""

from typing import Final

from tidemark.protocol.buffers import Buffers
from tidemark.protocol.errors import FrameTooLarge

_LENGTH_BYTES: Final = 4
_SCRATCH_BYTES: Final = 64 * 1024


class FrameBuffer:
    """Cuts a stream into frames, with one copy of small frames and none of large ones.

    Small frames are collected in a scratch buffer and copied out. As soon as a length says that a
    frame does not fit into what is left of it, a buffer of exactly that length takes its place,
    the stream is received straight into it, and it becomes the frame.
    """

    def __init__(self, frame_bytes_max: int) -> None:
        self._frame_bytes_max = frame_bytes_max
        self.memory: Buffers | None = None
        """Where large frames go; None for new memory each time."""
        self._scratch = bytearray(_SCRATCH_BYTES)
        self._scratch_view = memoryview(self._scratch)
        self._filled = 0
        self._large: memoryview | None = None
        self._large_filled = 0

    def space(self) -> memoryview:
        """Where the next bytes go; never empty."""
        if self._large is not None:
            return self._large[self._large_filled :]
        return self._scratch_view[self._filled :]

    def received(self, count: int) -> list[memoryview]:
        """`count` bytes more are in `space()`: the frames they complete, without their lengths.

        Raises `FrameTooLarge` on a length that is negative or beyond the limit.
        """
        if self._large is not None:
            self._large_filled += count
            if self._large_filled < len(self._large):
                return []
            frame, self._large = self._large, None
            return [frame]
        self._filled += count
        return self._cut()

    def _cut(self) -> list[memoryview]:
        frames: list[memoryview] = []
        at = 0
        while self._filled - at >= _LENGTH_BYTES:
            body = at + _LENGTH_BYTES
            length = int.from_bytes(self._scratch_view[at:body], "big", signed=True)
            if not 0 <= length <= self._frame_bytes_max:
                raise FrameTooLarge(length, self._frame_bytes_max)
            if body + length > self._filled:
                if length > _SCRATCH_BYTES - _LENGTH_BYTES:
                    self._begin_large(body, length)
                    return frames
                break
            frames.append(memoryview(bytes(self._scratch_view[body : body + length])))
            at = body + length
        # What is left is the start of a small frame: to the front, so that all of it has room.
        left = self._filled - at
        if at and left:
            self._scratch[:left] = self._scratch[at : self._filled]
        self._filled = left
        return frames

    def _begin_large(self, body: int, length: int) -> None:
        memory = self.memory
        self._large = memoryview(bytearray(length)) if memory is None else memory.take(length)
        self._large_filled = self._filled - body
        self._large[: self._large_filled] = self._scratch_view[body : self._filled]
        self._filled = 0
