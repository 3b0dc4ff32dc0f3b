"""One connection to one broker on a plain blocking socket; see the package for what it is for."""

import select
import socket
import ssl
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from tidemark import __version__
from tidemark.client.addresses import NO_HOST_NAME, Address
from tidemark.client.security.sasl import Sasl, authenticate, refused
from tidemark.client.security.tls import Tls, handshake_errors, wrap
from tidemark.client.settings import ClientSettings
from tidemark.client.wire import Wire
from tidemark.protocol.errors import ProtocolError, RequestError
from tidemark.protocol.messages.api_versions import ApiVersionsResponse
from tidemark.protocol.schema import Message

R = TypeVar("R", bound=Message)


class BlockingConnection:
    """Requests in order, answers in the same order. Not for several threads at a time.

    Any error in the middle of an exchange closes it.
    """

    def __init__(self, address: Address, sock: socket.socket, settings: ClientSettings) -> None:
        self.address = address
        self.wire = Wire(
            settings.client_id,
            software_version=__version__,
            frame_bytes_max=settings.frame_bytes_max,
            version_max=settings.version_max,
            is_encrypted=settings.tls is not None,
        )
        self._socket = sock
        self._arrived: deque[Message] = deque()
        self._is_closed = False

    @property
    def is_closed(self) -> bool:
        return self._is_closed

    def version(self, request: type[Message]) -> int:
        """The version in which a request of this type travels; see `Wire.version`."""
        return self.wire.version(request)

    def request(self, message: Message, answer: type[R]) -> R:
        """Send, and wait for the answer. There must be none outstanding.

        Raises `OSError` if the connection is lost or the answer takes too long.
        """
        assert self.wire.awaited == 0, "an earlier answer has not been received"
        self.send(message)
        return self.receive(answer)

    def send(self, message: Message) -> None:
        """Send without waiting for the answer, which `receive` gets in its turn."""
        self._send(self.wire.request(message))

    def receive(self, answer: type[R]) -> R:
        """The answer to the oldest request that has not been received."""
        while not self._arrived:
            self._arrived.extend(self._receive())
        message = self._arrived.popleft()
        assert isinstance(message, answer)
        return message

    def is_quiet(self) -> bool:
        """Whether it is open, all that was asked has been answered, and nothing else has come."""
        if self._is_closed or self.wire.awaited or self._arrived:
            return False
        if isinstance(self._socket, ssl.SSLSocket) and self._socket.pending():
            return False
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        # What comes unasked is the broker's end of it.
        return not poll.poll(0)

    def close(self) -> None:
        """Close it; closing twice is nothing."""
        self._is_closed = True
        self._socket.close()

    def negotiate(self) -> None:
        """Find the common versions; before anything else is sent."""
        frame: bytes | None = self.wire.hello()
        while frame is not None:
            self._send(frame)
            answer = self.receive(ApiVersionsResponse)
            try:
                frame = self.wire.settle_versions(answer)
            except RequestError as error:
                raise self._lost(str(error)) from error

    def authenticate(self, sasl: Sasl) -> None:
        """Prove who one is. Raises `RequestError` if it is not believed."""
        steps = authenticate(sasl)
        try:
            ask = next(steps)
            while True:
                ask = steps.send(self.request(*ask))
        except StopIteration:
            return
        except RequestError as error:
            raise refused(self.address, error) from error

    def _send(self, frame: bytes) -> None:
        try:
            self._socket.sendall(frame)
        except OSError as error:
            raise self._lost(error.strerror or str(error)) from error

    def _receive(self) -> list[Message]:
        try:
            count = self._socket.recv_into(self.wire.space())
            if count == 0:
                raise self._lost(self.wire.hung_up)
            return self.wire.received(count)
        except TimeoutError as error:
            raise self._lost(f"no answer within {self._socket.gettimeout():g} s") from error
        except ProtocolError as error:
            raise self._lost(f"what it sent is not Kafka's protocol: {error}") from error
        except OSError as error:
            if self._is_closed:
                raise
            raise self._lost(error.strerror or str(error)) from error

    def _lost(self, why: str) -> ConnectionError:
        self.close()
        return ConnectionError(f"{self.address}: {why}")


def open_connection(address: Address, settings: ClientSettings) -> BlockingConnection:
    """A connection ready for requests. Raises `OSError` in one line with the address, or
    `RequestError` if the broker does not believe who we are."""
    timeout = settings.connect_timeout_seconds
    try:
        sock = socket.create_connection((address.host, address.port), timeout)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ConnectionError(f"cannot connect to {address}: {reason}") from error
    except UnicodeError as error:
        raise ConnectionError(f"cannot connect to {address}: {NO_HOST_NAME}") from error
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if settings.tls is not None:
        sock = _encrypt(sock, settings.tls, address)
    connection = BlockingConnection(address, sock, settings)
    try:
        connection.negotiate()
        if settings.sasl is not None:
            connection.authenticate(settings.sasl)
    except BaseException:
        connection.close()
        raise
    sock.settimeout(settings.request_timeout_seconds)
    return connection


def _encrypt(sock: socket.socket, tls: Tls, address: Address) -> socket.socket:
    """TLS over it. Closes the socket if that cannot be."""
    encrypted = wrap(tls, sock, address.host)
    try:
        with handshake_errors(address):
            encrypted.do_handshake()
    except TimeoutError as error:
        encrypted.close()
        raise ConnectionError(
            f"{address}: no TLS handshake in time; has this listener TLS?"
        ) from error
    except BaseException:
        encrypted.close()
        raise
    return encrypted


@contextmanager
def connect(
    host: str, port: int, settings: ClientSettings | None = None
) -> Iterator[BlockingConnection]:
    """A connection to one broker for as long as the block."""
    connection = open_connection(Address(host, port), settings or ClientSettings())
    try:
        yield connection
    finally:
        connection.close()
