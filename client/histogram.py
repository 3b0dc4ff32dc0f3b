"""A histogram of times with the same relative precision over its whole range (after HdrHistogram).

Up to 256 ns each value has a slot of its own; from there on every power of two is cut into 128
slots, so that what is read out is at most 1/128 above what was recorded. Slots are made as they
are hit: a run's histogram has some hundred of them. Two of them add up to that of both, which
percentiles do not.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Final

from tidemark.protocol.values import dataclass

_BITS: Final = 7
PRECISION: Final = 1 / (1 << _BITS)
"""The largest relative error of a value that is read out."""
PERCENTILES: Final = (50.0, 90.0, 99.0, 99.9, 99.99)


@dataclass(slots=True)
class Histogram:
    """Counts of values: integers that are not negative, nanoseconds by convention."""

    counts: Counter[int] = field(default_factory=Counter)
    max: int = 0

    @property
    def total(self) -> int:
        return self.counts.total()

    def record(self, value: int) -> None:
        """Count `value`; one below zero, which a clock may give, counts as zero."""
        self.counts[slot_of(value)] += 1
        if value > self.max:
            self.max = value

    def add(self, other: "Histogram") -> None:
        self.counts.update(other.counts)
        self.max = max(self.max, other.max)

    def percentile(self, percent: float) -> int:
        """The least value that at least `percent` of the recorded ones are not above.

        Read as the end of its slot, so never too small. Raises `ValueError` if there are none.
        """
        total = self.total
        if not total:
            raise ValueError("no value was recorded")
        wanted = percent / 100 * total
        passed = 0
        for slot in sorted(self.counts):
            passed += self.counts[slot]
            if passed >= wanted - 1e-9:
                return min(end_of(slot) - 1, self.max)
        return self.max

    def percentiles(self) -> Iterator[tuple[float, int]]:
        """Those of `PERCENTILES` that have a value above them: of 500 values there is no p99.9."""
        total = self.total
        for percent in PERCENTILES:
            if total * (100 - percent) / 100 >= 1:
                yield percent, self.percentile(percent)

    def curve(self) -> Iterator[tuple[int, float]]:
        """Each slot's largest value with the share of values up to there: what is drawn."""
        total, passed = self.total, 0
        for slot in sorted(self.counts):
            passed += self.counts[slot]
            yield min(end_of(slot) - 1, self.max), passed / total

    def to_json(self) -> dict[str, object]:
        slots = " ".join(f"{slot}:{count}" for slot, count in sorted(self.counts.items()))
        return {"max": self.max, "slots": slots}

    @classmethod
    def from_json(cls, document: Mapping[str, object]) -> "Histogram":
        """Raises `ValueError` for what `to_json` has not made."""
        slots, largest = document.get("slots"), document.get("max")
        if not isinstance(slots, str) or not isinstance(largest, int):
            raise ValueError("a histogram has `slots` and a `max`")
        pairs = (entry.split(":") for entry in slots.split())
        return cls(Counter({int(slot): int(count) for slot, count in pairs}), largest)


def slot_of(value: int) -> int:
    if value < 2 << _BITS:
        return max(0, value)
    shift = value.bit_length() - (_BITS + 1)
    return (shift << _BITS) + (value >> shift)


def end_of(slot: int) -> int:
    """The least value that is above the slot."""
    if slot < 2 << _BITS:
        return slot + 1
    shift = (slot >> _BITS) - 1
    return (slot - (shift << _BITS) + 1) << shift
