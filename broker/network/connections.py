"""All client connections of a broker: how they come, what they share, when they have to go."""

from __future__ import annotations

import errno
import itertools
import os
import socket
from contextlib import suppress
from typing import Final

import trio

from tidemark.broker.config import Address, BrokerSettings, Listener
from tidemark.broker.looks import next_look
from tidemark.broker.metrics import ConnectionEnd, Metrics
from tidemark.broker.network.connection import Connection, ConnectionLimits
from tidemark.broker.network.descriptors import connections_max
from tidemark.broker.network.dispatch import Dispatcher
from tidemark.broker.network.odd_events import OddEvents
from tidemark.broker.network.reactor import READABLE, Reactor
from tidemark.broker.network.receive_buffer import MemoryBudget
from tidemark.broker.network.requests import Session
from tidemark.broker.network.same_machine import send_unpaced_if_near
from tidemark.broker.network.timers import Timers
from tidemark.broker.network.turn import Turn
from tidemark.protocol.values import dataclass

BACKLOG: Final = 1024
SWEEP_SECONDS: Final = 1.0
# A quiet connection gives its receive buffer back.
_QUIET_SECONDS: Final = 2.0
# Who holds memory that others wait for, and fills it more slowly than this, has to go.
_HOLD_SECONDS: Final = 5.0
_HOLD_BYTES_MIN: Final = 512 * 1024
_ACCEPTS_PER_TURN: Final = 64
_DRAIN_POLL_SECONDS: Final = 0.005
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

    @property
    def address(self) -> Address:
        """Where it really listens."""
        host, port = self.socket.getsockname()[:2]
        return Address(host, port)


class Connections:
    """Everything that is read here is for the connections; the rest is for `server`."""

    def __init__(
        self,
        *,
        settings: BrokerSettings,
        reactor: Reactor,
        turn: Turn,
        dispatcher: Dispatcher,
        metrics: Metrics,
        odd_events: OddEvents,
        timers: Timers,
    ) -> None:
        self.reactor = reactor
        self.turn = turn
        self.dispatcher = dispatcher
        self.metrics = metrics
        self.odd_events = odd_events
        self.timers = timers
        self.limits = ConnectionLimits(
            frame_bytes_max=settings.socket_request_max_bytes,
            requests_max=settings.connection_requests_max,
            response_bytes_max=settings.connection_response_max_bytes,
        )
        self.budget = MemoryBudget(settings.queued_max_request_bytes)
        self._settings = settings
        self._idle_seconds = settings.connections_max_idle_ms / 1000 or float("inf")
        self._open: dict[Connection, None] = {}
        self._open_max = connections_max(settings.max_connections)
        self._starved: dict[Connection, None] = {}
        # Who holds memory while others starve: since when, and how much it had sent by then.
        self._holding: dict[Connection, tuple[float, int]] = {}
        self._listeners: list[BoundListener] = []
        self._ids = itertools.count(1)
        self._spare: int | None = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    def __len__(self) -> int:
        return len(self._open)

    @property
    def now(self) -> float:
        return trio.current_time()

    def listen(self, bound: BoundListener) -> None:
        """Take clients from a listener."""
        self._listeners.append(bound)
        self.reactor.add(bound.socket.fileno(), READABLE, lambda events: self._accept(bound))

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
            self.metrics.connections_opened.inc()
            if len(self._open) >= self._open_max:
                client.close()
                self.metrics.connections_closed[ConnectionEnd.TOO_MANY].inc()
                self.odd_events.warn(
                    "too many connections", "there are %d connections already", len(self)
                )
            else:
                self._begin(client, address[0], bound)

    def _refuse_one(self, bound: BoundListener, error: OSError) -> None:
        """Without descriptors nothing can be accepted, and the listener stays ready: a busy loop.

        So one descriptor is kept for this: it makes room to accept a client and hang up.
        """
        self.odd_events.warn("too many connections", "a connection was refused: %s", error)
        if self._spare is not None:
            os.close(self._spare)
            self._spare = None
        try:
            bound.socket.accept()[0].close()
            self.metrics.connections_opened.inc()
            self.metrics.connections_closed[ConnectionEnd.TOO_MANY].inc()
        except OSError:
            pass
        finally:
            # Another thread may have been quicker; then the next refusal does without a spare.
            with suppress(OSError):
                self._spare = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    def _begin(self, client: socket.socket, client_host: str, bound: BoundListener) -> None:
        client.setblocking(False)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)
        send_unpaced_if_near(client)
        for option, size_bytes in (
            (socket.SO_SNDBUF, self._settings.socket_send_buffer_bytes),
            (socket.SO_RCVBUF, self._settings.socket_receive_buffer_bytes),
        ):
            if size_bytes >= 0:
                client.setsockopt(socket.SOL_SOCKET, option, size_bytes)
        local_host, port = client.getsockname()[:2]
        session = Session(
            connection_id=next(self._ids),
            client_host=client_host,
            listener=bound.listener.shown_to(local_host=local_host, bound_port=port),
            listener_name=bound.listener.name,
            requires_sasl=bound.listener.requires_sasl,
        )
        self._open[Connection(client, session, self)] = None

    def forget(self, connection: Connection, reason: ConnectionEnd) -> None:
        """For a connection that has closed."""
        del self._open[connection]
        self._starved.pop(connection, None)
        self._holding.pop(connection, None)
        self.metrics.connections_closed[reason].inc()

    def starve(self, connection: Connection) -> None:
        """For a connection that got no memory: it is fed when there is some."""
        self._starved[connection] = None

    async def sweep(self) -> None:
        """The task that looks after them: memory, idleness. For ever."""
        while True:
            await trio.sleep_until(next_look(SWEEP_SECONDS))
            self.turn.run(self._sweep_once)

    def _sweep_once(self) -> None:
        now = self.now
        for connection in list(self._open):
            if connection.was_active:
                connection.was_active, connection.active_at = False, now
            silent_seconds = now - connection.active_at
            if silent_seconds >= self._idle_seconds and not connection.owes_answers:
                slow = connection.has_unsent
                connection.close(ConnectionEnd.SLOW if slow else ConnectionEnd.IDLE)
            elif silent_seconds >= _QUIET_SECONDS:
                connection.shrink()
        if self._starved:
            self._make_room(now)
            self._feed_starved()
        else:
            self._holding.clear()

    def _make_room(self, now: float) -> None:
        """Close who holds memory that others wait for and hardly fills it, byte by byte or not."""
        slow = list[Connection]()
        for connection in self._open:
            if not connection.holds_memory:
                continue
            since, before = self._holding.setdefault(connection, (now, connection.received_bytes))
            if now - since < _HOLD_SECONDS:
                continue
            if connection.received_bytes - before < _HOLD_BYTES_MIN:
                slow.append(connection)
            else:
                self._holding[connection] = (now, connection.received_bytes)
        # Those that wait themselves cannot fill theirs; where nobody else has any, one has to go.
        for connection in [each for each in slow if each not in self._starved] or slow[:1]:
            connection.close(ConnectionEnd.SLOW)

    def _feed_starved(self) -> None:
        starved, self._starved = self._starved, {}
        for connection in starved:
            connection.feed()

    def stop_accepting(self) -> None:
        for bound in self._listeners:
            self.reactor.remove(bound.socket.fileno())
            bound.socket.close()
        self._listeners.clear()

    def stop_reading(self) -> None:
        for connection in self._open:
            connection.stop_reading()

    async def wait_drained(self) -> None:
        """Until every request that came is answered, and the answers are in the kernel."""
        # Asked now and then, while stopping: an event would cost something at every send.
        while any(each.owes_answers or each.has_unsent for each in self._open):  # noqa: ASYNC110 # see above
            await trio.sleep(_DRAIN_POLL_SECONDS)

    def close(self) -> None:
        """Close whatever is open. Doing it twice is allowed."""
        self.stop_accepting()
        for connection in list(self._open):
            connection.close(ConnectionEnd.STOPPING)
        if self._spare is not None:
            os.close(self._spare)
            self._spare = None


def bind(listener: Listener) -> BoundListener:
    """Bind a listener's socket. Raises `OSError`: the port is taken, or the address not ours."""
    host = listener.address.host or "0.0.0.0"
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.create_server((host, listener.address.port), family=family, backlog=BACKLOG)
    bound.setblocking(False)
    return BoundListener(listener=listener, socket=bound)
