"""One client: bytes in, requests dispatched, answers out in the order of the requests.

What bounds it: at most `requests_max` requests unanswered and `response_bytes_max` bytes of
responses in memory; beyond either the client is not read until it has read. Its receive buffer
comes out of a budget that all share. Whatever goes wrong here ends this connection and no other.
"""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Callable
from errno import EIO
from functools import partial
from itertools import islice
from select import EPOLLERR, EPOLLHUP, EPOLLRDHUP
from time import perf_counter
from typing import TYPE_CHECKING, Final

from tidemark.broker.metrics import BadInput, ConnectionEnd
from tidemark.broker.network.calls import Answered, Call
from tidemark.broker.network.reactor import READABLE, WRITABLE
from tidemark.broker.network.receive_buffer import ReceiveBuffer
from tidemark.broker.network.requests import Line, NotNow, Session, Unanswerable
from tidemark.broker.network.send_queue import Part, SendQueue
from tidemark.broker.network.unread_answers import UNCOUNTED_BYTES, memory_bytes_of
from tidemark.broker.network.wire import Wire
from tidemark.partitions.storage.refusals import was_not_asked
from tidemark.protocol.errors import FrameTooLarge, ProtocolError, UnsupportedVersion
from tidemark.protocol.values import dataclass

if TYPE_CHECKING:
    from tidemark.broker.network.connections import Connections
    from tidemark.broker.network.timers import Timer

# Slices of files take no memory, but each holds its segment on the disk until it is sent.
_QUEUED_BYTES_MAX: Final = 64 * 1024 * 1024
_GONE: Final = EPOLLERR | EPOLLHUP
STRANGERS_FRAME_BYTES_MAX: Final = 64 * 1024
"""Of who has yet to prove who it is: room for the longest name of a client."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """What one connection may cost."""

    frame_bytes_max: int
    requests_max: int
    response_bytes_max: int


class Connection:
    """One client's socket. It belongs to a `Connections`, which knows what they share."""

    __slots__ = (
        "_awaited",
        "_calls",
        "_descriptor",
        "_flush_is_due",
        "_held_at",
        "_held_back",
        "_interest",
        "_is_blocked",
        "_is_starved",
        "_line",
        "_lined_bytes",
        "_out",
        "_owed",
        "_received",
        "_requests_max",
        "_response_bytes_max",
        "_shared",
        "_socket",
        "active_at",
        "is_closed",
        "received_bytes",
        "sent_bytes",
        "session",
        "unread_bytes",
        "was_active",
    )

    def __init__(self, client: socket.socket, session: Session, shared: Connections) -> None:
        self.session = session
        session.hold_back = self.hold_back
        session.on_admitted = self._take_large_frames
        self.is_closed = False
        self.was_active = False
        """Whether bytes have gone either way; for who looks after it, to see when that was."""
        self.active_at = shared.now
        """When they last had gone, as far as that was looked at."""
        self.received_bytes = 0
        """In all, since it came."""
        self.sent_bytes = 0
        self.unread_bytes = 0
        """In answers that are in memory, if they are many; they count with those of all others."""
        self._shared = shared
        self._requests_max = shared.limits.requests_max  # 0 once no more may be taken
        self._response_bytes_max = shared.limits.response_bytes_max
        self._socket: Wire = client
        self._descriptor = client.fileno()
        frame_bytes_max = shared.limits.frame_bytes_max
        if session.requires_sasl:
            frame_bytes_max = min(frame_bytes_max, STRANGERS_FRAME_BYTES_MAX)
        self._received = ReceiveBuffer(frame_bytes_max=frame_bytes_max, budget=shared.budget)
        # Requests whose answers have not been queued, in the order of their coming.
        self._calls: deque[Call | Answered] = deque()
        self._owed = 0  # how many requests these are: a call may be a run of them
        self._lined_bytes = 0  # of their answers that are there, but for the first one's
        self._awaited: Call | None = None  # nothing behind it is taken before it is settled
        self._out = SendQueue()
        self._flush_is_due = False
        self._is_blocked = False  # the socket takes no more for now
        self._is_starved = False  # there is no memory for what would be received
        self._line: Line | None = None  # where the next request waits until it may be taken
        self._held_at = 0.0  # when that one came
        self._held_back: Timer | None = None  # until when its client may ask for nothing
        self._interest = READABLE
        shared.reactor.add(self._descriptor, READABLE, self._on_ready)

    @property
    def is_admitted(self) -> bool:
        """Whether it is known who the client is, as far as that is asked."""
        return self.session.is_admitted

    @property
    def owes_answers(self) -> bool:
        """Whether requests are being worked on."""
        return bool(self._calls)

    @property
    def has_unsent(self) -> bool:
        return bool(self._out)

    @property
    def holds_memory(self) -> bool:
        """Whether its receive buffer takes some of the budget."""
        return self._received.is_large

    @property
    def _has_room(self) -> bool:
        """Whether another request may be taken."""
        out = self._out
        return (
            self._owed < self._requests_max
            and self._line is None
            and (self._awaited is None or self._awaited.is_settled)
            and out.memory_bytes + self._lined_bytes < self._response_bytes_max
            and (not self.unread_bytes or not self._shared.unread.is_full)
            and out.size_bytes < _QUEUED_BYTES_MAX
        )

    def _on_ready(self, events: int) -> None:
        if events & _GONE:
            self.close(ConnectionEnd.BY_CLIENT)
            return
        if events & EPOLLRDHUP and self._held_back is not None:
            self._take_again()  # It has hung up: what it said is worked off, and that is the end.
        if events & WRITABLE:
            self._guarded(self._flush)
        if events & READABLE and not self.is_closed:
            try:
                self._receive()
            except Exception as error:
                self._end_by(error)

    def _guarded(self, action: Callable[[], None]) -> None:
        """Run what may fail by the client's doing, by the network's or by ours: the firewall."""
        try:
            action()
        except Exception as error:
            self._end_by(error)

    def _end_by(self, error: Exception) -> None:
        """To be called where it is being handled."""
        match error:
            case FrameTooLarge():
                self._refuse(BadInput.FRAME_TOO_LARGE, error)
            case UnsupportedVersion():
                self._refuse(BadInput.UNSUPPORTED_VERSION, error)
            case ProtocolError():
                self._refuse(BadInput.MALFORMED_MESSAGE, error)
            case Unanswerable():
                self._warn("unanswerable requests", error)
                self.close(error.end)
            case OSError() if was_not_asked(error) or error.errno == EIO:
                # Not of the socket: of a file that is sent from, or of a module that is imported.
                self._warn("answers that cannot be given now", error)
                self.close(ConnectionEnd.ERROR)
            case OSError():
                self.close(ConnectionEnd.BY_CLIENT)
            case _:
                self._warn("broken connections", error, is_bug=True)
                self.close(ConnectionEnd.ERROR)

    def _refuse(self, kind: BadInput, error: ProtocolError) -> None:
        self._shared.metrics.bad_input[kind].inc()
        self._warn(kind.value, error)
        self.close(ConnectionEnd.BAD_INPUT)

    def _warn(self, kind: str, error: Exception, *, is_bug: bool = False) -> None:
        self._shared.odd_events.warn(
            kind, "closing the connection of %s: %s", self.session.client_host, error, error=is_bug
        )

    def _receive(self) -> None:
        try:
            received = self._received.receive(self._socket)
        except BlockingIOError:
            return
        if received is None:
            self._is_starved = True
            self._shared.starve(self)
            self._update_interest()
        elif received == 0:
            self.close(ConnectionEnd.BY_CLIENT)
        else:
            if self.session.gathers:
                received += self._received.gather(self._socket)
            self.was_active = True
            self.received_bytes += received
            self._shared.metrics.received_bytes.value += received
            self._handle_frames()

    def feed(self) -> None:
        """Try again: there may be memory now."""
        if not self.is_closed:
            self._is_starved = False
            self._guarded(self._receive)
            self._update_interest()

    def _handle_frames(self, came_at: float | None = None) -> None:
        """Dispatch the requests that have arrived, as many as may be unanswered."""
        received, came_at = self._received, came_at or perf_counter()
        frames: list[memoryview] = []
        is_first = True
        while self._has_room:
            frames = frames or received.next_frames(self._requests_max - self._owed)
            if not frames:
                break
            try:
                count, answer = self._shared.dispatcher.dispatch(frames, self.session, came_at)
            except NotNow as held:
                self._line, self._held_at = held.line, came_at
                held.line.join(self, len(frames[0]))
                break
            del frames[:count]
            if answer is not None:
                if isinstance(answer, list) and not self._calls:
                    self._out.add(answer)
                    if self._out.memory_bytes > UNCOUNTED_BYTES:
                        self._count_unread()
                    if is_first and frames and self.session.one_batches is None:
                        # A client with several requests in flight sends the next one for it, while
                        # the others are worked on; else it and the broker would wait by turns. What
                        # a producer's next requests ask is done in no time.
                        self._send()
                else:
                    self._wait_in_line(answer, count)
                is_first = False
            if not frames and received.start == received.end:
                break
        if frames and not self.is_closed:
            received.put_back(frames)
        if self._out.size_bytes and not self._flush_is_due and not self._is_blocked:
            self._flush_later()  # or else when the socket takes more
        if not self._flush_is_due:
            self._update_interest()

    def go_on(self, *, may_be_held: bool) -> None:
        """Take the request that was held again; `may_be_held`: it may be held once more."""
        self._line = None
        self.session.may_be_held = may_be_held
        self._guarded(partial(self._handle_frames, self._held_at))

    def _wait_in_line(self, answer: Call | list[Part], count: int) -> None:
        """It is not there, or others are to be sent before it."""
        call = Answered(answer, count) if isinstance(answer, list) else answer
        if isinstance(call, Answered):
            self._lined_bytes += memory_bytes_of(call.parts)
            self._count_unread()
        self._calls.append(call)
        self._owed += count
        if isinstance(call, Call) and call.route.is_seen_by_next:
            self._awaited = call
        if isinstance(call, Answered) or call.is_settled:
            self._flush_later()
        else:
            call.when_settled = self._flush_later

    def _flush_later(self) -> None:
        """Send once the turn is over, all that it brought together."""
        if not self._flush_is_due:
            self._flush_is_due = True
            self._shared.turn.after(self._flush_now)

    def _flush_now(self) -> None:
        self._flush_is_due = False
        if not self.is_closed:
            try:
                self._flush()
            except Exception as error:
                self._end_by(error)

    def _flush(self) -> None:
        if self._calls:
            self._queue_answers()
        self._send()
        if self._calls and (end := self._calls[0].end) is not None:
            self.close(end)
        elif self._received.start == self._received.end or not self._has_room:
            self._update_interest()
        else:
            # It may have been stopped by its limits with requests left in the buffer.
            self._handle_frames()

    def _send(self) -> None:
        before = self._out.size_bytes
        self._is_blocked = not self._out.send(self._socket)
        if sent := before - self._out.size_bytes:
            self.was_active = True
            self.sent_bytes += sent
            self._shared.metrics.sent_bytes.value += sent
            if self.unread_bytes:
                self._count_unread()

    def _count_unread(self) -> None:
        if self.is_closed:
            return
        unread = self._out.memory_bytes + self._lined_bytes
        if unread <= UNCOUNTED_BYTES:
            unread = 0
        self._shared.unread.size_bytes += unread - self.unread_bytes
        self.unread_bytes = unread

    def _queue_answers(self) -> None:
        """Move the answers that are next in order to the send queue."""
        calls = self._calls
        while calls and (parts := calls[0].parts) is not None:
            self._out.add(parts)
            self._owed -= calls.popleft().count
        if calls or self._lined_bytes:
            behind = islice(calls, 1, None)
            self._lined_bytes = sum(memory_bytes_of(each.parts) for each in behind if each.parts)
        if self._lined_bytes or self._out.memory_bytes > UNCOUNTED_BYTES:
            self._count_unread()

    def _update_interest(self) -> None:
        interest = READABLE if self._has_room and not self._is_starved else 0
        if self._is_blocked:
            interest |= WRITABLE
        if self._held_back is not None:
            interest |= EPOLLRDHUP  # Else it would not be seen before its time is over.
        if interest != self._interest and not self.is_closed:
            self._interest = interest
            self._shared.reactor.change(self._descriptor, interest)

    def _take_large_frames(self) -> None:
        self._received.accept_frames(self._shared.limits.frame_bytes_max)

    def hold_back(self, seconds: float) -> None:
        """Take no more requests for so long; twice at once, for the longer of the two."""
        timers = self._shared.timers
        until = timers.now() + seconds
        if self.is_closed or self._is_stopped:
            return
        if self._held_back is None:
            self._shared.metrics.quotas.held_back += 1
        elif self._held_back.deadline_seconds >= until:
            return
        else:
            self._held_back.cancel()
        self._requests_max = 0
        self._held_back = timers.at(until, self._take_again)

    def let_go_on(self) -> None:
        """If it is held back, for no longer."""
        if self._held_back is not None:
            self._take_again()

    def _take_again(self) -> None:
        self._end_hold_back()
        self._requests_max = self._shared.limits.requests_max
        self._guarded(self._handle_frames)

    def _end_hold_back(self) -> None:
        if self._held_back is not None:
            self._held_back.cancel()
            self._held_back = None
            self._shared.metrics.quotas.held_back -= 1

    @property
    def _is_stopped(self) -> bool:
        return self._requests_max == 0 and self._held_back is None

    def stop_reading(self) -> None:
        """Take no more requests; answer those that came."""
        self._end_hold_back()
        self._requests_max = 0
        self._update_interest()

    def shrink(self) -> None:
        """Let go of a receive buffer with nothing in it."""
        if self._received.is_empty:
            self._received.release()

    def close(self, reason: ConnectionEnd) -> None:
        """Close the socket and forget what was to be sent. Doing it twice is allowed."""
        if self.is_closed:
            return
        self.is_closed = self.session.is_over = True
        self._end_hold_back()
        self._requests_max = 0
        self._shared.reactor.remove(self._descriptor)
        self._socket.close()
        self._received.release()
        self._out.release()
        self._shared.unread.size_bytes -= self.unread_bytes
        self.unread_bytes = 0
        if self._line is not None:
            self._line.leave(self)
            self._line = None
        calls, self._calls = self._calls, deque()
        for call in calls:
            call.abandon()
        self._shared.forget(self, reason)
