"""One socket between brokers: frames in, frames out, and one end.

It knows nothing of who is on the other side and what is said. Whatever goes wrong ends this socket
and tells its owner once.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable
from select import EPOLLERR, EPOLLHUP, EPOLLRDHUP
from typing import Final, Protocol

from tidemark.broker.metrics.peer_counts import PeerEnd, PeerMetrics
from tidemark.broker.network.odd_events import OddEvents
from tidemark.broker.network.reactor import READABLE, WRITABLE, Reactor
from tidemark.broker.network.receive_buffer import MemoryBudget, ReceiveBuffer
from tidemark.broker.network.same_machine import send_unpaced_if_near
from tidemark.broker.network.send_queue import TURN_BYTES_MAX, CopyingSendQueue, SendQueue
from tidemark.broker.network.turn import Turn
from tidemark.broker.network.wire import Wire
from tidemark.broker.peers.encoding import Frame
from tidemark.broker.peers.outbox import Outbox
from tidemark.protocol.errors import MalformedMessage, ProtocolError
from tidemark.protocol.values import dataclass

# Before it is known who is there.
FIRST_FRAME_BYTES_MAX: Final = 64 * 1024
# What a broker that does not read may cost in memory; and in segments held on the disk, where one
# that has been away for long may find much of every log on its way.
_UNSENT_MEMORY_BYTES_MAX: Final = 64 * 1024 * 1024
_UNSENT_BYTES_MAX: Final = 16 * 1024 * 1024 * 1024
CALLS_BYTES_MAX: Final = _UNSENT_MEMORY_BYTES_MAX // 2
"""Large calls and answers must not take the room of what groups say: too much ends the connection,
and a client, who has these made, could have it end again and again."""
SMALL_CALL_BYTES_MAX: Final = 64 * 1024
# Sent bytes that the other side does not acknowledge for so long break the connection. The kernel
# alone would try for a quarter of an hour, ever more rarely, and not notice that a network is back.
_UNACKNOWLEDGED_MS: Final = 4_000
_KEEPALIVE_SECONDS: Final = 2
# What the kernel takes beyond what is on its way. The rest waits here, where the urgent overtakes.
_KERNEL_UNSENT_BYTES: Final = 256 * 1024
GONE: Final = EPOLLERR | EPOLLHUP


@dataclass(frozen=True, slots=True)
class SocketServices:
    """What all sockets between brokers share."""

    reactor: Reactor
    turn: Turn
    metrics: PeerMetrics
    odd_events: OddEvents
    logger: logging.Logger


class SocketOwner(Protocol):
    """Who knows what is said on a socket. Both are called inside a turn."""

    def take(self, frame: memoryview) -> None:
        """A frame without its length, valid until the call returns. May raise `ProtocolError`."""

    def ended(self, end: PeerEnd, reason: str) -> None:
        """The socket is closed; `reason` is for people."""


class FrameSocket:
    """A connected, non-blocking socket. It is served from when it is made until it is closed."""

    __slots__ = (
        "_buffer",
        "_descriptor",
        "_flush_is_due",
        "_frame_bytes_max",
        "_interest",
        "_is_blocked",
        "_is_frozen",
        "_is_paused",
        "_out",
        "_outbox",
        "_owner",
        "_services",
        "_socket",
        "_wire",
        "address",
        "is_closed",
    )

    def __init__(
        self, connected: socket.socket, owner: SocketOwner, services: SocketServices
    ) -> None:
        """`connected` may have failed already: then it ends at the first event."""
        self.address = _address_of(connected)
        self.is_closed = False
        self._owner = owner
        self._services = services
        self._socket = connected
        self._wire: Wire = connected  # what frames go through: the socket, or TLS over it
        self._descriptor = connected.fileno()
        self._outbox = Outbox()
        # A leader whose followers are sent its files' pages has to go on in new files, which costs
        # more than a copy for each of them.
        self._out: SendQueue = CopyingSendQueue()
        self._frame_bytes_max = FIRST_FRAME_BYTES_MAX
        self._buffer = _buffer(FIRST_FRAME_BYTES_MAX)
        self._flush_is_due = False
        self._is_blocked = False  # the kernel takes no more for now
        self._is_paused = False
        self._is_frozen = False
        self._interest = READABLE
        _set_options(connected)
        services.reactor.add(self._descriptor, READABLE, self._on_ready)

    @property
    def unsent_bytes(self) -> int:
        return self._outbox.size_bytes + self._out.size_bytes

    def _is_full(self) -> bool:
        memory_bytes = self._outbox.memory_bytes + self._out.memory_bytes
        return memory_bytes > _UNSENT_MEMORY_BYTES_MAX or self.unsent_bytes > _UNSENT_BYTES_MAX

    def has_room_for_call(self, size_bytes: int) -> bool:
        """Whether a call or an answer of that size goes with what is unsent."""
        memory_bytes = self._outbox.memory_bytes + self._out.memory_bytes
        is_small = size_bytes <= SMALL_CALL_BYTES_MAX
        return is_small or memory_bytes + size_bytes <= CALLS_BYTES_MAX

    def accept_frames(self, frame_bytes_max: int) -> None:
        """From now on take frames of this size: it is known who is there.

        Raises `MalformedMessage` if more came before that was said.
        """
        if not self._buffer.is_empty:
            raise MalformedMessage("more was said before the Hello was answered")
        self._buffer = _buffer(frame_bytes_max)

    def send(self, frame: Frame) -> None:
        """Queue a frame; it is sent once the turn is over. Too much unsent ends the socket."""
        if self.is_closed or self._is_frozen or self._is_full():
            frame.release()
            return
        self._outbox.add(frame)
        if self._is_full():
            # Not at once: who sends is in the middle of something.
            self._services.turn.after(self._overflow)
        elif not self._flush_is_due:
            self._flush_is_due = True
            self._services.turn.after(self._flush_in_turn)

    def pause(self) -> None:
        """Hand no more frames over. That the other side has gone is still noticed."""
        self._is_paused = True
        self._update_interest()

    def resume(self) -> None:
        self._is_paused = False
        self._guarded(self._take_frames)
        self._update_interest()

    def freeze(self) -> None:
        """For tests: be deaf and dumb, as behind a cut cable. All that is left is to close it."""
        if not (self.is_closed or self._is_frozen):
            self._is_frozen = True
            self._services.reactor.remove(self._descriptor)

    def send_rest(self) -> None:
        """Before closing: give the kernel what it takes at once."""
        if not (self.is_closed or self._is_frozen):
            self._guarded(self._flush)

    def close(self, end: PeerEnd, reason: str) -> None:
        """Doing it twice is allowed; the owner hears of the first time."""
        if self.is_closed:
            return
        self.is_closed = True
        if not self._is_frozen:
            self._services.reactor.remove(self._descriptor)
        self._wire.close()
        self._buffer.release()
        self._outbox.release()
        self._out.release()
        self._services.metrics.ended[end].inc()
        self._services.turn.run(lambda: self._owner.ended(end, reason))

    def refuse_input(self, error: ProtocolError) -> None:
        """What came is not what brokers say: hang up, and say why."""
        if not self.is_closed:
            self._services.odd_events.warn(
                "bad input of brokers", "closing the connection of %s: %s", self.address, error
            )
            self.close(PeerEnd.BAD_INPUT, str(error))

    def _overflow(self) -> None:
        self.close(PeerEnd.OVERFLOW, f"{self.unsent_bytes} bytes are unsent: it does not read")

    def _on_ready(self, events: int) -> None:
        if events & GONE:
            self.close(PeerEnd.BY_PEER, self._error())
            return
        if events & WRITABLE:
            self._guarded(self._flush)
        if events & READABLE and not (self.is_closed or self._is_paused):
            self._guarded(self._receive)
        elif events & EPOLLRDHUP:
            self.close(PeerEnd.BY_PEER, "it has closed the connection")

    def _error(self) -> str:
        code = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        return os.strerror(code) if code else "it has closed the connection"

    def _guarded(self, action: Callable[[], None]) -> None:
        """Run what may fail by the other side's doing, the network's or ours: the firewall."""
        try:
            action()
        except Exception as error:
            self._end_by(error)

    def _end_by(self, error: Exception) -> None:
        """To be called where it is being handled."""
        match error:
            case ProtocolError():
                self.refuse_input(error)
            case OSError():
                self.close(PeerEnd.BY_PEER, error.strerror or str(error))
            case _:
                self._services.logger.exception("closing the connection of %s", self.address)
                self.close(PeerEnd.ERROR, repr(error))

    def _receive(self) -> None:
        try:
            received = self._buffer.receive(self._wire)
        except BlockingIOError:
            return
        # Its budget is its own, so there is always room for a frame.
        assert received is not None
        if received == 0:
            self.close(PeerEnd.BY_PEER, "it has closed the connection")
            return
        self._services.metrics.received_bytes.inc(received)
        self._take_frames()

    def _take_frames(self) -> None:
        """Hand over what has arrived; the owner may pause or close in the middle of it."""
        while not (self._is_paused or self.is_closed or self._is_frozen):
            frame = self._buffer.next_frame()
            if frame is None:
                return
            self._services.metrics.received_frames.inc()
            self._owner.take(frame)

    def _flush_in_turn(self) -> None:
        self._flush_is_due = False
        if not (self.is_closed or self._is_frozen or self._is_blocked):
            self._guarded(self._flush)

    def _flush(self) -> None:
        left, is_gone = TURN_BYTES_MAX, True
        while is_gone and left > 0 and (self._outbox or self._out):
            self._services.metrics.sent_frames.inc(self._outbox.fill(self._out))
            before = self._out.size_bytes
            is_gone = self._out.send(self._wire)
            sent = before - self._out.size_bytes
            self._services.metrics.sent_bytes.inc(sent)
            left -= sent
        self._is_blocked = bool(self._outbox or self._out)
        self._update_interest()

    def _update_interest(self) -> None:
        interest = EPOLLRDHUP if self._is_paused else READABLE
        if self._is_blocked:
            interest |= WRITABLE
        if interest != self._interest and not (self.is_closed or self._is_frozen):
            self._interest = interest
            self._services.reactor.change(self._descriptor, interest)


def _buffer(frame_bytes_max: int) -> ReceiveBuffer:
    # Twice: the largest frame may begin behind others, and buffers grow in steps.
    return ReceiveBuffer(
        frame_bytes_max=frame_bytes_max, budget=MemoryBudget(2 * frame_bytes_max + 1024 * 1024)
    )


def _set_options(connected: socket.socket) -> None:
    connected.setblocking(False)
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, True)
    for option, value in (
        (socket.TCP_NODELAY, True),
        (socket.TCP_USER_TIMEOUT, _UNACKNOWLEDGED_MS),
        (socket.TCP_KEEPIDLE, _KEEPALIVE_SECONDS),
        (socket.TCP_KEEPINTVL, 1),
        (socket.TCP_NOTSENT_LOWAT, _KERNEL_UNSENT_BYTES),
    ):
        connected.setsockopt(socket.IPPROTO_TCP, option, value)
    send_unpaced_if_near(connected)


def _address_of(connected: socket.socket) -> str:
    try:
        host, port = connected.getpeername()[:2]
    except OSError:
        return "a lost connection"
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
