"""Faults as values: what happens to whom, when, and for how long.

A run's faults are its *tape*. Those at drawn times are on it from the start; one that answers
something the brokers did is put on it when it is drawn. Run again with its tape, and without
drawing, a run is the same; so a tape can be cut down to the faults that matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from random import Random
from typing import Any

from tidemark.protocol.types import NodeId
from tidemark.testing.simulator.knobs import Knobs
from tidemark.testing.simulator.randomness import stream
from tidemark.testing.simulator.shapes import AIMED, SHAPES


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault. What does not apply to its kind is left at its default."""

    at: float
    kind: str
    node: int = 0
    group: int = 0
    seconds: float = 0.0
    amount: float = 0.0
    links: tuple[tuple[int, int], ...] = ()
    why: str = ""
    """The moment that it answers; empty for one at a drawn time."""

    @property
    def name(self) -> str:
        """For random streams of its own: equal for the same fault in another run."""
        return f"{self.kind} {self.node} {self.at!r}"

    def __str__(self) -> str:
        whom = f" {self.node}" if self.node else ""
        links = " ".join(f"{source}>{target}" for source, target in self.links)
        return f"{self.kind}{whom} {links} for {self.seconds:.2f} s".replace("  ", " ")

    def to_json(self) -> dict[str, Any]:  # Any: JSON
        return {k: v for k, v in asdict(self).items() if v or k == "at"}


def timed_faults(seed: int, knobs: Knobs) -> list[Fault]:
    """The faults at drawn times; about a quarter of the time is spared."""
    if not knobs.fault_interval or not knobs.fault_kinds:
        return []
    rng = stream(seed, "faults")
    faults = []
    now = rng.expovariate(1 / knobs.fault_interval)
    while now < knobs.seconds:
        if int(now / 5) % 4 != 3:
            faults.append(draw_fault(rng, rng.choice(knobs.fault_kinds), now, knobs))
        now += rng.expovariate(1 / knobs.fault_interval)
    return faults


def draw_fault(
    rng: Random, kind: str, at: float, knobs: Knobs, *, node: NodeId | None = None, why: str = ""
) -> Fault:
    """A fault of that kind, of one of the brokers unless it is said of which."""
    nodes = [NodeId(number) for number in range(1, knobs.nodes + 1)]
    victim = rng.choice(nodes)
    if node is not None:
        victim = node
    return Fault(
        at=at,
        kind=kind,
        node=victim,
        group=rng.randrange(knobs.groups),
        seconds=rng.expovariate(1 / knobs.fault_seconds),
        amount=rng.random(),
        links=_links(rng, kind, nodes, victim),
        why=why,
    )


def _links(
    rng: Random, kind: str, nodes: Sequence[NodeId], victim: NodeId
) -> tuple[tuple[int, int], ...]:
    if len(nodes) < 2:
        return ()
    if kind in AIMED:
        return tuple(AIMED[kind](rng, nodes, victim))
    if kind == "cut":
        return tuple(SHAPES[rng.choice(list(SHAPES))](rng, nodes))
    if kind == "clog":
        source, target = rng.sample(nodes, 2)
        return ((source, target),)
    return ()
