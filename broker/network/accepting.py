"""How clients come: listeners, and what becomes of them where there is no descriptor left.

A listener with somebody waiting stays ready, and would keep the loop busy with what cannot be
accepted. So one descriptor is kept for that: it makes room to accept a client and hang up. Where
even that does not help (another thread was quicker, or it is the machine that has none) the
listeners are left alone for a while.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from tidemark.broker.config import Address, Listener
from tidemark.broker.network.listener_tls import ListenerTls
from tidemark.broker.network.reactor import READABLE, Reactor
from tidemark.broker.network.timers import Timers
from tidemark.protocol.values import dataclass

BACKLOG: Final = 1024
PAUSE_SECONDS: Final = 1.0
_ACCEPTS_PER_TURN: Final = 64
# The process is out of descriptors, or the kernel of memory for another socket.
_EXHAUSTED: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
# accept(2): what went wrong with the new connection before it was taken comes out of accept.
_LOST_ON_THE_WAY: Final = frozenset(
    {
        errno.ENETDOWN,
        errno.EPROTO,
        errno.ENOPROTOOPT,
        errno.EHOSTDOWN,
        errno.ENONET,
        errno.EHOSTUNREACH,
        errno.EOPNOTSUPP,
        errno.ENETUNREACH,
        errno.EPERM,  # a firewall's word
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundListener:
    """A listener and the socket that is bound for it."""

    listener: Listener
    socket: socket.socket
    tls: ListenerTls | None = None

    @property
    def address(self) -> Address:
        """Where it really listens."""
        host, port = self.socket.getsockname()[:2]
        return Address(host, port)

    @property
    def advertised(self) -> Address:
        """What to say of it where no client has come by it yet: on every interface, this machine's
        own loopback."""
        here = self.address.from_here
        return self.listener.shown_to(local_host=here.host, bound_port=here.port)


class Accepting:
    """Takes clients from listeners, in the reactor's turns, until it is closed.

    `take` gets each client, its host and where it came from, and must not raise; `refused` hears
    why there is no descriptor for one, and whether that one was hung up on.
    """

    def __init__(
        self,
        reactor: Reactor,
        timers: Timers,
        *,
        take: Callable[[socket.socket, str, BoundListener], None],
        refused: Callable[[OSError, bool], None],
    ) -> None:
        self._reactor = reactor
        self._timers = timers
        self._take = take
        self._refused = refused
        self._listeners: list[BoundListener] = []
        self._paused: list[BoundListener] = []
        """Of these, those that are not looked at for now."""
        self._spare: int | None = None
        self._have_spare()

    def listen(self, bound: BoundListener) -> None:
        """Take clients from a listener."""
        self._listeners.append(bound)
        self._look_at(bound)

    def _look_at(self, bound: BoundListener) -> None:
        self._reactor.add(bound.socket.fileno(), READABLE, lambda events: self._accept(bound))

    def stop(self) -> None:
        """Take no more, and close the listeners. Doing it twice is allowed."""
        for bound in self._listeners:
            if bound not in self._paused:
                self._reactor.remove(bound.socket.fileno())
            bound.socket.close()
        self._listeners.clear()
        self._paused.clear()

    def close(self) -> None:
        """Give everything back. Doing it twice is allowed."""
        self.stop()
        self._free_spare()

    def _accept(self, bound: BoundListener) -> None:
        for _ in range(_ACCEPTS_PER_TURN):
            try:
                client, address = bound.socket.accept()
            except BlockingIOError:
                return
            except ConnectionError:
                continue
            except OSError as error:
                if error.errno in _LOST_ON_THE_WAY:
                    continue
                if error.errno not in _EXHAUSTED:
                    raise
                self._refuse_one(bound, error)
                return
            self._take(client, address[0], bound)

    def _refuse_one(self, bound: BoundListener, error: OSError) -> None:
        self._free_spare()
        may_go_on = has_refused = False
        try:
            bound.socket.accept()[0].close()
            has_refused = may_go_on = True
        except OSError as again:
            may_go_on = again.errno not in _EXHAUSTED
        self._refused(error, has_refused)
        # Another thread may have been quicker.
        if not self._have_spare() or not may_go_on:
            self._pause()

    def _have_spare(self) -> bool:
        if self._spare is None:
            with suppress(OSError):
                self._spare = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        return self._spare is not None

    def _free_spare(self) -> None:
        if self._spare is not None:
            os.close(self._spare)
            self._spare = None

    def _pause(self) -> None:
        if not self._paused:
            self._timers.after(PAUSE_SECONDS, self._go_on)
        for bound in self._listeners:
            if bound not in self._paused:
                self._reactor.remove(bound.socket.fileno())
                self._paused.append(bound)

    def _go_on(self) -> None:
        """Look again, with a spare or without: then there is one look, and another pause."""
        if self._paused:
            self._have_spare()
        while self._paused:
            try:
                self._look_at(self._paused[-1])
            except OSError:  # there was no memory for that
                self._timers.after(PAUSE_SECONDS, self._go_on)
                return
            self._paused.pop()


def bind(listener: Listener, tls: ListenerTls | None = None) -> BoundListener:
    """Bind a listener's socket. Raises `OSError`: the port is taken, or the address not ours."""
    host = listener.address.host or "0.0.0.0"
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.create_server((host, listener.address.port), family=family, backlog=BACKLOG)
    bound.setblocking(False)
    return BoundListener(listener=listener, socket=bound, tls=tls)
