"""Messages between ends, which may be late, lost, doubled, and out of order.

A link is directed: what is done to the one from A to B says nothing about the one back.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final, TypeAlias

from tidemark.testing.checkers.violation import bounded
from tidemark.testing.simulator.events import EventQueue
from tidemark.testing.simulator.randomness import stream

End: TypeAlias = int | str
"""A broker by its node id, or a client by its name."""

IN_FLIGHT_MAX: Final = 20_000
_LATE_SECONDS_MAX: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Weather:
    """How a link treats messages."""

    latency_seconds: float = 0.0005
    """The least that a message takes."""
    jitter_seconds: float = 0.0005
    """The mean of what it takes beyond that; messages overtake each other by it."""
    loss: float = 0.0
    duplication: float = 0.0
    """Of messages that arrive twice; some of the second ones much later."""
    capacity: int = 1_000
    """So many messages can be on the way; what is sent beyond them is lost."""
    in_order: bool = False


@dataclass(slots=True)
class _Link:
    rng: Random
    weather: Weather
    cuts: int = 0
    """How many of the partitions that are in force cut it."""
    clogged_until: float = 0.0
    in_flight: int = 0
    last_arrival: float = 0.0


@dataclass(slots=True)
class Counts:
    """What became of all messages."""

    sent: int = 0
    delivered: int = 0
    lost: int = 0
    doubled: int = 0


@dataclass(slots=True)
class Network:
    """All links. `deliver` gets each message that arrives, with its source and target."""

    queue: EventQueue
    seed: int
    deliver: Callable[[End, End, object], None]
    weather: Weather
    """Of links between brokers."""
    client_weather: Weather
    counts: Counts = field(default_factory=Counts)
    _links: dict[tuple[End, End], _Link] = field(default_factory=dict)

    def send(self, source: End, target: End, message: object) -> None:
        link = self.link(source, target)
        self.counts.sent += 1
        bounded(link.in_flight, IN_FLIGHT_MAX, "messages on the way", f"{source} to {target}")
        if (
            link.cuts
            or link.in_flight >= link.weather.capacity
            or self._happens(link.weather.loss, link)
        ):
            self.counts.lost += 1
            return
        self._put(source, target, link, message, 0.0)
        if self._happens(link.weather.duplication, link):
            self.counts.doubled += 1
            late = link.rng.random() < 0.2
            extra = link.rng.uniform(0, _LATE_SECONDS_MAX) if late else link.rng.random() * 0.05
            self._put(source, target, link, message, extra)

    def link(self, source: End, target: End) -> _Link:
        link = self._links.get((source, target))
        if link is None:
            is_client = isinstance(source, str) or isinstance(target, str)
            weather = self.client_weather if is_client else self.weather
            link = _Link(stream(self.seed, f"link {source} {target}"), weather)
            self._links[source, target] = link
        return link

    def cut(self, source: End, target: End) -> None:
        self.link(source, target).cuts += 1

    def mend(self, source: End, target: End) -> None:
        link = self.link(source, target)
        link.cuts = max(0, link.cuts - 1)

    def is_cut(self, source: End, target: End) -> bool:
        return self.link(source, target).cuts > 0

    def clog(self, source: End, target: End, until: float) -> None:
        """Nothing arrives before `until`; then all of it does."""
        link = self.link(source, target)
        link.clogged_until = max(link.clogged_until, until)

    def calm(self) -> None:
        """End all faults: links as a good local network has them, all mended.

        They are connections: where messages overtake each other, each costs a wait before it is
        sent again, and nobody promises how fast that gets on.
        """
        self.weather = replace(Weather(), capacity=self.weather.capacity, in_order=True)
        self.client_weather = self.weather  # of clients too that come only now
        for link in self._links.values():
            link.weather = self.weather
            link.cuts, link.clogged_until = 0, 0.0

    @staticmethod
    def _happens(probability: float, link: _Link) -> bool:
        # Drawn only where it can matter: most links lose and double nothing.
        return probability > 0 and link.rng.random() < probability

    def _put(
        self, source: End, target: End, link: _Link, message: object, extra_seconds: float
    ) -> None:
        weather = link.weather
        seconds = weather.latency_seconds + extra_seconds
        if weather.jitter_seconds:
            seconds += link.rng.expovariate(1 / weather.jitter_seconds)
        time = max(self.queue.now + seconds, link.clogged_until)
        if weather.in_order:
            time = max(time, link.last_arrival)
        link.last_arrival = time
        link.in_flight += 1

        def arrive() -> None:
            link.in_flight -= 1
            if link.cuts:
                self.counts.lost += 1
                return
            self.counts.delivered += 1
            self.deliver(source, target, message)

        self.queue.at(time, arrive)
