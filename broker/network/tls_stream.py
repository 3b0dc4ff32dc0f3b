"""TLS over a socket that does not block: for who sends and receives, it is such a socket itself.

What is received is decrypted from memory, and what is to be sent is encrypted into memory, where it
stays until the socket takes it: nothing more is encrypted before. So a write is never begun twice
with other bytes, which OpenSSL does not forgive. Of OpenSSL's two buffers, which never shrink, each
holds a record, and is as large from the first: what grows later comes to lie behind buffers of
requests in the heap, and keeps their memory from going back.

Two things are not as with a plain socket. What was received and not yet taken does not make the
socket readable: see `has_received`. What was taken to be sent may be here still: `unsent_bytes`.
"""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

_RECORD_CONTENT_MAX: Final = 16 * 1024
RECORD_BYTES_MAX: Final = _RECORD_CONTENT_MAX + 256
"""A record of TLS with its header, nonce and tag, and then some."""
_SENT_AT_A_TIME: Final = 256 * 1024
RECORDS_AT_A_TIME: Final = 4
"""So many are encrypted for one call."""
_RECEIVED_AT_A_TIME: Final = 64 * 1024
_OWN_ANSWERS_MAX: Final = 64 * 1024
"""What the protocol itself has to answer, to one that reads none of it."""
_FRUITLESS_BYTES_MAX: Final = 2 * RECORD_BYTES_MAX
"""What may be decrypted for nothing: a record comes in parts. New keys are 27 bytes each, take the
loop 20 microseconds, and OpenSSL knows no end of them."""
_BYTES_FOR_ONE: Final = 32
"""Each byte of content pays for so many: in a record of its own it takes 23."""
TURN_BYTES_MAX: Final = 1024 * 1024
"""So much one connection may receive each time that it is ready: records may be as short as a byte,
or empty, and each takes microseconds."""
_NOTHING: Final = memoryview(b"")
_EMPTY: Final = ssl.MemoryBIO()


class TlsStream:
    """This side of one connection."""

    __slots__ = (
        "_credit_bytes",
        "_error",
        "_incoming",
        "_is_used_up",
        "_outgoing",
        "_received",
        "_socket",
        "_tls",
        "_unsent",
        "has_heard",
        "is_open",
        "may_receive",
    )

    def __init__(
        self, connected: socket.socket, context: ssl.SSLContext, *, has_dialed: bool = False
    ) -> None:
        """`has_dialed`: the connection was made from this side, which speaks first then."""
        self._socket = connected
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        for memory in (self._incoming, self._outgoing):
            memory.write(bytes(RECORD_BYTES_MAX))
            memory.read()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=not has_dialed)
        self._received = _NOTHING  # and not given to OpenSSL
        self._unsent = _NOTHING
        self._error: ssl.SSLError | None = None
        self._credit_bytes = _FRUITLESS_BYTES_MAX
        self._is_used_up = True  # nothing is made of what was received before more of it comes
        self.is_open = False
        """Whether the handshake is done."""
        self.has_heard = False
        """Whether anything has come."""
        self.may_receive = TURN_BYTES_MAX
        """How many bytes the socket is asked for, once what came from it is used up."""

    def fileno(self) -> int:
        return self._socket.fileno()

    @property
    def has_received(self) -> bool:
        """Whether something may be taken at once, though the socket is not readable."""
        return not self._is_used_up

    @property
    def certificate(self) -> bytes | None:
        """What the other side has shown of itself, in DER: verified, once the handshake is done."""
        return self._tls.getpeercert(binary_form=True)

    @property
    def unsent_bytes(self) -> int:
        """What is encrypted and waits for the socket to take it."""
        return len(self._unsent) + self._outgoing.pending

    def shake_hands(self) -> None:
        """Go on with the handshake as far as that is possible.

        Raises `BlockingIOError` until it is done, and `OSError`, of which `ssl.SSLError` is one.
        """
        while not self.is_open:
            try:
                self._tls.do_handshake()
                self.is_open = True
            except ssl.SSLWantReadError:
                if not self._feed():
                    self.flush()
                    self._receive_some(RECORD_BYTES_MAX)
            except ssl.SSLError:
                self.flush()  # the alert that says why
                raise
        self.flush()

    def recv_into(self, view: memoryview) -> int:
        """As a socket's; 0 is the end, also where it was not said."""
        try:
            return self._take(view)
        finally:
            self.flush()  # what the protocol itself answers, to a new key, or to what is refused
            if self._outgoing.pending > _OWN_ANSWERS_MAX:
                raise ssl.SSLError(1, "it asks for answers of the protocol and reads none")
            if self._credit_bytes < 0:
                raise ssl.SSLError(1, "it says hardly anything but what TLS says to itself")

    def _take(self, view: memoryview) -> int:
        taken, size = 0, len(view)
        while taken < size and self._error is None and self._credit_bytes >= 0:
            try:
                count = _read_into(self._tls, view[taken:])
            except ssl.SSLWantReadError:
                if self._feed():
                    continue
                if taken:
                    break
                self._receive_some(max(size, RECORD_BYTES_MAX))
                continue
            except (ssl.SSLEOFError, ssl.SSLZeroReturnError):
                count = 0
            except ssl.SSLError as error:
                self._error = error  # and what came before it is taken first
                count = 0
            if not count:
                self._is_used_up = False  # nothing more will come that says so
                break
            taken += count
            credit = self._credit_bytes + _BYTES_FOR_ONE * count
            self._credit_bytes = min(credit, _FRUITLESS_BYTES_MAX)
        if self._error is not None and not taken:
            raise self._error
        return taken

    def _receive_some(self, size: int) -> None:
        """Raises `BlockingIOError` if nothing is there."""
        if self.may_receive <= 0:
            raise BlockingIOError
        received = self._socket.recv(min(size, _RECEIVED_AT_A_TIME, self.may_receive))
        self.may_receive -= len(received)
        if received:
            self._received = memoryview(received)
            self._feed()
        else:
            self._incoming.write_eof()
            self._is_used_up = False

    def _feed(self) -> bool:
        """Give what was received to OpenSSL, which has used up what it had; whether there was
        any."""
        received = self._received
        self._is_used_up = not received
        if not received:
            return False
        self._incoming.write(received[:RECORD_BYTES_MAX])
        self._received = received[RECORD_BYTES_MAX:] or _NOTHING
        self.has_heard = True
        if self.is_open:
            self._credit_bytes -= min(len(received), RECORD_BYTES_MAX)
        return True

    def send(self, data: bytes | memoryview) -> int:
        """As a socket's: how much was taken. Raises `BlockingIOError` while what was taken before
        has not been sent."""
        if not self.flush():
            raise BlockingIOError
        rest = memoryview(data)[:_SENT_AT_A_TIME]
        taken = 0
        while taken < len(rest):
            records: list[bytes] = []
            while taken < len(rest) and len(records) < RECORDS_AT_A_TIME:
                taken += self._tls.write(rest[taken : taken + _RECORD_CONTENT_MAX])
                records.append(self._outgoing.read())
            if not self._send_records(records):
                break
        return taken

    def _send_records(self, records: list[bytes]) -> bool:
        """Whether the socket has taken all of them; the rest stays here."""
        try:
            sent = self._socket.sendmsg(records)
        except BlockingIOError:
            sent = 0
        if sent < sum(map(len, records)):
            self._unsent = memoryview(b"".join(records))[sent:]
        return not self._unsent

    def sendmsg(self, parts: Sequence[bytes]) -> int:
        """As a socket's."""
        if not self.flush():
            raise BlockingIOError
        together: list[bytes] = []
        left = _SENT_AT_A_TIME
        for part in parts:
            if left <= 0:
                break
            together.append(part)
            left -= len(part)
        return self.send(b"".join(together))

    def send_file(self, descriptor: int, position: int, size: int) -> int:
        """Send from a file, which is read for it: how much was taken; 0 if it ends there."""
        if not self.flush():
            raise BlockingIOError
        return self.send(os.pread(descriptor, min(size, _SENT_AT_A_TIME), position))

    def flush(self) -> bool:
        """Send what is encrypted, as far as the socket takes it; whether all is gone."""
        while self.unsent_bytes:
            if not self._unsent:
                self._unsent = memoryview(self._outgoing.read())
            try:
                sent = self._socket.send(self._unsent)
            except BlockingIOError:
                return False
            self._unsent = self._unsent[sent:] or _NOTHING
        return True

    def close(self) -> None:
        """Say that this is the end, or why it is, if the socket takes that, and close it.

        Whoever has it lies in a cycle. What OpenSSL has of it is some 50 KB, and does not wait for
        the collector, which counts objects and not bytes. Doing it twice is allowed.
        """
        if self._socket.fileno() < 0:
            return
        with suppress(OSError):
            if self.flush() and self.is_open:
                self._tls.unwrap()
        with suppress(OSError):
            self.flush()
        self._socket.close()
        self._incoming = self._outgoing = _EMPTY
        self._received = self._unsent = _NOTHING
        del self._tls


def _read_into(tls: ssl.SSLObject, view: memoryview) -> int:
    # With a buffer it tells how much there was.
    return tls.read(len(view), view)  # type: ignore[return-value] # the stubs know it without one
