"""One connection to one broker, on trio: requests go out at once, answers come back in their order.

A request never owns the socket. Its frame is written whole by whoever can (the caller if the
kernel takes it, else the connection's writer), and its answer is read by the connection's reader.
Hence *cancelling a request leaves the connection usable*: the broker still gets the request, and
the answer is dropped when it arrives. What makes a connection unusable closes it, and everything
that still waits on it gets a `ConnectionError` that says why. A request that stays unanswered too
long makes it unusable: answers come in order, so nothing behind it would ever be answered.
"""

import socket
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from ssl import SSLSocket
from typing import Any, Generic, TypeVar

import trio

from tidemark.client.security.sasl import Sasl, authenticate
from tidemark.client.wire import Wire
from tidemark.protocol.errors import ProtocolError
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
    """See the module. Made by `connecting.serve_connection`, which also runs it."""

    def __init__(
        self, address: str, sock: socket.socket, wire: Wire, *, request_timeout_seconds: float
    ) -> None:
        self.address = address
        self.wire = wire
        self._socket = sock
        # TLS receives more than it hands out; the rest does not make the socket readable again.
        self._pending = sock.pending if isinstance(sock, SSLSocket) else lambda: 0
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

    async def request_within(self, message: Message, answer: type[R], seconds: float) -> R:
        """As `request`; the connection is given up if there is no answer within so many seconds."""
        with trio.move_on_after(seconds):
            return await self.request(message, answer)
        self.close(f"no answer within {seconds:g} s")
        raise self.lost()

    async def send(
        self, message: Message, answer: type[R], *, patience_seconds: float = 0.0
    ) -> Reply[R]:
        """Send; the answer is waited for on what is returned.

        Waits while earlier requests have not all been handed to the kernel: that is the
        back-pressure. Cancelled there, nothing has been sent. `patience_seconds` is how long the
        broker is allowed to hold the request back, on top of the usual timeout.
        """
        await self.wait_drained()
        return self.send_now(message, answer, patience_seconds=patience_seconds)

    def send_now(
        self, message: Message, answer: type[R], *, patience_seconds: float = 0.0
    ) -> Reply[R]:
        """As `send`; only when `is_drained`. Raises `ConnectionError` if it is closed by then."""
        return self._send(self.wire.request(message), answer, patience_seconds)

    def _send(self, frame: bytes, answer: type[R], patience_seconds: float = 0.0) -> Reply[R]:
        due = trio.current_time() + self._request_timeout_seconds + patience_seconds
        reply = Reply(self, answer, due)
        self._replies.append(reply)
        self._write(frame)
        return reply

    async def send_unanswered(self, message: Message) -> None:
        """Send a request that gets no answer by its nature (produce with acks=0)."""
        await self.wait_drained()
        self.send_unanswered_now(message)

    def send_unanswered_now(self, message: Message) -> None:
        """As `send_unanswered`; only when `is_drained`."""
        self._write(self.wire.request(message, is_answered=False))

    @property
    def is_drained(self) -> bool:
        """Whether it is open, and all earlier requests have been handed to the kernel."""
        return not self._unsent and not self.is_closed

    async def wait_drained(self) -> None:
        """Until it is drained. Raises `ConnectionError` if it is closed."""
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

    async def wait_closed(self) -> None:
        """Until it is closed."""
        await self._closing.wait()

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
                if not self._pending():
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
            self.close(self.wire.hung_up)
            return []
        return self.wire.received(count)

    async def negotiate(self) -> None:
        """Find the common versions; before anything else is sent."""
        frame: bytes | None = self.wire.hello()
        while frame is not None:
            answer = await self._send(frame, ApiVersionsResponse).wait()
            frame = self.wire.settle_versions(answer)

    async def authenticate(self, sasl: Sasl) -> None:
        """Prove who one is; before anything that the broker does not tell everybody.

        Raises `RequestError` if it is not believed.
        """
        steps = authenticate(sasl)
        with suppress(StopIteration):
            ask = next(steps)
            while True:
                ask = steps.send(await self.request(*ask))

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
