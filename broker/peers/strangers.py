"""Who has connected and not said yet who it is: a few at once, and none for long."""

from __future__ import annotations

import socket
import ssl
from contextlib import suppress
from functools import partial
from typing import Final

import trio

from tidemark.broker.metrics.peer_counts import PeerEnd
from tidemark.broker.peers.hello import HELLO_SECONDS
from tidemark.broker.peers.incoming import Incoming, IncomingOwner
from tidemark.broker.peers.peer_tls import PeerTls
from tidemark.broker.peers.services import PeerServices

_STRANGERS_MAX: Final = 64
# The first byte of TLS (RFC 8446, section 5.1). A frame's is 0 until it has 16 MB.
_TLS_HANDSHAKE: Final = b"\x16"


class Strangers:
    """They are their owner's from when they have said a Hello, or ended: `forget`."""

    def __init__(self, services: PeerServices, owner: IncomingOwner) -> None:
        self._services = services
        self._owner = owner
        self._waited_for: dict[Incoming, None] = {}
        self._silent = 0  # more of them, of which it is not known how they speak

    def begin(self, accepted: socket.socket) -> None:
        """Somebody has connected."""
        tls = self._services.tls
        if len(self._waited_for) + self._silent >= _STRANGERS_MAX and not self._send_one_away():
            accepted.close()
            self._count(PeerEnd.TOO_MANY)
        elif tls is None:
            self._take(accepted, None)
        elif tls.value.is_required:
            self._take(accepted, tls.value.taking)
        else:
            self._silent += 1
            self._services.tasks.start_soon(self._take_as_it_speaks, accepted, tls)

    def forget(self, incoming: Incoming) -> None:
        """Doing it twice is allowed."""
        self._waited_for.pop(incoming, None)

    def close(self) -> None:
        for incoming in list(self._waited_for):
            incoming.close(PeerEnd.STOPPING, "this broker stops")

    def _send_one_away(self) -> bool:
        """Who has been silent longest, so that a broker, which is not, gets in beside any number of
        others; false: all are being answered."""
        for incoming in self._waited_for:
            if not incoming.calls:
                incoming.close(PeerEnd.TOO_MANY, "others are waiting, and it says nothing")
                return True
        return False

    async def _take_as_it_speaks(self, accepted: socket.socket, tls: PeerTls) -> None:
        speaks_tls: bool | None = None
        try:
            with trio.move_on_after(HELLO_SECONDS):
                speaks_tls = await _begins_tls(accepted)
            if speaks_tls is None:
                self._count(PeerEnd.NO_HELLO)
        except OSError as error:
            self._failed(error)
        finally:
            self._silent -= 1
            if speaks_tls is None:
                accepted.close()
        if speaks_tls is not None:
            context = tls.value.taking if speaks_tls else None
            self._services.sockets.turn.run(partial(self._take, accepted, context))

    def _take(self, accepted: socket.socket, tls: ssl.SSLContext | None) -> None:
        try:
            incoming = Incoming(accepted, self._owner, self._services.sockets, tls)
        except OSError as error:
            accepted.close()
            self._failed(error)
            return
        self._waited_for[incoming] = None
        self._services.tasks.start_soon(self._expect_hello, incoming)

    async def _expect_hello(self, incoming: Incoming) -> None:
        while not incoming.identified.is_set():
            with trio.move_on_after(HELLO_SECONDS):
                await incoming.identified.wait()
            if not (incoming.identified.is_set() or incoming.calls):
                self._services.sockets.turn.run(
                    partial(incoming.close, PeerEnd.NO_HELLO, "it has not said who it is")
                )

    def _failed(self, error: OSError) -> None:
        """The kernel has no memory to watch another, say; nobody else is to suffer from it."""
        self._count(PeerEnd.ERROR)
        self._services.sockets.odd_events.warn(
            "failed connections of brokers", "a connection was not taken: %s", error
        )

    def _count(self, end: PeerEnd) -> None:
        self._services.sockets.metrics.ended[end].inc()


async def _begins_tls(accepted: socket.socket) -> bool:
    """Whether what is said first is said in TLS; waits for it, or for the end."""
    accepted.setblocking(False)
    while True:
        await trio.lowlevel.wait_readable(accepted)
        with suppress(BlockingIOError):
            return _first_byte(accepted) == _TLS_HANDSHAKE


def _first_byte(accepted: socket.socket) -> bytes:
    """Without taking it; nothing if it has hung up."""
    try:
        return accepted.recv(1, socket.MSG_PEEK)
    except ConnectionError:
        return b""
