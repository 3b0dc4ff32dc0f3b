"""What a connection has still to send: bytes from memory and slices of log files, in order.

Slices go from the page cache to the socket with `sendfile`. There is no MSG_MORE here: together
with TCP_NOTSENT_LOWAT, which some libraries set, it makes the kernel hold the header back while the
sender waits for the socket to be writable, and a fetch crawls. Without it nothing would be gained
either: what lies behind a header in one packet is copied more slowly.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Sequence
from typing import Final, Protocol, TypeAlias

from tidemark.broker.network.wire import Wire

# How much one connection may send before the others have their turn.
TURN_BYTES_MAX: Final = 4 * 1024 * 1024
# How many small responses go into one system call (Linux takes 1,024).
_GATHER_MAX: Final = 64
# What is copied stays in the caches until it is sent.
_COPIED_BYTES: Final = 256 * 1024


class FileSlice(Protocol):
    """A range of a file that stays readable until it is released (`storage.LogSlice`)."""

    @property
    def position(self) -> int: ...
    def __len__(self) -> int: ...
    def fileno(self) -> int:
        """The descriptor, for who reads what is there and sends the copy."""
        ...

    def lend(self) -> int:
        """The same, for who has the kernel send the file's own pages; its owner notes that."""
        ...

    def release(self) -> None: ...


Part: TypeAlias = bytes | FileSlice


class SendQueue:
    """One connection's unsent parts."""

    __slots__ = ("_at", "_parts", "memory_bytes", "size_bytes")

    def __init__(self) -> None:
        self._parts: deque[Part] = deque()
        self._at = 0  # how much of the first part has been sent
        self.size_bytes = 0
        self.memory_bytes = 0
        """The bytes that are in memory; the rest is in files."""

    def __bool__(self) -> bool:
        return bool(self._parts)

    def add(self, parts: Sequence[Part]) -> None:
        for part in parts:
            size = len(part)
            if isinstance(part, bytes):
                self.memory_bytes += size
            elif size == 0:
                part.release()
                continue
            self.size_bytes += size
            self._parts.append(part)

    def send(self, client: Wire) -> bool:
        """Send as much as the socket takes, and a turn allows; whether all is gone.

        Raises `OSError` when the connection is broken.
        """
        left = TURN_BYTES_MAX
        try:
            if len(self._parts) == 1 and self.memory_bytes == self.size_bytes and not self._at:
                # An answer, or those of a burst, in memory and at once: the common case.
                sent = client.send(self._parts[0])  # type: ignore[arg-type]  # it is in memory
                if sent == self.size_bytes:
                    self._parts.clear()
                    self.size_bytes = self.memory_bytes = 0
                    return True
                left -= sent
                self._advance(sent)
            while self._parts and left > 0:
                part = self._parts[0]
                if isinstance(part, bytes):
                    sent = self._send_bytes(client, part)
                else:
                    sent = self._send_slice(client, part)
                left -= sent
                self._advance(sent)
        except BlockingIOError:
            pass
        return not self._parts

    def _send_bytes(self, client: Wire, first: bytes) -> int:
        if self._at:
            return client.send(memoryview(first)[self._at :])
        if len(self._parts) == 1:
            return client.send(first)
        together: list[bytes] = []
        for part in self._parts:
            if not isinstance(part, bytes) or len(together) == _GATHER_MAX:
                break
            together.append(part)
        return client.sendmsg(together)

    def _send_slice(self, client: Wire, part: FileSlice) -> int:
        size = len(part) - self._at
        sent = os.sendfile(client.fileno(), part.lend(), part.position + self._at, size)
        if sent == 0:
            raise file_ended()
        return sent

    def _advance(self, sent: int) -> None:
        if sent == self.size_bytes == self.memory_bytes:
            # All of it, in memory and at once: the common case.
            self._parts.clear()
            self.size_bytes = self.memory_bytes = 0
            return
        self.size_bytes -= sent
        self._at += sent
        while self._parts and self._at >= len(self._parts[0]):
            part = self._parts.popleft()
            self._at -= len(part)
            if isinstance(part, bytes):
                self.memory_bytes -= len(part)
            else:
                part.release()

    def release(self) -> None:
        """Drop everything, for a connection that is gone."""
        for part in self._parts:
            if not isinstance(part, bytes):
                part.release()
        self._parts.clear()
        self._at = self.size_bytes = self.memory_bytes = 0


class CopyingSendQueue(SendQueue):
    """What comes from files is read and sent, and not sent from there: so nobody is yet to read a
    file's pages when it is written over (`storage/recycled_file.py`)."""

    __slots__ = ()

    def _send_slice(self, client: Wire, part: FileSlice) -> int:
        size = min(len(part) - self._at, _COPIED_BYTES)
        data = os.pread(part.fileno(), size, part.position + self._at)
        if not data:
            raise file_ended()
        return client.send(data)


def file_ended() -> OSError:
    return OSError("a log file ended before the slice of it that was to be sent")
