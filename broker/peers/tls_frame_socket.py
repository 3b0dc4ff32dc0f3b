"""A socket between brokers whose bytes are encrypted: a `FrameSocket` over a `TlsStream`."""

from __future__ import annotations

import socket
import ssl

from tidemark.broker.metrics.peer_counts import PeerEnd
from tidemark.broker.network.tls_send_queue import TlsSendQueue
from tidemark.broker.network.tls_stream import TURN_BYTES_MAX, TlsStream
from tidemark.broker.peers.frame_socket import GONE, FrameSocket, SocketOwner, SocketServices
from tidemark.broker.peers.tls_trouble import why_no_tls


def open_frame_socket(
    connected: socket.socket,
    owner: SocketOwner,
    services: SocketServices,
    tls: ssl.SSLContext | None,
    *,
    has_dialed: bool,
) -> FrameSocket:
    """With TLS or, where there is no context for it, without. Raises `OSError`: there is no memory
    for it."""
    if tls is None:
        return FrameSocket(connected, owner, services)
    stream = TlsStream(connected, tls, has_dialed=has_dialed)
    return TlsFrameSocket(connected, owner, services, stream, has_dialed=has_dialed)


class TlsFrameSocket(FrameSocket):
    """Who has dialed has something to say first, and that begins the handshake."""

    __slots__ = ("_has_dialed", "_is_asked_again", "_stream")

    def __init__(
        self,
        connected: socket.socket,
        owner: SocketOwner,
        services: SocketServices,
        stream: TlsStream,
        *,
        has_dialed: bool,
    ) -> None:
        super().__init__(connected, owner, services)
        self._has_dialed = has_dialed
        self._wire = self._stream = stream
        self._out = TlsSendQueue(stream)
        self._is_asked_again = False

    @property
    def unsent_bytes(self) -> int:
        return super().unsent_bytes + self._stream.unsent_bytes

    def _on_ready(self, events: int) -> None:
        self._stream.may_receive = TURN_BYTES_MAX
        if events & GONE and not self._is_paused:
            # Why may be among what has come: an alert, and then the end.
            self._guarded(self._receive)
        if not self.is_closed:
            super()._on_ready(events)

    def _receive(self) -> None:
        if not self._stream.is_open:
            self._flush()
        if self._stream.is_open:
            super()._receive()
            self._look_again()

    def _flush(self) -> None:
        try:
            self._stream.shake_hands()
        except BlockingIOError:
            self._is_blocked = False  # it is the other side's turn
        else:
            super()._flush()
        self._look_again()

    def _look_again(self) -> None:
        """What is encrypted and here is sent when the socket takes it; what was received and not
        taken makes no socket readable, and is taken at the end of the turn."""
        if self.is_closed:
            return
        self._is_blocked |= self._stream.unsent_bytes > 0
        self._update_interest()

    def _update_interest(self) -> None:
        super()._update_interest()
        if self._has_rest() and not self._is_asked_again:
            self._is_asked_again = True
            self._services.turn.after(self._receive_rest)

    def _receive_rest(self) -> None:
        self._is_asked_again = False
        if self._has_rest():
            # What comes meanwhile waits for the next turn.
            self._stream.may_receive = 0
            self._guarded(self._receive)

    def _has_rest(self) -> bool:
        is_listening = not (self._is_paused or self.is_closed or self._is_frozen)
        return is_listening and self._stream.has_received

    def _end_by(self, error: Exception) -> None:
        is_of_tls = isinstance(error, ssl.SSLError) or not self._stream.is_open
        if not (isinstance(error, OSError) and is_of_tls):
            super()._end_by(error)
            return
        reason, warn = why_no_tls(error), self._services.odd_events.warn
        if self._has_dialed:
            warn("failed TLS with brokers", "no connection to %s: %s", self.address, reason)
        elif self._stream.has_heard:  # or it has only looked whether somebody listens
            warn("failed TLS of others", "closing the connection of %s: %s", self.address, reason)
        self.close(PeerEnd.FAILED_TLS, reason)
