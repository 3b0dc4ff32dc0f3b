"""The steps of a plan: leaders' moves that are worth it together, as the search finds them."""

from tidemark.partitions.balancing.tally import Gains
from tidemark.protocol.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """One leader's move, and what the brokers were like just before it."""

    group: int
    source: int
    target: int
    gains: Gains
    counts: tuple[int, int]
    """Leaders of the source and of the target."""
    counts_of_topic: tuple[int, int]
    shares: tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Moves that are worth it together: one, two that change places, or a chain."""

    shifts: tuple[Shift, ...]
    gain: float
    """Below 0 where a broker is emptied at the price of evenness."""


def joined(steps: list[Step]) -> list[Step]:
    """Each group moves once, from its first place to its last, or not at all if they are the same.
    Steps that moved the same group become one."""
    owner: dict[int, int] = {}
    parent = list(range(len(steps)))

    def root(number: int) -> int:
        while parent[number] != number:
            number = parent[number]
        return number

    for number, step in enumerate(steps):
        for shift in step.shifts:
            earlier = root(owner.setdefault(shift.group, number))
            parent[max(earlier, root(number))] = min(earlier, root(number))
    together: dict[int, list[Step]] = {}
    for number, step in enumerate(steps):
        together.setdefault(root(number), []).append(step)
    joined = (some[0] if len(some) == 1 else _join(some) for some in together.values())
    return [step for step in joined if step.shifts]


def _join(steps: list[Step]) -> Step:
    shifts: dict[int, Shift] = {}
    for step in steps:
        for then in step.shifts:
            first = shifts.get(then.group)
            shifts[then.group] = then if first is None else _after(first, then)
    return Step(
        shifts=tuple(shift for shift in shifts.values() if shift.source != shift.target),
        gain=sum(step.gain for step in steps),
    )


def _after(first: Shift, then: Shift) -> Shift:
    """Both in one."""
    return Shift(
        group=first.group,
        source=first.source,
        target=then.target,
        gains=first.gains.plus(then.gains),
        counts=(first.counts[0], then.counts[1]),
        counts_of_topic=(first.counts_of_topic[0], then.counts_of_topic[1]),
        shares=(first.shares[0], then.shares[1]),
    )
