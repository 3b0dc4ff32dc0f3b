"""Messages between ends, which may be late, lost, doubled, and out of order.

A link is directed: what is done to the one from A to B says nothing about the one back.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import log
from random import Random
from typing import Final, TypeAlias

from tidemark.testing.checkers.violation import bounded
from tidemark.testing.simulator.events import EventQueue
from tidemark.testing.simulator.randomness import stream

End: TypeAlias = int | str
"""A broker by its node id, or a client by its name."""

IN_FLIGHT_MAX: Final = 20_000
LATE_SECONDS_MAX: Final = 10.0
_LATE_SHARE: Final = 0.2


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
    lateness: float = 0.0
    """Of messages that arrive much later, once."""
    capacity: int = 1_000
    """So many messages can be on the way; what is sent beyond them is lost."""
    in_order: bool = False


@dataclass(slots=True)
class _Link:
    source: End
    target: End
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
    late_until: float = 0.0
    """When the last of what was sent before it was calm arrives."""
    counts: Counts = field(default_factory=Counts)
    _links: dict[tuple[End, End], _Link] = field(default_factory=dict)
    _cuts: int = 0
    _clogged_until: float = 0.0

    def send(self, source: End, target: End, message: object) -> None:
        link = self._links.get((source, target)) or self.link(source, target)
        weather, rng = link.weather, link.rng
        self.counts.sent += 1
        if link.in_flight > IN_FLIGHT_MAX:
            where = f"{source} to {target}"
            bounded(link.in_flight, IN_FLIGHT_MAX, "messages on the way", where)
        if (
            link.cuts
            or link.in_flight >= weather.capacity
            # Drawn only where it can matter: most links lose and double nothing.
            or (weather.loss and rng.random() < weather.loss)
        ):
            self.counts.lost += 1
            return
        is_late = weather.lateness and rng.random() < weather.lateness
        self._put(link, message, rng.uniform(0, LATE_SECONDS_MAX) if is_late else 0.0)
        if weather.duplication and rng.random() < weather.duplication:
            self.counts.doubled += 1
            late = rng.random() < _LATE_SHARE
            self._put(link, message, rng.uniform(0, LATE_SECONDS_MAX if late else 0.05))

    def link(self, source: End, target: End) -> _Link:
        link = self._links.get((source, target))
        if link is None:
            is_client = isinstance(source, str) or isinstance(target, str)
            weather = self.client_weather if is_client else self.weather
            rng = stream(self.seed, f"link {source} {target}")
            link = self._links[source, target] = _Link(source, target, rng, weather)
        return link

    def cut(self, source: End, target: End) -> None:
        self.link(source, target).cuts += 1
        self._cuts += 1

    def mend(self, source: End, target: End) -> None:
        link = self.link(source, target)
        if link.cuts:
            link.cuts -= 1
            self._cuts -= 1

    def is_cut(self, source: End, target: End) -> bool:
        return self.link(source, target).cuts > 0

    @property
    def is_calm(self) -> bool:
        """Whether no link between brokers loses, is cut or clogged."""
        return not (self.weather.loss or self._cuts) and self._clogged_until <= self.queue.now

    def is_stopped(self, source: End, target: End) -> bool:
        """Whether nothing that is sent now arrives soon."""
        link = self.link(source, target)
        return link.cuts > 0 or link.clogged_until > self.queue.now

    def clog(self, source: End, target: End, until: float) -> None:
        """Nothing arrives before `until`; then all of it does."""
        link = self.link(source, target)
        link.clogged_until = max(link.clogged_until, until)
        self._clogged_until = max(self._clogged_until, until)

    def calm(self) -> None:
        """End all faults: links as a good local network has them, all mended.

        They are connections: where messages overtake each other, each costs a wait before it is
        sent again, and nobody promises how fast that gets on. So does each that finds no room.
        """
        self.weather = Weather(in_order=True)
        self.client_weather = self.weather  # of clients too that come only now
        for link in self._links.values():
            self.late_until = max(self.late_until, link.last_arrival)
            link.weather = self.weather
            link.cuts, link.clogged_until = 0, 0.0
            # They are made anew: nothing waits behind what is still late of the old ones.
            link.last_arrival = 0.0
        self._cuts, self._clogged_until = 0, 0.0

    def _put(self, link: _Link, message: object, extra_seconds: float) -> None:
        weather = link.weather
        time = self.queue.now + weather.latency_seconds + extra_seconds
        if weather.jitter_seconds:
            time -= log(1.0 - link.rng.random()) * weather.jitter_seconds
        if time < link.clogged_until:
            time = link.clogged_until
        if weather.in_order:
            time = max(time, link.last_arrival)
        if time > link.last_arrival:
            link.last_arrival = time
        link.in_flight += 1
        self.queue.at(time, self._arrive, link, message)

    def _arrive(self, link: _Link, message: object) -> None:
        link.in_flight -= 1
        if link.cuts:
            self.counts.lost += 1
            return
        self.counts.delivered += 1
        self.deliver(link.source, link.target, message)
