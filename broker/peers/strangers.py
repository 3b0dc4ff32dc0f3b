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
        # In the order of their coming. Of whom it is not known yet how they speak: what ends the
        # wait for that.
        self._waited_for: dict[Incoming | trio.CancelScope, None] = {}

    def begin(self, accepted: socket.socket) -> None:
        """Somebody has connected."""
        tls = self._services.tls
        if len(self._waited_for) >= _STRANGERS_MAX and not self._send_one_away():
            accepted.close()
            self._count(PeerEnd.TOO_MANY)
        elif tls is None:
            self._take(accepted, None)
        elif tls.value.is_required:
            self._take(accepted, tls.value.taking)
        else:
            listening = trio.CancelScope(deadline=trio.current_time() + HELLO_SECONDS)
            self._waited_for[listening] = None
            self._services.tasks.start_soon(self._take_as_it_speaks, accepted, tls, listening)

    def forget(self, incoming: Incoming) -> None:
        """Doing it twice is allowed."""
        self._waited_for.pop(incoming, None)

    def close(self) -> None:
        for each in list(self._waited_for):
            if isinstance(each, Incoming):
                each.close(PeerEnd.STOPPING, "this broker stops")

    def _send_one_away(self) -> bool:
        """Who has been silent longest, so that a broker, which is not, gets in beside any number of
        others; false: all are being answered."""
        for each in self._waited_for:
            if isinstance(each, trio.CancelScope):
                del self._waited_for[each]
                each.cancel()
                return True
            if not each.calls:
                each.close(PeerEnd.TOO_MANY, "others are waiting, and it says nothing")
                return True
        return False

    async def _take_as_it_speaks(
        self, accepted: socket.socket, tls: PeerTls, listening: trio.CancelScope
    ) -> None:
        speaks_tls: bool | None = None
        try:
            with listening:
                speaks_tls = await _begins_tls(accepted)
            if speaks_tls is None:
                is_late = listening in self._waited_for
                self._count(PeerEnd.NO_HELLO if is_late else PeerEnd.TOO_MANY)
        except OSError as error:
            self._failed(error)
        finally:
            self._waited_for.pop(listening, None)
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
