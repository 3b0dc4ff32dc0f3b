"""The heartbeats that this broker sends, and the news in them that are not yet confirmed.

For each peer there is a list of the groups whose news it may not have: what it leads or has led,
and how far that is committed. Everything on the list goes into every heartbeat until one of those
is acknowledged. So the work is that of what changed, and lost, doubled or late heartbeats do no
harm.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import field
from typing import Final

from tidemark.partitions.replication.peer_messages import GroupBeat, Heartbeat
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.types import NodeId
from tidemark.protocol.values import dataclass

_NEVER: Final = float("-inf")
_TIMES_MAX: Final = 2_000
"""Where confirmations are late, it is those of the oldest that come: as many as there may be in the
longest failure timeout."""
_COUNT_BITS: Final = 32
_BEATS_MAX: Final = 1_000
"""So much news may be on its way to a peer, each time that it was sent counted; after that the
next goes when some is confirmed. A thousand elections on brokers that are slow to read would else
be told again in every heartbeat, and keep them from reading."""


@dataclass(slots=True)
class _Link:
    """What goes to one peer, and what came from it."""

    sent: int
    taken_in: int = 0
    """The newest of its heartbeats that was read."""
    is_hurried: bool = False
    times: deque[tuple[int, float, int]] = field(default_factory=deque)
    """When the heartbeats that are not confirmed were sent, the last ones, with how much
    news each carried."""
    confirmed: float = _NEVER
    """When the newest one that is was sent."""
    news: dict[PartitionKey, int] = field(default_factory=dict)
    """Groups with news, by the heartbeat that carries the newest of them first."""


class Heartbeats:
    """For all peers. `beat_of` makes a group's news as they are now; `None`: it is gone."""

    def __init__(
        self, incarnation: int, beat_of: Callable[[PartitionKey], GroupBeat | None]
    ) -> None:
        self._incarnation = incarnation
        self._beat_of = beat_of
        self._links: dict[NodeId, _Link] = {}

    def add_news(self, key: PartitionKey, nodes: Iterable[NodeId]) -> None:
        """There is something new about the group that these have to know."""
        for node in nodes:
            link = self._link(node)
            news, carried_by = link.news, link.sent + 1
            if news.get(key) != carried_by:
                # At the end, even if it was there: what was put in first is confirmed first.
                news.pop(key, None)
                news[key] = carried_by

    def has_news(self, node: NodeId) -> bool:
        """Whether there are news that `node` has not confirmed."""
        return bool(self._link(node).news)

    def make(self, node: NodeId, now: float, *, metadata_version: int = -1) -> Heartbeat:
        """The next heartbeat for `node`."""
        link = self._link(node)
        link.sent += 1
        link.is_hurried = False
        beats = tuple(beat for beat in map(self._beat_of, link.news) if beat is not None)
        link.times.append((link.sent, now, len(beats)))
        if len(link.times) > _TIMES_MAX:
            link.times.popleft()
        return Heartbeat(
            incarnation=self._incarnation,
            sequence=link.sent,
            acknowledges=link.taken_in,
            metadata_version=metadata_version,
            groups=beats,
        )

    def is_to_wait(self, node: NodeId, now: float, at_most_seconds: float) -> bool:
        """Whether `node` has enough to read; but it hears something every `at_most_seconds`."""
        times = self._link(node).times
        return (
            bool(times)
            and now < times[-1][1] + at_most_seconds
            and sum(beats for _, _, beats in times) > _BEATS_MAX
        )

    def hurry(self, node: NodeId) -> None:
        """Have it hear soon that its last heartbeat was read."""
        self._link(node).is_hurried = True

    def is_hurried(self, node: NodeId) -> bool:
        return self._link(node).is_hurried

    def has_unsent_news(self, node: NodeId) -> bool:
        """Whether there are news that no heartbeat to `node` has carried."""
        news = self._link(node).news
        return bool(news) and next(reversed(news.values())) > self._link(node).sent

    def take_in(self, node: NodeId, heartbeat: Heartbeat) -> float | None:
        """Note what it confirms, and that it was read.

        When the newest heartbeat that it confirms was sent (-inf: none, or long ago); `None` if
        a newer one was read before, then this one says nothing.
        """
        link = self._link(node)
        if heartbeat.sequence <= link.taken_in:
            return None
        link.taken_in = heartbeat.sequence
        while link.times and link.times[0][0] <= heartbeat.acknowledges:
            link.confirmed = link.times.popleft()[1]
        if link.news and next(iter(link.news.values())) <= heartbeat.acknowledges:
            # Another table, for that of one that has held thousands stays as large.
            link.news = {
                key: carried_by
                for key, carried_by in link.news.items()
                if carried_by > heartbeat.acknowledges
            }
        return link.confirmed

    def restarted(self, node: NodeId) -> None:
        """Another process answers in its place: it counts from 1, and has confirmed nothing.

        Our own count goes on, so what the old one confirmed cannot be mistaken for its word.
        """
        link = self._link(node)
        link.taken_in, link.confirmed = 0, _NEVER
        link.times.clear()
        link.news = dict.fromkeys(link.news, link.sent + 1)

    def remove(self, node: NodeId) -> None:
        # The count is kept: should it come back, it would take smaller numbers for late.
        self._link(node).news.clear()

    def _link(self, node: NodeId) -> _Link:
        link = self._links.get(node)
        if link is None:
            # What confirms a heartbeat of this broker's last process confirms none of this one's.
            link = self._links[node] = _Link(self._incarnation << _COUNT_BITS)
        return link
