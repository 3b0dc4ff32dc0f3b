"""What a look at one broker of a path has shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

_CALLS_MIN: Final = 0.02
"""A call that comes more rarely than that is not told."""
ORDER: Final = (
    "small",
    "turn",
    "middle",
    "large",
    "synced",
    "fetch",
    "replicate",
    "many",
    "transaction",
)
"""Of the paths, as they are told."""
OTHER_THREADS: Final = "other threads: syncs, the journal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """As it is kept among the results."""

    path: str
    title: str
    """The path in words."""
    broker: str
    """`leader` or `follower`."""
    unit: str
    """What the figures are of: a request, a batch or a MB."""
    microseconds: float
    """Of processor time, of all threads."""
    loop_microseconds: float
    samples: int
    """Of the loop's thread."""
    steps: Mapping[str, float]
    """Their shares of the loop's time, the largest first."""
    calls: Mapping[str, float]
    """System calls, by name, as `strace` counts them in a run of its own; none where it is not."""

    @property
    def calls_text(self) -> str:
        return ", ".join(f"{call} {n:.2f}" for call, n in self.calls.items() if n >= _CALLS_MIN)

    def by_step(self) -> list[tuple[str, float]]:
        """Microseconds, the largest first; what other threads take is a step of its own."""
        found = {step: share * self.loop_microseconds for step, share in self.steps.items()}
        found[OTHER_THREADS] = self.microseconds - self.loop_microseconds
        return sorted(found.items(), key=lambda each: -each[1])
