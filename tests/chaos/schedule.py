"""What goes wrong when: drawn from a seed, or gone through one after the other.

A run is a sequence of rounds. In each some faults begin, last a while, and end; then the cluster
has a while to itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from random import Random
from typing import Final

from tests.chaos.faults import SERVED_BESIDE, disks, orders
from tests.chaos.faults.fault import Fault
from tests.chaos.faults.links import exactly
from tests.chaos.networks import Link, links_of

_QUIET_PROBABILITY: Final = 0.25
_SEVERAL_PROBABILITY: Final = 0.5
_FAULT_SECONDS: Final = (2.0, 8.0)
_REST_SECONDS: Final = (2.0, 6.0)
_STEP_SECONDS: Final = 3.0
_STEP_REST_SECONDS: Final = 1.0
_SYNCS: Final = 40


@dataclass(frozen=True, slots=True)
class Injection:
    """A fault by the name under which the report counts it."""

    kind: str
    fault: Fault


@dataclass(frozen=True, slots=True)
class Round:
    """Faults that overlap, how long they last, and how long the cluster rests afterwards."""

    faults: tuple[Injection, ...]
    seconds: float
    rest_seconds: float

    @property
    def is_served(self) -> bool:
        """Whether one broker alone is away, so that the others have to serve meanwhile."""
        return [each.kind in SERVED_BESIDE for each in self.faults] == [True]


def rounds(seed: int, faults: Mapping[str, Fault]) -> Iterator[Round]:
    """Rounds without end. The first ones have each kind once, alone, so that none is left out.

    After that a quarter have no fault at all, and half of the rest have several.
    """
    rng = Random(seed)
    kinds = [Injection(kind, fault) for kind, fault in faults.items()]
    for kind in rng.sample(kinds, len(kinds)):
        yield _drawn(rng, (kind,))
    while True:
        if rng.random() < _QUIET_PROBABILITY:
            yield _drawn(rng, ())
            continue
        several = rng.random() < _SEVERAL_PROBABILITY
        count = rng.randint(2, min(3, len(kinds))) if several and len(kinds) > 1 else 1
        yield _drawn(rng, tuple(rng.sample(kinds, count)))


def _drawn(rng: Random, faults: tuple[Injection, ...]) -> Round:
    return Round(faults, rng.uniform(*_FAULT_SECONDS), rng.uniform(*_REST_SECONDS))


def link_subsets(nodes: Sequence[int]) -> list[list[Link]]:
    links = links_of(nodes)
    return [
        [link for at, link in enumerate(links) if number & 1 << at]
        for number in range(1 << len(links))
    ]


def cuts(seed: int, nodes: Sequence[int]) -> Iterator[Round]:
    """Every subset of the directed links between the brokers, each once: of three brokers, 64."""
    subsets = link_subsets(nodes)
    Random(seed).shuffle(subsets)
    for subset in subsets:
        yield _step(f"{len(subset)} links cut", exactly(subset), _STEP_SECONDS)


def all_orders(seed: int, nodes: Sequence[int], *, with_power: bool) -> Iterator[Round]:
    """One killed, or without power, and the others paused, in every order."""
    steps = [
        (loses_power, order)
        for loses_power in ((False, True) if with_power else (False,))
        for order in permutations(nodes, orders.NODES)
    ]
    Random(seed).shuffle(steps)
    for loses_power, order in steps:
        kind = "power cut of one, pause others" if loses_power else "kill one, pause others"
        yield _step(kind, orders.in_order(order, loses_power=loses_power), 0.0)


def syncs(nodes: Sequence[int]) -> Iterator[Round]:
    """The first sync after a start fails, then the second, and so on, at each broker in turn."""
    for number in range(1, _SYNCS + 1):
        node = nodes[number % len(nodes)]
        yield _step("failing sync", disks.failing_at(node, number), 0.0)


def _step(kind: str, fault: Fault, seconds: float) -> Round:
    return Round((Injection(kind, fault),), seconds, _STEP_REST_SECONDS)


Schedule = Callable[[], Iterable[Round]]


def schedules(seed: int, nodes: Sequence[int], faults: Mapping[str, Fault]) -> dict[str, Schedule]:
    """By the names that `--schedule` takes. Only `random` has no end of its own."""
    with_power = "power cut of one, pause others" in faults
    found: dict[str, Schedule] = {
        "random": lambda: rounds(seed, faults),
        "cuts": lambda: cuts(seed, nodes),
    }
    if len(nodes) == orders.NODES:
        found["orders"] = lambda: all_orders(seed, nodes, with_power=with_power)
    if "failing sync" in faults:
        found["syncs"] = lambda: syncs(nodes)
    return found
