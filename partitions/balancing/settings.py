"""How the balancer weighs, and how gently it goes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace
from math import isfinite
from typing import Final

from tidemark.protocol.values import dataclass

_NO_BOUND: Final = 2**31
_NEVER_NEGATIVE: Final = (
    "cool_down_ms",
    "start_grace_ms",
    "full_patience_ms",
    "room_grace_ms",
    "lag_records_max",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """What each term of the objective is worth, in squared leaders. 0 leaves a term out.

    As they are, evenness in number comes first: no gain of rate or preference can pay for a leader
    too many. With `rate` at some hundreds, traffic comes first.
    """

    count: float = 1.0
    """Of the sum over the brokers of (its leaders - the mean) squared."""
    topic: float = 0.5
    """The same within each topic, summed over the topics."""
    rate: float = 1.0
    """Of the sum over the brokers of (its share of the traffic - the mean share) squared: 0 is
    even, 1 would be all on one of very many."""
    preferred: float = 0.5
    """Of the share of groups that their preferred leader could lead and does not, by the number of
    brokers. At 0.5 a group of mean traffic leaves its preferred leader for a broker that carries
    less by about half a broker's mean."""

    def __post_init__(self) -> None:
        _refuse(self._problems())

    def _problems(self) -> Iterator[str]:
        for name in self.__slots__:
            value = getattr(self, name)
            if not (isfinite(value) and value >= 0):
                yield f"weight {name} is {value}: it must be 0 (leave it out) or more"
        if not any(getattr(self, name) > 0 for name in self.__slots__):
            yield "all weights are 0: nothing would be worth a move; to stop it, turn it off"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The defaults are for a balancer that runs by itself. Raises `ValueError` with all that is
    wrong, a sentence each."""

    weights: Weights = field(default_factory=Weights)
    hysteresis: float = 0.05
    """By which fraction a measured share of the traffic may be wrong: a step is taken only if it
    makes things better even then. Brokers within about twice this of the mean are let be."""
    quiet_bytes_per_second: float = 1_000_000.0
    """Bytes a second of the whole cluster: of less traffic than this, shares are taken of this, so
    that a trickle moves nobody."""
    cool_down_ms: int = 60_000
    """Milliseconds for which a group is let be after its leader changed, whoever changed it, or
    after a move of it has failed."""
    start_grace_ms: int = 30_000
    """Milliseconds after a broker's start in which it is given no leaders and loses none."""
    full_patience_ms: int | None = 10_000
    """Milliseconds for which a broker's disk must have been full before its leaders leave it; None:
    they stay."""
    room_grace_ms: int = 300_000
    """Milliseconds after a disk has room again in which its broker is given no leaders and loses
    none: a disk that is full again and again is not to have leaders move to and fro."""
    moves_in_flight_max: int = 10
    """Groups whose leaders are on the move at a time, those of earlier plans included."""
    broker_moves_in_flight_max: int = 5
    """The same for each broker, coming and going together."""
    lag_records_max: int = 10_000
    """Records that a new leader may be behind the old one when the move begins. It catches up
    before the pause, so this is about time, not about safety."""

    def __post_init__(self) -> None:
        _refuse(self._problems())

    def _problems(self) -> Iterator[str]:
        if not 0 <= self.hysteresis < 1:
            yield f"hysteresis is {self.hysteresis}: it is a fraction, from 0 to below 1"
        if not (isfinite(self.quiet_bytes_per_second) and self.quiet_bytes_per_second > 0):
            yield f"quiet_bytes_per_second is {self.quiet_bytes_per_second}: it must be above 0"
        for name in _NEVER_NEGATIVE:
            if (getattr(self, name) or 0) < 0:
                yield f"{name} is {getattr(self, name)}: it cannot be negative"
        # A leader that changes places with another is on the move together with it.
        for name in ("moves_in_flight_max", "broker_moves_in_flight_max"):
            if getattr(self, name) < 2:
                yield f"{name} is {getattr(self, name)}: two leaders may have to change places"

    def without_bounds(self) -> Settings:
        """For a plan that goes all the way: what the cluster is to come to in the end."""
        return replace(self, moves_in_flight_max=_NO_BOUND, broker_moves_in_flight_max=_NO_BOUND)

    def without_waiting(self) -> Settings:
        """For who asks for it now: nobody is told to wait."""
        return replace(self, cool_down_ms=0, start_grace_ms=0, full_patience_ms=0, room_grace_ms=0)

    def for_drains(self) -> Settings:
        """Leaders that are to leave a drained broker wait for nothing, and leave no other one."""
        return replace(self.without_waiting(), full_patience_ms=None)


def _refuse(problems: Iterator[str]) -> None:
    if found := list(problems):
        raise ValueError("; ".join(found))
