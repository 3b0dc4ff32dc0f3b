"""What clients may do, as the cluster's metadata say it, and what they have used up of it here.

Each broker counts by itself, as Kafka's do. A client that is over its quota is answered at once,
with the time for which it is to hold back (KIP-219), and for that time its connection is not read.
Its fetches bring nothing while it is in debt, so that a new connection is of no use, either; what
it produces is taken, and adds to the debt.

While nobody has a quota, requests pass by here: `is_on` is all that they look at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

import trio

from tidemark.broker.access.access import ANONYMOUS
from tidemark.broker.metrics.quota_counts import QuotaMetrics
from tidemark.broker.quotas.token_bucket import TokenBucket
from tidemark.partitions.state_machines.client_quotas import ClientQuotas, QuotaKey
from tidemark.partitions.state_machines.cluster import ClusterState

if TYPE_CHECKING:
    from tidemark.broker.network.requests import Session

CLIENTS_MAX: Final = 10_000
"""Clients that are remembered at most. Client ids are whatever clients say: those that have used
nothing lately are forgotten first."""

NAMES_CHARS_MAX: Final = 1_000_000
"""Of their users and client ids together: one of those may have 32 kB."""

_Shared: TypeAlias = tuple[QuotaKey, str | None, str | None]


class Cluster(Protocol):
    """The cluster's metadata."""

    @property
    def state(self) -> ClusterState: ...

    def when_changed(self, callback: Callable[[], None]) -> None: ...


class Meter:
    """What one client is measured by; it shares some of it with others."""

    __slots__ = ("fetch", "produce", "request")

    def __init__(
        self,
        produce: TokenBucket | None,
        fetch: TokenBucket | None,
        request: TokenBucket | None,
    ) -> None:
        self.produce = produce
        self.fetch = fetch
        self.request = request


class Quotas:
    """The quotas of a broker's clients. Used on the loop's thread."""

    def __init__(
        self,
        cluster: Cluster,
        metrics: QuotaMetrics,
        *,
        burst_seconds: float,
        request_throttle_max_seconds: float,
    ) -> None:
        self.metrics = metrics
        self.request_throttle_max_seconds = request_throttle_max_seconds
        self.is_on = False
        """Whether anybody has a quota."""
        self._cluster = cluster
        self._burst_seconds = burst_seconds
        self._followed: tuple[ClientQuotas, int] | None = None
        self._meters: dict[tuple[str, str], Meter | None] = {}
        self._meters_chars = 0
        self._buckets: dict[_Shared, TokenBucket] = {}
        self._when_changed: list[Callable[[], object]] = []
        cluster.when_changed(self._follow)
        self._follow()

    def when_changed(self, callback: Callable[[], object]) -> None:
        """Call it whenever somebody's quotas are other ones."""
        self._when_changed.append(callback)

    def meter(self, session: Session, client_id: str | None) -> Meter | None:
        """What that client is measured by; `None` if it has no quota."""
        client = (session.user or ANONYMOUS, client_id or "")
        try:
            return self._meters[client]
        except KeyError:
            return self._new_meter(client)

    def is_fetched_out(self, session: Session, client_id: str | None) -> bool:
        """Whether that client has fetched so much that it gets nothing for now."""
        if not self.is_on:
            return False
        meter = self.meter(session, client_id)
        return (
            meter is not None
            and meter.fetch is not None
            and meter.fetch.debt_seconds(trio.current_time()) > 0
        )

    def fetch_bytes_max(self, session: Session, client_id: str | None, asked: int) -> int:
        """How much a fetch may bring: not more at once than may be had in a burst."""
        meter = self.meter(session, client_id) if self.is_on else None
        if meter is None or meter.fetch is None:
            return asked
        return min(asked, int(meter.fetch.burst))

    def _new_meter(self, client: tuple[str, str]) -> Meter | None:
        if len(self._meters) >= CLIENTS_MAX or self._meters_chars > NAMES_CHARS_MAX:
            self._forget_meters()
            self._forget_idle()
        buckets = [self._bucket(key, *client) for key in QuotaKey]
        meter = Meter(*buckets) if any(buckets) else None
        self._meters[client] = meter
        self._meters_chars += _chars(*client)
        return meter

    def _forget_meters(self) -> None:
        self._meters.clear()
        self._meters_chars = 0

    def _bucket(self, key: QuotaKey, user: str, client_id: str) -> TokenBucket | None:
        limit = self._cluster.state.quotas.limit(key, user, client_id)
        if limit is None:
            return None
        rate = limit.rate / 100 if key is QuotaKey.REQUEST_PERCENTAGE else limit.rate
        shared: _Shared = (key, *limit.shared_by)
        bucket = self._buckets.get(shared)
        if bucket is None or bucket.rate != rate:
            bucket = TokenBucket(rate, self._burst_seconds, trio.current_time())
            self._buckets[shared] = bucket
        return bucket

    def _forget_idle(self) -> None:
        now = trio.current_time()
        used = {key: each for key, each in self._buckets.items() if not each.is_full(now)}
        # Whoever is still too many has been in debt under many names: the oldest are let off.
        kept, chars = list[tuple[_Shared, TokenBucket]](), 0
        for shared, bucket in reversed(list(used.items())[-CLIENTS_MAX:]):
            chars += _chars(*shared[1:])
            if chars > NAMES_CHARS_MAX:
                break
            kept.append((shared, bucket))
        self._buckets = dict(reversed(kept))

    def _follow(self) -> None:
        quotas = self._cluster.state.quotas
        now_followed = (quotas, quotas.revision)
        if self._followed is not None and (
            self._followed[0] is quotas and self._followed[1] == quotas.revision
        ):
            return
        self._followed = now_followed
        self.is_on = bool(quotas.values)
        self._forget_meters()
        if not self.is_on:
            self._buckets.clear()
        elif len(self._buckets) > CLIENTS_MAX or _chars_of(self._buckets) > NAMES_CHARS_MAX:
            # With the meters goes the count by which it is known that there are too many.
            self._forget_idle()
        for callback in self._when_changed:
            callback()


def _chars_of(buckets: Iterable[_Shared]) -> int:
    return sum(_chars(*shared[1:]) for shared in buckets)


def _chars(*names: str | None) -> int:
    return sum(len(name) for name in names if name)
