"""Passing a TCP connection on, direction by direction, slowly or not at all for a while."""

from __future__ import annotations

import os
import socket
import struct
from contextlib import suppress
from typing import Final

import trio

_CHUNK_BYTES: Final = 16 * 1024
_CHUNKS_MAX: Final = 64
_AT_ONCE: Final = struct.pack("ii", 1, 0)


class Wire:
    """One direction between two machines."""

    def __init__(self) -> None:
        self.delay_seconds = 0.0
        self.bytes_per_second: int | None = None
        self._whole = trio.Event()
        self._whole.set()

    @property
    def is_cut(self) -> bool:
        return not self._whole.is_set()

    def cut(self, *, is_cut: bool) -> None:
        if not is_cut:
            self._whole.set()
        elif not self.is_cut:
            self._whole = trio.Event()

    async def wait_whole(self) -> None:
        await self._whole.wait()

    async def carry(self, data: bytes) -> None:
        """Returns when they may arrive."""
        if self.bytes_per_second is not None:
            await trio.sleep(len(data) / self.bytes_per_second)
        await self.wait_whole()


class Passage:
    """One connection: two sides, and a wire from each to the other."""

    def __init__(
        self, caller: trio.SocketStream, callee: trio.SocketStream, there: Wire, back: Wire
    ) -> None:
        self._caller = caller
        self._callee = callee
        self._there = there
        self._back = back
        self._scope = trio.CancelScope()
        self._news: Wire | None = None
        """How it is learned that a side has broken off."""

    async def run(self) -> None:
        """Pass on until both sides have hung up, or one of them breaks off: the other is told."""
        with self._scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._carry, self._caller, self._callee, self._there, self._back)
                nursery.start_soon(self._carry, self._callee, self._caller, self._back, self._there)
        if self._scope.cancelled_caught:
            if self._news is not None:
                await self._news.wait_whole()
            _hang_up_at_once(self._caller, self._callee)

    def reset(self) -> None:
        """Break it off, as a router that has lost its tables would."""
        self._scope.cancel()

    def _break(self, news: Wire) -> None:
        if self._news is None:
            self._news = news
            self._scope.cancel()

    async def _carry(
        self, source: trio.SocketStream, sink: trio.SocketStream, wire: Wire, back: Wire
    ) -> None:
        send, receive = trio.open_memory_channel[tuple[float, bytes]](_CHUNKS_MAX)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._read, source, wire, send)
            async for due, data in receive:
                await trio.sleep_until(due)
                await wire.carry(data)
                try:
                    await (sink.send_all(data) if data else sink.send_eof())
                except trio.BrokenResourceError:
                    self._break(back)

    async def _read(
        self,
        source: trio.SocketStream,
        wire: Wire,
        send: trio.MemorySendChannel[tuple[float, bytes]],
    ) -> None:
        """What was said, each with when it arrives; nothing is that the side has hung up."""
        async with send:
            while True:
                try:
                    data = await source.receive_some(_CHUNK_BYTES)
                except trio.BrokenResourceError:
                    self._break(wire)
                    return
                await send.send((trio.current_time() + wire.delay_seconds, bytes(data)))
                if not data:
                    return


def is_gone(stream: trio.SocketStream) -> bool:
    """Whether the other side has hung up and said nothing more before."""
    with socket.socket(fileno=os.dup(stream.socket.fileno())) as same:
        try:
            return same.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True


def _hang_up_at_once(*streams: trio.SocketStream) -> None:
    """The other side gets a reset, as from a machine that knows no such connection."""
    for stream in streams:
        with suppress(OSError):
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
