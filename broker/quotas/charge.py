"""One request of a client that has quotas: what it costs, and what comes of that."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Final, TypeVar

import trio

from tidemark.broker.metrics.quota_counts import Throttled
from tidemark.broker.quotas.quotas import Meter, Quotas
from tidemark.protocol.messages.fetch import FetchRequest, FetchResponse
from tidemark.protocol.messages.produce import ProduceRequest
from tidemark.protocol.registry import APIS, api_of
from tidemark.protocol.schema import Message

if TYPE_CHECKING:
    from tidemark.broker.network.requests import Session
    from tidemark.protocol.frames import ApiCodec

R = TypeVar("R", bound=Message)

_PRODUCE: Final = api_of(ProduceRequest).key
_FETCH: Final = api_of(FetchRequest).key
_WAIT_SECONDS_MAX: Final = (2**31 - 1) / 1000
"""A response has no room for a longer time: 24 days. Who is still in debt then is held back again.
Rates of a byte a second are given to stop a client, and one large request of it is such a debt."""


@cache
def _can_say_so(api_key: int, version: int) -> bool:
    return any(
        field.name == "throttle_time_ms" and field.exists_in(version)
        for field in APIS[api_key].response.wire_fields
    )


class Charge:
    """From a request's coming to its answer; `settle` or `settle_unanswered` is called once."""

    __slots__ = ("_codec", "_meter", "_quotas", "_request_bytes", "_session", "busy_seconds")

    def __init__(
        self, quotas: Quotas, meter: Meter, session: Session, codec: ApiCodec, request_bytes: int
    ) -> None:
        self._quotas = quotas
        self._meter = meter
        self._session = session
        self._codec = codec
        self._request_bytes = request_bytes
        self.busy_seconds = 0.0
        """How long the broker has worked on it, and on nothing else."""

    def settle(self, response: R) -> R:
        """The response as it is to be sent: it says for how long the client is to hold back."""
        fetched = 0
        if isinstance(response, FetchResponse):
            fetched = sum(
                len(each.records or b"")
                for topic in response.responses
                for each in topic.partitions
            )
        wait = self._take(fetched)
        if wait == 0:
            return response
        self._session.hold_back(wait)
        if not _can_say_so(self._codec.api.key, self._codec.version):
            return response
        changed = {"throttle_time_ms": max(1, round(wait * 1000))}
        return replace(response, **changed)  # type: ignore[type-var]  # messages are dataclasses

    def settle_unanswered(self) -> None:
        if wait := self._take(0):
            self._session.hold_back(wait)

    def add(self, seconds: float) -> None:
        """More of the broker's time, behind its settling: the client hears of it with its next."""
        if self._meter.request is not None:
            self._meter.request.take(seconds, trio.current_time())

    def _take(self, fetched_bytes: int) -> float:
        """Count the request; the seconds to hold its client back, the longest of its quotas'."""
        meter, metrics = self._meter, self._quotas.metrics
        key, now = self._codec.api.key, trio.current_time()
        waits: dict[Throttled, float] = {}
        if key == _PRODUCE and meter.produce is not None:
            waits[Throttled.PRODUCE] = meter.produce.take(self._request_bytes, now)
        if key == _FETCH and meter.fetch is not None:
            waits[Throttled.FETCH] = meter.fetch.take(fetched_bytes, now)
        if meter.request is not None:
            # Not longer at a time, as in Kafka: who is still in debt then is held back again.
            waits[Throttled.REQUEST] = min(
                meter.request.take(self.busy_seconds, now),
                self._quotas.request_throttle_max_seconds,
            )
        wait, why = max(((wait, why) for why, wait in waits.items()), default=(0.0, None))
        wait = min(wait, _WAIT_SECONDS_MAX)
        if why is not None and wait > 0:
            metrics.throttled[why].inc()
            metrics.throttle_ms[why].inc(round(wait * 1000))
        return wait
