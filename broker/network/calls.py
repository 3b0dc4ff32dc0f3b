"""One request between its arrival and its answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, Final

from tidemark.broker.metrics import ApiMetrics, ConnectionEnd
from tidemark.broker.network.error_responses import error_response
from tidemark.broker.network.odd_events import OddEvents
from tidemark.broker.network.requests import FrameHandler, Handler, Pending, Unanswerable
from tidemark.broker.network.send_queue import Part
from tidemark.broker.quotas.charge import Charge
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.frames import ApiCodec
from tidemark.protocol.registry import Api
from tidemark.protocol.schema import Message
from tidemark.protocol.values import dataclass


@dataclass(frozen=True, slots=True)
class Route:
    """One version of one API, as this broker serves it."""

    codec: ApiCodec
    handle: Handler
    is_async: bool
    is_seen_by_next: bool
    """Whether what a connection asks next is only looked at once this is answered."""
    knows_frames: FrameHandler | None
    """The handler, if it may do without the request's being decoded."""
    metrics: ApiMetrics
    odd_events: OddEvents

    @property
    def api(self) -> Api:
        return self.codec.api


class Call:
    """A request that was understood, and is not answered at once, or a run of such requests. Its
    connection sends `parts` when its turn comes.

    It is settled once: `parts` is the response, or `end` says that there can be none and why
    the connection has to be closed. If that is not at once, `when_settled` is called then.
    """

    __slots__ = (
        "_came_at",
        "_correlation_id",
        "_pending",
        "charge",
        "count",
        "end",
        "parts",
        "route",
        "when_settled",
    )

    def __init__(
        self, route: Route, correlation_id: int, came_at: float, *, count: int = 1
    ) -> None:
        self.route = route
        self.count = count
        """How many requests these are, one behind the other, that are answered together."""
        self._correlation_id = correlation_id
        self._came_at = came_at
        self._pending: Pending[Any] | None = None  # Any: of whichever API it is
        self.charge: Charge | None = None
        """What it costs a client that has quotas."""
        self.parts: list[Part] | None = None
        self.end: ConnectionEnd | None = None
        self.when_settled: Callable[[], None] | None = None

    @property
    def is_settled(self) -> bool:
        return self.parts is not None or self.end is not None

    def answer(self, response: Message) -> None:
        try:
            if self.charge is not None:
                response = self.charge.settle(response)
                began_at = perf_counter()
            parts = self.route.codec.encode_response(response, self._correlation_id)
            if self.charge is not None:
                self.charge.add(perf_counter() - began_at)
        except Exception:
            # Our bug, perhaps met in a callback of the disk's or of a timer: it ends here.
            self._report_bug("the response of %s %d cannot be encoded")
            self.end = ConnectionEnd.BAD_INPUT
        else:
            self.parts = parts  # type: ignore[assignment]  # records not in memory are log slices
        self._settled()

    def _settled(self) -> None:
        self.route.metrics.latency.observe(perf_counter() - self._came_at, self.count)
        if self.when_settled is not None:
            self.when_settled()

    def fail(self, error: Exception) -> None:
        """Answer with `error`, or close the connection; to be called where it is being handled."""
        self.route.metrics.errors.inc()
        if isinstance(error, RequestError):
            refusal = error
        elif isinstance(error, Unanswerable):
            self._refuse(error.end)
            return
        else:
            self._report_bug("%s %d failed")
            refusal = RequestError(ErrorCode.UNKNOWN_SERVER_ERROR)
        response = error_response(self.route.api.response, refusal)
        if response is None:
            self._refuse(ConnectionEnd.BAD_INPUT)
        else:
            self.answer(response)

    def _refuse(self, end: ConnectionEnd) -> None:
        self.end = end
        if self.when_settled is not None:
            self.when_settled()

    def _report_bug(self, message: str) -> None:
        codec = self.route.codec
        self.route.odd_events.warn(
            "failed requests", message, codec.api.name, codec.version, error=True
        )

    def wait_for(self, pending: Pending[Any]) -> None:  # Any: of whichever API it is
        self._pending = pending
        pending.deliver_to(self._take)

    def _take(self, response: Message | list[Part] | None, error: Exception | None) -> None:
        self._pending = None  # It knows this one: only a collection would find the two.
        if error is not None:
            self.fail(error)
        elif isinstance(response, list):
            self.parts = response
            self._settled()
        elif response is not None:
            self.answer(response)

    def abandon(self) -> None:
        """The connection is gone: nobody will send the answer."""
        self.when_settled = None
        if self._pending is not None:
            self._pending.abandon()
        self.release()

    def release(self) -> None:
        _release(self.parts or ())
        self.parts = None


class Answered:
    """Requests that were answered at once, and whose answers wait for those before them."""

    __slots__ = ("count", "parts")

    end: Final = None

    def __init__(self, parts: list[Part], count: int) -> None:
        self.parts = parts
        self.count = count

    def abandon(self) -> None:
        _release(self.parts)


def _release(parts: Sequence[Part]) -> None:
    for part in parts:
        if not isinstance(part, bytes):
            part.release()
