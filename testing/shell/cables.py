"""A cable to a broker: bytes come late, in pieces, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from typing import Final
from zlib import crc32

import trio

_READ_BYTES_MAX: Final = 65536
_ODD_PIECES: Final = 0.2
_PIECES_MAX: Final = 4


def _flowing() -> trio.Event:
    flows = trio.Event()
    flows.set()
    return flows


@dataclass(slots=True)
class _Pair:
    """A connection, and the one to the broker that goes with it."""

    name: str
    scope: trio.CancelScope
    flows: trio.Event = field(default_factory=_flowing)


class Cable:
    """What clients, or other brokers, connect to instead of a broker's own address.

    The broker may be there or not. `note` is told of each piece that arrives.
    """

    def __init__(
        self, name: str, rng: Random, note: Callable[[str], None], *, latency: float
    ) -> None:
        self.name = name
        self.address = ""
        """`host:port` that leads to the broker."""
        self.upstream: str | None = None
        self._rng = rng
        self._note = note
        self._latency = latency
        self._connected: dict[int, _Pair] = {}
        self._numbers = 0
        self._flows = _flowing()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        self.address = f"127.0.0.1:{listener.socket.getsockname()[1]}"
        async with trio.open_nursery() as nursery:
            task_status.started()
            await trio.serve_listeners(self._serve, [listener], handler_nursery=nursery)

    def tear(self, share: float = 1.0) -> None:
        """End connections, this share of them, with what is on its way."""
        for pair in list(self._connected.values()):
            if self._rng.random() < share:
                pair.scope.cancel()

    def clog(self) -> None:
        """Nothing arrives any more, until `flow`."""
        self._flows = trio.Event()

    def flow(self) -> None:
        self._flows.set()

    async def hang(self, seconds: float) -> None:
        """Nothing arrives through one of the connections for so long: somebody hangs."""
        if not self._connected:
            return
        pair = self._rng.choice(list(self._connected.values()))
        pair.flows = trio.Event()
        await trio.sleep(seconds)
        pair.flows.set()

    async def _serve(self, near: trio.SocketStream) -> None:
        number, self._numbers = self._numbers, self._numbers + 1
        with trio.CancelScope() as scope:
            pair = self._connected[number] = _Pair(f"{self.name} {number}", scope)
            try:
                await self._join(near, pair)
            finally:
                del self._connected[number]

    async def _join(self, near: trio.SocketStream, pair: _Pair) -> None:
        if self.upstream is None:
            return
        host, _, port = self.upstream.rpartition(":")
        try:
            far = await trio.open_tcp_stream(host, int(port))
        except OSError:
            return
        async with far, trio.open_nursery() as nursery:
            nursery.start_soon(self._pump, near, far, pair, ">")
            nursery.start_soon(self._pump, far, near, pair, "<")

    async def _pump(
        self, source: trio.SocketStream, sink: trio.SocketStream, pair: _Pair, way: str
    ) -> None:
        try:
            while data := await source.receive_some(_READ_BYTES_MAX):
                for piece in self._pieces(data):
                    await trio.sleep(self._rng.random() * self._latency)
                    await self._flows.wait()
                    await pair.flows.wait()
                    await sink.send_all(piece)
                    self._note(f"{pair.name} {way} {len(piece)} {crc32(piece):08x}")
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        pair.scope.cancel()

    def _pieces(self, data: bytes) -> list[bytes]:
        if self._rng.random() >= _ODD_PIECES or len(data) < 2:
            return [data]
        cuts = sorted(
            self._rng.randrange(1, len(data)) for _ in range(self._rng.randint(1, _PIECES_MAX))
        )
        edges = [0, *cuts, len(data)]
        return [data[a:b] for a, b in pairwise(edges) if a < b]
