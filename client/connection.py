"""One connection to one broker, on trio: requests go out at once, answers come back in their order.

A request never owns the socket. Its frame is written whole by whoever can (the caller if the
kernel takes it, else the connection's writer), and its answer is read by the connection's reader.
Hence *cancelling a request leaves the connection usable*: the broker still gets the request, and
the answer is dropped when it arrives. What makes a connection unusable closes it, and everything
that still waits on it gets a `ConnectionError` that says why. A request that stays unanswered too
long makes it unusable: answers come in order, so nothing behind it would ever be answered.
"""

import os
import socket
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

import trio

from tidemark import __version__
from tidemark.client.settings import ClientSettings
from tidemark.client.wire import Wire
from tidemark.protocol.errors import ProtocolError, RequestError
from tidemark.protocol.messages.api_versions import ApiVersionsResponse
from tidemark.protocol.schema import Message

R = TypeVar("R", bound=Message)


class Reply(Generic[R]):
    """The answer to one request, when it comes."""

    __slots__ = ("_answer_type", "_connection", "_is_settled", "_message", "_when_settled", "due")

    def __init__(self, connection: "Connection", answer_type: type[R], due: float) -> None:
        self._connection = connection
        self._answer_type = answer_type
        self.due = due  # on trio's clock; without an answer by then, the connection is given up
        self._is_settled = False
        self._message: Message | None = None
        self._when_settled: Callable[[], None] | None = None

    async def wait(self) -> R:
        """The answer. Raises `ConnectionError` if the connection is lost before it arrives."""
        if not self._is_settled:
            settled = trio.Event()
            self.then(settled.set)
            await settled.wait()
        return self.result()

    def then(self, callback: Callable[[], None]) -> None:
        """Call this as soon as `result` has something to say: now, or in the connection's task.

        For those who have no task to wait in. It must not raise; only one can be set.
        """
        if self._is_settled:
            callback()
        else:
            self._when_settled = callback

    def result(self) -> R:
        """As `wait`, once it is settled."""
        if self._message is None:
            raise self._connection.lost()
        assert isinstance(self._message, self._answer_type)
        return self._message

    def settle(self, message: Message | None) -> None:
        """Hand the answer over; None when there will be none."""
        self._is_settled, self._message = True, message
        if self._when_settled is not None:
            self._when_settled()


class Connection:
    """See the module. Made by `serve_connection`, which also runs it."""

    def __init__(
        self, address: str, sock: socket.socket, wire: Wire, *, request_timeout_seconds: float
    ) -> None:
        self.address = address
        self.wire = wire
        self._socket = sock
        self._request_timeout_seconds = request_timeout_seconds
        self._unsent: deque[memoryview] = deque()
        self._replies: deque[Reply[Any]] = deque()  # Any: each waits for a type of its own
        self._writable = trio.Event()  # there is something for the writer to write
        self._drained = trio.Event()  # there is nothing left to write
        self._drained.set()
        self._closing = trio.Event()
        self._closed: str | None = None

    @property
    def is_closed(self) -> bool:
        return self._closed is not None

    def version(self, request: type[Message]) -> int:
        """The version in which a request of this type travels; see `Wire.version`."""
        return self.wire.version(request)

    @property
    def features(self) -> Mapping[str, int]:
        """What the cluster can do, by Kafka's names, and at which level."""
        return self.wire.features

    def speaks(self, request: type[Message]) -> bool:
        """Whether the broker answers requests of this type."""
        return self.wire.speaks(request)

    def lost(self) -> ConnectionError:
        """The error for those who still waited."""
        return ConnectionError(f"{self.address}: {self._closed}")

    async def request(
        self, message: Message, answer: type[R], *, patience_seconds: float = 0.0
    ) -> R:
        """Send, and wait for the answer. See the module on cancellation."""
        reply = await self.send(message, answer, patience_seconds=patience_seconds)
        return await reply.wait()

    async def send(
        self, message: Message, answer: type[R], *, patience_seconds: float = 0.0
    ) -> Reply[R]:
        """Send; the answer is waited for on what is returned.

        Waits while earlier requests have not all been handed to the kernel: that is the
        back-pressure. Cancelled there, nothing has been sent. `patience_seconds` is how long the
        broker is allowed to hold the request back, on top of the usual timeout.
        """
        await self._wait_drained()
        return self._send(self.wire.request(message), answer, patience_seconds)

    def _send(self, frame: bytes, answer: type[R], patience_seconds: float = 0.0) -> Reply[R]:
        due = trio.current_time() + self._request_timeout_seconds + patience_seconds
        reply = Reply(self, answer, due)
        self._replies.append(reply)
        self._write(frame)
        return reply

    async def send_unanswered(self, message: Message) -> None:
        """Send a request that gets no answer by its nature (produce with acks=0)."""
        await self._wait_drained()
        self._write(self.wire.request(message, is_answered=False))

    async def _wait_drained(self) -> None:
        while self._unsent and not self.is_closed:
            await self._drained.wait()
        if self.is_closed:
            raise self.lost()

    def _write(self, frame: bytes) -> None:
        sent = 0
        try:
            sent = self._socket.send(frame)
        except BlockingIOError:
            pass
        except OSError as error:
            self.close(error.strerror or str(error))
            return
        if sent < len(frame):
            self._unsent.append(memoryview(frame)[sent:])
            self._drained = trio.Event()
            self._writable.set()

    def close(self, why: str = "the connection was closed") -> None:
        """Close it now; everything that waits on it is told `why`. Closing twice is nothing."""
        if self.is_closed:
            return
        self._closed = why
        trio.lowlevel.notify_closing(self._socket)
        self._socket.close()
        self._unsent.clear()
        self._writable.set()
        self._drained.set()
        self._closing.set()
        while self._replies:
            self._replies.popleft().settle(None)

    async def write_until_closed(self) -> None:
        """Write what the kernel did not take at once; the connection's own task."""
        while not self.is_closed:
            await self._writable.wait()
            self._writable = trio.Event()
            try:
                while self._unsent:
                    await trio.lowlevel.wait_writable(self._socket)
                    self._send_unsent()
            except trio.ClosedResourceError:
                return
            except OSError as error:
                self.close(error.strerror or str(error))
            self._drained.set()

    def _send_unsent(self) -> None:
        while self._unsent:
            data = self._unsent.popleft()
            try:
                sent = self._socket.send(data)
            except BlockingIOError:
                sent = 0
            if sent < len(data):
                self._unsent.appendleft(data[sent:])
                return

    async def read_until_closed(self) -> None:
        """Read answers and hand them out; the connection's own task."""
        while not self.is_closed:
            try:
                await trio.lowlevel.wait_readable(self._socket)
                messages = self._receive()
            except trio.ClosedResourceError:
                return
            except OSError as error:
                self.close(error.strerror or str(error))
                return
            except ProtocolError as error:
                self.close(f"what it sent is not Kafka's protocol: {error}")
                return
            for message in messages:
                self._replies.popleft().settle(message)

    def _receive(self) -> list[Message]:
        try:
            count = self._socket.recv_into(self.wire.space())
        except BlockingIOError:
            return []
        if count == 0:
            self.close("the broker closed the connection")
            return []
        return self.wire.received(count)

    async def negotiate(self) -> None:
        """Find the common versions; before anything else is sent."""
        frame: bytes | None = self.wire.hello()
        while frame is not None:
            answer = await self._send(frame, ApiVersionsResponse).wait()
            frame = self.wire.settle_versions(answer)

    async def close_when_unanswered(self) -> None:
        """Close when the oldest request is overdue; the connection's own task.

        One look at a time costs nothing per request, where a timeout around each would.
        """
        while not self.is_closed:
            now = trio.current_time()
            due = self._replies[0].due if self._replies else now + self._request_timeout_seconds
            if due <= now:
                self.close(f"no answer within {self._request_timeout_seconds:g} s")
                return
            with trio.move_on_at(due):
                await self._closing.wait()


async def serve_connection(
    host: str,
    port: int,
    settings: ClientSettings,
    *,
    task_status: trio.TaskStatus[Connection] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Connect, find the versions, and run the connection until it is closed or cancelled.

    For `nursery.start`, which gives the connection back ready for requests. Until then it raises:
    `OSError` if the broker cannot be reached or does not speak the protocol, in one line that names
    the address. Afterwards it raises nothing.
    """
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    sock = await _connect(host, port, address, settings.connect_timeout_seconds)
    wire = Wire(
        settings.client_id,
        software_version=__version__,
        frame_bytes_max=settings.frame_bytes_max,
        version_max=settings.version_max,
    )
    connection = Connection(
        address, sock, wire, request_timeout_seconds=settings.request_timeout_seconds
    )
    failure: OSError | None = None
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(connection.read_until_closed)
            nursery.start_soon(connection.write_until_closed)
            nursery.start_soon(connection.close_when_unanswered)
            # Kept out of the nursery, which would wrap it in an exception group.
            failure = await _introduce(connection, settings.connect_timeout_seconds)
            if failure is None:
                task_status.started(connection)
            else:
                nursery.cancel_scope.cancel()
    finally:
        connection.close()
    if failure is not None:
        raise failure


async def _introduce(connection: Connection, timeout_seconds: float) -> OSError | None:
    """Find out which versions both sides speak; what went wrong, if it did."""
    try:
        with trio.move_on_after(timeout_seconds):
            await connection.negotiate()
            return None
    except OSError as error:
        return error
    except RequestError as error:
        return ConnectionError(f"{connection.address}: {error}")
    return TimeoutError(f"{connection.address}: no answer to ApiVersions in {timeout_seconds:g} s")


async def _connect(host: str, port: int, address: str, timeout_seconds: float) -> socket.socket:
    """A connected, non-blocking socket."""
    with trio.move_on_after(timeout_seconds):
        try:
            stream = await trio.open_tcp_stream(host, port)
        except OSError as error:
            raise ConnectionError(f"cannot connect to {address}: {_reason(error)}") from error
        # The stream made the choice among the addresses; from here on the socket is read into
        # buffers of our own and written without a checkpoint, which a trio socket does not do.
        sock = socket.socket(fileno=stream.socket.detach())
        sock.setblocking(False)
        return sock
    raise TimeoutError(f"cannot connect to {address}: no answer within {timeout_seconds:g} s")


def _reason(error: BaseException) -> str:
    """The system's words for a failed connection, without the list of every attempt."""
    if isinstance(error, BaseExceptionGroup):
        return _reason(error.exceptions[0])
    if isinstance(error, socket.gaierror):
        return error.strerror or str(error)
    if isinstance(error, OSError) and error.errno is not None:
        return os.strerror(error.errno)
    return str(error) if error.__cause__ is None else _reason(error.__cause__)
