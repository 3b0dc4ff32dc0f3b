"""A client whose bytes are encrypted: a `Connection` over a `TlsStream`."""

from __future__ import annotations

import socket
import ssl
from typing import TYPE_CHECKING

from tidemark.broker.config.principal_rules import first_user
from tidemark.broker.metrics import BadInput, ConnectionEnd
from tidemark.broker.network.connection import Connection
from tidemark.broker.network.distinguished_names import distinguished_name
from tidemark.broker.network.reactor import READABLE
from tidemark.broker.network.requests import Session
from tidemark.broker.network.tls_send_queue import TlsSendQueue
from tidemark.broker.network.tls_stream import TURN_BYTES_MAX, TlsStream
from tidemark.protocol.openssl import words_of

if TYPE_CHECKING:
    from tidemark.broker.network.connections import Connections


class TlsConnection(Connection):
    """One client's, by a listener that speaks TLS."""

    __slots__ = ("_is_asked_again", "_stream")

    def __init__(
        self, client: socket.socket, session: Session, shared: Connections, tls: ssl.SSLContext
    ) -> None:
        stream = TlsStream(client, tls)  # first, for it may fail
        super().__init__(client, session, shared)
        self._stream = self._socket = stream
        self._out = TlsSendQueue(self._stream)
        self._is_asked_again = False

    @property
    def is_admitted(self) -> bool:
        return self._stream.is_open and super().is_admitted

    @property
    def has_unsent(self) -> bool:
        return bool(self._out) or self._stream.unsent_bytes > 0

    def _on_ready(self, events: int) -> None:
        self._stream.may_receive = TURN_BYTES_MAX
        super()._on_ready(events)

    def feed(self) -> None:
        self._stream.may_receive = TURN_BYTES_MAX
        super().feed()

    def _receive(self) -> None:
        stream = self._stream
        try:
            if not stream.is_open:
                stream.shake_hands()
                self._name_user()
            super()._receive()
        except BlockingIOError:  # in the handshake
            pass
        if stream.unsent_bytes and not self._is_blocked and not self.is_closed:
            self._is_blocked = True
            self._update_interest()

    def _name_user(self) -> None:
        """Where SASL does not say who the client is, its certificate does, if it has shown one. No
        other can follow: there is no renegotiation. Raises `UnnamedClient`."""
        if self.session.requires_sasl:
            return
        certificate = self._stream.certificate
        if certificate is None:
            return
        try:
            name = distinguished_name(certificate)
        except ValueError as error:
            raise UnnamedClient(f"its certificate cannot be read: {error}") from error
        user = first_user(self._shared.principal_rules, name)
        if not user:
            raise UnnamedClient(
                f"ssl.principal.mapping.rules make no user of '{name}', as its certificate calls it"
            )
        self.session.user = user

    def _send(self) -> None:
        super()._send()
        # What was taken to be sent may be encrypted and still here.
        self._is_blocked |= not self._stream.flush()

    def _update_interest(self) -> None:
        super()._update_interest()
        if self._interest & READABLE and self._stream.has_received and not self._is_asked_again:
            # The rest of what was received together: the socket is not readable for it.
            self._is_asked_again = True
            self._shared.turn.after(self._receive_rest)

    def _receive_rest(self) -> None:
        self._is_asked_again = False
        if not self.is_closed and self._interest & READABLE and self._stream.has_received:
            # What comes meanwhile waits for the next turn, or who sends fast would have them all.
            self._stream.may_receive = 0
            self._guarded(self._receive)

    def _end_by(self, error: Exception) -> None:
        match error:
            case ssl.SSLEOFError() | ssl.SSLZeroReturnError():
                self.close(ConnectionEnd.BY_CLIENT)
            case UnnamedClient():
                self._shared.metrics.bad_input[BadInput.FAILED_AUTHENTICATION].inc()
                self._warn("unnamed clients", error)
                self.close(ConnectionEnd.BAD_INPUT)
            case ssl.SSLError():
                self._shared.metrics.bad_input[BadInput.FAILED_TLS].inc()
                self._warn("failed TLS", FailedTls(error))
                self.close(ConnectionEnd.BAD_INPUT)
            case _:
                super()._end_by(error)


class UnnamedClient(Exception):
    """A client that has shown a certificate, and is nobody by it."""


class FailedTls(Exception):
    """What OpenSSL says, or `TlsStream`, in words."""

    def __init__(self, error: ssl.SSLError) -> None:
        reason = words_of(error)
        hint = ""
        if "wrong version number" in reason or "http request" in reason:
            hint = "; it does not speak TLS (security.protocol=SSL or SASL_SSL)"
        elif "unknown ca" in reason or "bad certificate" in reason:
            hint = "; it does not trust this broker's certificate (its ssl.ca.location)"
        elif "did not return a certificate" in reason:
            hint = "; it shows no certificate, and ssl.client.auth is required"
        super().__init__(f"no TLS: {reason}{hint}")
