"""What was sent, what was acknowledged, what was read back, and what that proves. Pure.

Records are numbered from 0 over all partitions; a record's value is its number, so that what comes
back says what it is. Time is an argument, in seconds.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

PADDING: Final = b" " + b"~" * 91
"""Behind each number, so that a record has about a hundred bytes."""

_PAUSE_SECONDS: Final = 0.05
"""Shorter ones are how acknowledgements come, and are not remembered."""


def value_of(number: int) -> bytes:
    return b"%08d" % number + PADDING


def number_in(value: bytes | None) -> int | None:
    """The number of a record that came back, or None if it is none of ours, byte for byte."""
    digits = (value or b"")[:8]
    if not digits.isdigit() or value != value_of(int(digits)):
        return None
    return int(digits)


class Pulse:
    """When one partition acknowledged something, and when it paused."""

    def __init__(self) -> None:
        self.last: float | None = None
        """The newest acknowledgement."""
        self._pauses: list[tuple[float, float]] = []

    def beat(self, now: float) -> None:
        if self.last is not None and now - self.last >= _PAUSE_SECONDS:
            self._pauses.append((self.last, now))
        self.last = now

    def longest_pause(self, now: float, *, since: float = float("-inf")) -> float:
        """The longest time without an acknowledgement, of those that ended after `since`.

        One that goes on counts up to now.
        """
        current = [] if self.last is None else [(self.last, now)]
        pauses = [end - start for start, end in (*self._pauses, *current) if end > since]
        return max(pauses, default=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The end of the story, in numbers."""

    sent: int
    acknowledged: int
    """The rest was given up: stored or not, nobody promised anything."""
    read: int
    lost: int
    """Acknowledged, and not found again at the offset that was acknowledged."""
    twice: int
    """Records that are in the log more than once, or were shown more than once."""
    out_of_order: int
    foreign: int
    """Values that nobody sent."""
    pause_seconds: float

    @property
    def is_good(self) -> bool:
        return not (self.lost or self.twice or self.out_of_order or self.foreign)

    def __str__(self) -> str:
        counts = {
            "sent": self.sent,
            "acknowledged": self.acknowledged,
            "read back": self.read,
            "lost": self.lost,
            "twice": self.twice,
            "out of order": self.out_of_order,
            "not ours": self.foreign,
        }
        lines = [f"{what:<14}{count:>9,}" for what, count in counts.items()]
        lines.append(f"{'longest pause':<14}{self.pause_seconds:>9.2f} s")
        verdict = (
            "Nothing was lost, nothing came twice." if self.is_good else "NOT what was promised."
        )
        return "\n".join([*lines, "", verdict])


class Ledger:
    """The books of one run; whoever sends, hears or reads a record writes it down here."""

    def __init__(self, partitions: Iterable[int]) -> None:
        self.pulses = {partition: Pulse() for partition in partitions}
        self.sent = 0
        self._acknowledged: dict[int, tuple[int, int]] = {}
        self._read: dict[int, tuple[int, int]] = {}
        self._newest = dict.fromkeys(self.pulses, -1)
        self._twice: set[int] = set()
        self._out_of_order = 0
        self._foreign = 0

    @property
    def acknowledged(self) -> int:
        return len(self._acknowledged)

    @property
    def read(self) -> int:
        return len(self._read)

    @property
    def is_all_read(self) -> bool:
        return self._acknowledged.keys() <= self._read.keys()

    def send(self) -> int:
        """The number of the record that is to be sent now."""
        self.sent += 1
        return self.sent - 1

    def acknowledge(self, number: int, partition: int, offset: int, now: float) -> None:
        self._acknowledged[number] = (partition, offset)
        self.pulses[partition].beat(now)

    def take(self, value: bytes | None, partition: int, offset: int) -> None:
        """A record was read."""
        number = number_in(value)
        if number is None or number >= self.sent:
            self._foreign += 1
            return
        if number in self._read:
            self._twice.add(number)
            return
        if number < self._newest[partition]:
            self._out_of_order += 1
        self._newest[partition] = number
        self._read[number] = (partition, offset)

    def longest_pause(self, now: float, *, since: float = float("-inf")) -> float:
        """The longest time in which some partition acknowledged nothing."""
        return max(pulse.longest_pause(now, since=since) for pulse in self.pulses.values())

    def close(self, pause_seconds: float) -> Outcome:
        """What it all proves, once everything that will be read has been."""
        return Outcome(
            sent=self.sent,
            acknowledged=self.acknowledged,
            read=self.read,
            lost=sum(self._read.get(number) != at for number, at in self._acknowledged.items()),
            twice=len(self._twice),
            out_of_order=self._out_of_order,
            foreign=self._foreign,
            pause_seconds=pause_seconds,
        )
