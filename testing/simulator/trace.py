"""What happened, line by line, when someone wants to know."""

from __future__ import annotations

from collections import deque
from hashlib import blake2b
from typing import NamedTuple


class Line(NamedTuple):
    """One thing that happened. `node` is 0 for the world, and for clients."""

    time: float
    node: int
    topic: str
    """Of what kind: `fault`, `role`, `vote`, `append`, `commit`, `disk`, `client`."""
    text: str


class Trace:
    """The last lines, if they are wanted, and a digest of all that happened in any case.

    Two runs with the same digest were the same.
    """

    def __init__(self, lines_max: int = 0) -> None:
        self.lines: deque[Line] = deque(maxlen=lines_max)
        self.is_kept = lines_max > 0
        self._digest = blake2b(digest_size=8)

    @property
    def digest(self) -> str:
        return self._digest.hexdigest()

    def note(self, time: float, node: int, topic: str, text: str) -> None:
        """For the digest, and for whoever reads the trace. Only what is the same in each run."""
        self._digest.update(f"{time:.9f} {node} {topic} {text}\n".encode())
        if self.is_kept:
            self.lines.append(Line(time, node, topic, text))
