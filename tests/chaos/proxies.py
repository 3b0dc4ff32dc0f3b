"""Proxies between the brokers, and before them for clients: a network that a plain user may cut.

Each broker listens on ports of its own and tells everybody those of its proxies. Who connects to a
broker's peer port says so in its first message, so every connection belongs to a pair of links, one
for each direction. Bytes on a cut link wait, as TCP's retransmissions do, and so does the news that
a side has hung up; a connection begins only while both its links are whole.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from random import SystemRandom
from typing import Final, Self

import trio

from tests.chaos.networks import CLIENTS, Link, Packets, links_of
from tests.chaos.relay import Passage, Wire, is_gone
from tidemark.protocol.messages.peer.hello import HelloRequest
from tidemark.protocol.messages.peer.join import JoinRequest
from tidemark.protocol.peer_frames import decode_body, decode_peer_header

_HOST: Final = "127.0.0.1"
_LENGTH: Final = struct.Struct(">i")
_FIRST_FRAME_BYTES_MAX: Final = 1 << 16
# Below the range from which the kernel gives ports away, so that a port stays free over a restart.
_PORTS: Final = range(15_000, 30_000)


@dataclass(frozen=True, slots=True)
class _Door:
    """One listener of a broker: what it really listens on, and what everybody is told."""

    node: int
    is_for_clients: bool
    real_port: int
    listener: socket.socket

    @property
    def address(self) -> str:
        return f"{_HOST}:{self.listener.getsockname()[1]}"

    @property
    def real_address(self) -> str:
        return f"{_HOST}:{self.real_port}"


class Proxies:
    """All proxies, on a thread of their own. Made by `open_proxies`."""

    name = "loopback proxies"
    packets: Packets | None = None

    def __init__(self, nodes: Sequence[int]) -> None:
        self._nodes = list(nodes)
        self._clients = {node: _door(node, is_for_clients=True) for node in nodes}
        self._peers = {node: _door(node, is_for_clients=False) for node in nodes}
        self._wires = {link: Wire() for link in links_of([CLIENTS, *nodes])}
        self._passing: dict[Passage, Link] = {}
        self._token: trio.lowlevel.TrioToken | None = None
        self._scope = trio.CancelScope()
        self._is_open = threading.Event()

    @property
    def wires(self) -> Self:
        return self

    def bootstrap(self, node: int) -> str:
        return self._clients[node].address

    def peer(self, node: int) -> str:
        return self._peers[node].address

    def prefix(self, node: int) -> list[str]:
        del node
        return []

    def arguments(self, node: int) -> list[str]:
        clients, peers = self._clients[node], self._peers[node]
        return [
            *("--listen", clients.real_address, "--advertise", clients.address),
            *("--peer-listen", peers.real_address, "--peer-advertise", peers.address),
        ]

    def cut(self, links: Iterable[Link]) -> None:
        gone = frozenset(links)

        def change() -> None:
            for link, wire in self._wires.items():
                wire.cut(is_cut=link in gone)

        self._in_loop(change)

    def throttle(self, node: int, bytes_per_second: int | None) -> None:
        for link, wire in self._wires.items():
            if link[0] == node and link[1] != CLIENTS:
                wire.bytes_per_second = bytes_per_second

    def delay(self, links: Iterable[Link], seconds: float) -> None:
        slow = frozenset(links)
        for link, wire in self._wires.items():
            wire.delay_seconds = seconds if link in slow else 0.0

    def reset(self, links: Iterable[Link]) -> None:
        broken = frozenset(links)

        def change() -> None:
            for passage, (a, b) in self._passing.items():
                if (a, b) in broken or (b, a) in broken:
                    passage.reset()

        self._in_loop(change)

    def run(self) -> None:
        """Pass everything on, until `stop`."""
        trio.run(self._serve)

    def wait_open(self) -> None:
        self._is_open.wait()

    def stop(self) -> None:
        self._in_loop(self._scope.cancel)

    def _in_loop(self, change: Callable[[], None]) -> None:
        assert self._token is not None, "the proxies do not run yet"
        trio.from_thread.run_sync(change, trio_token=self._token)

    async def _serve(self) -> None:
        self._token = trio.lowlevel.current_trio_token()
        self._is_open.set()
        with self._scope:
            async with trio.open_nursery() as nursery:
                for door in (*self._clients.values(), *self._peers.values()):
                    nursery.start_soon(self._listen, door, nursery)

    async def _listen(self, door: _Door, nursery: trio.Nursery) -> None:
        listener = trio.SocketListener(trio.socket.from_stdlib_socket(door.listener))
        async with listener:
            while True:
                nursery.start_soon(self._pass_on, door, await listener.accept())

    async def _pass_on(self, door: _Door, caller: trio.SocketStream) -> None:
        async with caller:
            first = b"" if door.is_for_clients else await _first_frame(caller)
            source = CLIENTS if door.is_for_clients else _caller_in(first)
            if source not in (CLIENTS, *self._nodes):
                return
            there, back = self._wires[source, door.node], self._wires[door.node, source]
            while there.is_cut or back.is_cut:
                await there.wait_whole()
                await back.wait_whole()
            if is_gone(caller):
                return
            try:
                callee = await trio.open_tcp_stream(_HOST, door.real_port)
            except OSError:
                return
            async with callee:
                await callee.send_all(first)
                passage = Passage(caller, callee, there, back)
                self._passing[passage] = (source, door.node)
                try:
                    await passage.run()
                finally:
                    del self._passing[passage]


@contextmanager
def open_proxies(nodes: Sequence[int]) -> Iterator[Proxies]:
    proxies = Proxies(nodes)
    thread = threading.Thread(target=proxies.run, name="proxies", daemon=True)
    thread.start()
    proxies.wait_open()
    try:
        yield proxies
    finally:
        proxies.stop()
        thread.join()


def _door(node: int, *, is_for_clients: bool) -> _Door:
    listener = socket.create_server((_HOST, 0))
    return _Door(node, is_for_clients, _free_port(), listener)


def _free_port() -> int:
    """A port that nobody listens on now, and that nobody is given by chance."""
    while True:
        port = SystemRandom().choice(_PORTS)
        with socket.socket() as probe:
            try:
                probe.bind((_HOST, port))
            except OSError:
                continue
        return port


async def _first_frame(caller: trio.SocketStream) -> bytes:
    """With its length; empty if the caller says nothing that a broker would begin with."""
    data = b""
    while len(data) < _LENGTH.size or len(data) < _LENGTH.size + _LENGTH.unpack_from(data)[0]:
        try:
            part = await caller.receive_some(_FIRST_FRAME_BYTES_MAX)
        except trio.BrokenResourceError:
            return b""
        data += part
        if not part or len(data) > _FIRST_FRAME_BYTES_MAX:
            return b""
    return data


def _caller_in(first: bytes) -> int:
    """Which broker says that; a negative number if none does."""
    if not first:
        return -1
    header, body = decode_peer_header(memoryview(first)[_LENGTH.size :])
    message = decode_body(header.api.request, header.version, body)
    return message.node_id if isinstance(message, HelloRequest | JoinRequest) else -1
