"""All client connections of a broker: how they come, what they share, when they have to go."""

from __future__ import annotations

import itertools
import socket
from typing import Final

import trio

from tidemark.broker.config import BrokerSettings
from tidemark.broker.looks import next_look
from tidemark.broker.metrics import ConnectionEnd, Metrics
from tidemark.broker.network.accepting import Accepting, BoundListener
from tidemark.broker.network.connection import Connection, ConnectionLimits
from tidemark.broker.network.descriptors import connections_max
from tidemark.broker.network.dispatch import Dispatcher
from tidemark.broker.network.listener_tls import ListenerTls
from tidemark.broker.network.memory import bytes_for_clients
from tidemark.broker.network.odd_events import OddEvents
from tidemark.broker.network.reactor import Reactor
from tidemark.broker.network.receive_buffer import MemoryBudget
from tidemark.broker.network.requests import Session
from tidemark.broker.network.same_machine import send_unpaced_if_near
from tidemark.broker.network.timers import Timers
from tidemark.broker.network.tls_connection import TlsConnection
from tidemark.broker.network.turn import Turn
from tidemark.broker.network.unread_answers import UnreadAnswers

SWEEP_SECONDS: Final = 1.0
# A quiet connection gives its receive buffer back.
_QUIET_SECONDS: Final = 2.0
# Who holds memory that others wait for, and fills it more slowly than this, has to go.
_HOLD_SECONDS: Final = 5.0
_HOLD_BYTES_MIN: Final = 512 * 1024
_DRAIN_POLL_SECONDS: Final = 0.005
ADMISSION_SECONDS: Final = 60.0
"""How long a client may take to prove who it is, by TLS or SASL. Else strangers that say a word now
and then would have the places of those who are somebody for as long as they like."""


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
        requests_bytes_max = bytes_for_clients(settings.queued_max_request_bytes)
        self.limits = ConnectionLimits(
            frame_bytes_max=min(settings.socket_request_max_bytes, requests_bytes_max),
            requests_max=settings.connection_requests_max,
            response_bytes_max=settings.connection_response_max_bytes,
        )
        self.principal_rules = settings.ssl_principal_mapping_rules
        self.budget = MemoryBudget(requests_bytes_max)
        self.unread = UnreadAnswers(bytes_for_clients(settings.queued_max_response_bytes))
        self._settings = settings
        self._idle_seconds = settings.connections_max_idle_ms / 1000 or float("inf")
        self._open: dict[Connection, None] = {}
        self._strangers: dict[Connection, float] = {}
        """Those that have something to prove yet, and until when."""
        self._open_max = connections_max(settings.max_connections)
        self._starved: dict[Connection, None] = {}
        # Who holds memory while others starve: since when, and how much it had sent by then.
        self._holding: dict[Connection, tuple[float, int]] = {}
        # Who has unread answers while there is no memory for more: since when, and how much it had
        # been sent by then.
        self._unreading: dict[Connection, tuple[float, int]] = {}
        self._tls = set[ListenerTls]()
        self._ids = itertools.count(1)
        self._accepting = Accepting(reactor, timers, take=self._take, refused=self._refused)

    def __len__(self) -> int:
        return len(self._open)

    @property
    def now(self) -> float:
        return trio.current_time()

    def listen(self, bound: BoundListener) -> None:
        """Take clients from a listener."""
        if bound.tls is not None:
            self._tls.add(bound.tls)
        self._accepting.listen(bound)

    def _take(self, client: socket.socket, client_host: str, bound: BoundListener) -> None:
        self.metrics.connections_opened.inc()
        if len(self._open) >= self._open_max:
            client.close()
            self.metrics.connections_closed[ConnectionEnd.TOO_MANY].inc()
            self.odd_events.warn(
                "too many connections", "there may be no more than %d connections", self._open_max
            )
            return
        try:
            self._begin(client, client_host, bound)
        except OSError as error:
            # The kernel has no memory to watch another, say; nobody else is to suffer from it.
            client.close()
            self.metrics.connections_closed[ConnectionEnd.ERROR].inc()
            self.odd_events.warn("failed connections", "a connection was not taken: %s", error)

    def _refused(self, error: OSError, has_hung_up: bool) -> None:
        self.odd_events.warn("too many connections", "a connection was refused: %s", error)
        if has_hung_up:
            self.metrics.connections_opened.inc()
            self.metrics.connections_closed[ConnectionEnd.TOO_MANY].inc()

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
        if bound.tls is None:
            connection = Connection(client, session, self)
        else:
            connection = TlsConnection(client, session, self, bound.tls.value)
        self._open[connection] = None
        if not connection.is_admitted:
            self._strangers[connection] = self.now + ADMISSION_SECONDS

    def forget(self, connection: Connection, reason: ConnectionEnd) -> None:
        """For a connection that has closed."""
        del self._open[connection]
        self._strangers.pop(connection, None)
        self._starved.pop(connection, None)
        self._holding.pop(connection, None)
        self._unreading.pop(connection, None)
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
        for tls in self._tls:
            tls.renew()
        now = self.now
        self._send_strangers_away(now)
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
        if self.unread.is_full:
            self._end_unreading(now)
        else:
            self._unreading.clear()

    def _send_strangers_away(self, now: float) -> None:
        for connection, until in list(self._strangers.items()):
            if connection.is_admitted:
                del self._strangers[connection]
            elif now >= until and not connection.owes_answers:
                self.odd_events.warn(
                    "strangers",
                    "closing the connection of %s: it has not proven who it is in %d s",
                    connection.session.client_host,
                    ADMISSION_SECONDS,
                )
                connection.close(ConnectionEnd.SLOW)

    def _make_room(self, now: float) -> None:
        """Close who holds memory that others wait for and hardly fills it, byte by byte or not."""
        slow = list[Connection]()
        for connection in self._open:
            if not connection.holds_memory:
                continue
            if _is_slow(self._holding, connection, connection.received_bytes, now):
                slow.append(connection)
        # Those that wait themselves cannot fill theirs; where nobody else has any, one has to go.
        for connection in [each for each in slow if each not in self._starved] or slow[:1]:
            connection.close(ConnectionEnd.SLOW)

    def _end_unreading(self, now: float) -> None:
        """Close who has answers for whose memory others wait, and hardly reads them."""
        for connection in [each for each in self._open if each.unread_bytes]:
            if _is_slow(self._unreading, connection, connection.sent_bytes, now):
                connection.close(ConnectionEnd.SLOW)

    def _feed_starved(self) -> None:
        starved, self._starved = self._starved, {}
        for connection in starved:
            connection.feed()

    def let_go_on(self) -> None:
        """Quotas have changed: nobody is held back any more for what they were. Who is over those
        that hold now is told so with the next answer."""
        for connection in list(self._open):
            connection.let_go_on()

    def stop_accepting(self) -> None:
        self._accepting.stop()

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
        self._accepting.close()
        for connection in list(self._open):
            connection.close(ConnectionEnd.STOPPING)


def _is_slow(
    marks: dict[Connection, tuple[float, int]], connection: Connection, moved_bytes: int, now: float
) -> bool:
    """Whether it has moved next to nothing for some seconds, in all of which it was asked about."""
    since, before = marks.setdefault(connection, (now, moved_bytes))
    if now - since < _HOLD_SECONDS:
        return False
    if moved_bytes - before < _HOLD_BYTES_MIN:
        return True
    marks[connection] = (now, moved_bytes)
    return False
