"""The listener for other brokers."""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import trio

from tidemark.broker.config import Address
from tidemark.broker.network.reactor import READABLE, Reactor
from tidemark.broker.peers.peer_tls import PeerTls
from tidemark.protocol.values import dataclass

_BACKLOG: Final = 128
_ACCEPTS_PER_TURN: Final = 16
# The process is out of descriptors, or the kernel of memory for another socket.
_EXHAUSTED: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
# Without descriptors nothing can be accepted, and a listener that stays ready would keep the loop
# busy with that.
_EXHAUSTED_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundPeerListener:
    """The socket that other brokers connect to, and the address they are told."""

    socket: socket.socket
    advertised: Address
    tls: PeerTls | None = None

    @property
    def address(self) -> Address:
        """Where it really listens."""
        host, port = self.socket.getsockname()[:2]
        return Address(host, port)


def bind_peers(
    listen: Address, advertise: Address | None = None, *, tls: PeerTls | None = None
) -> BoundPeerListener:
    """Bind it. Raises `OSError`: the port is taken, or the address not ours.

    What is advertised is what is listened on, if nothing else is said; port 0 is the bound one.
    """
    host = listen.host or "0.0.0.0"
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.create_server((host, listen.port), family=family, backlog=_BACKLOG)
    bound.setblocking(False)
    shown = advertise or listen
    port = shown.port or bound.getsockname()[1]
    advertised = Address(shown.host or host, port)
    return BoundPeerListener(socket=bound, advertised=advertised, tls=tls)


class Accepting:
    """Takes connections from a listener, in the reactor's turns, until it is closed."""

    def __init__(
        self,
        bound: BoundPeerListener,
        begin: Callable[[socket.socket], None],
        reactor: Reactor,
        tasks: trio.Nursery,
    ) -> None:
        self._socket = bound.socket
        self._begin = begin
        self._reactor = reactor
        self._tasks = tasks
        self._is_listening = False
        self._is_closed = False
        self._listen()

    def close(self) -> None:
        self._is_closed = True
        self._stop_listening()
        self._socket.close()

    def _listen(self) -> None:
        self._reactor.add(self._socket.fileno(), READABLE, self._accept)
        self._is_listening = True

    def _stop_listening(self) -> None:
        if self._is_listening:
            self._is_listening = False
            self._reactor.remove(self._socket.fileno())

    def _accept(self, _events: int) -> None:
        for _ in range(_ACCEPTS_PER_TURN):
            try:
                accepted = self._socket.accept()[0]
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in _EXHAUSTED:
                    self._stop_listening()
                    self._tasks.start_soon(self._listen_later)
                    return
                continue  # accept(2): what was wrong with that connection comes out here
            self._begin(accepted)

    async def _listen_later(self) -> None:
        while not (self._is_closed or self._is_listening):
            await trio.sleep(_EXHAUSTED_SECONDS)
            with suppress(OSError):  # there was no memory for that
                if not self._is_closed:
                    self._listen()
