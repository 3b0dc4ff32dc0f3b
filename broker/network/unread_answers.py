"""Answers in memory that clients have yet to read, of all connections together.

One connection has a limit of its own, which is generous. Hundreds that ask and do not read, each
within its limit, would have the kernel end the broker. So what they have is counted together. Once
that is too much, who has some of it gets no more before it has read, and who hardly reads has to go
(`Connections`). Who reads what it asks for is served all the while, one answer after the other.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tidemark.broker.network.send_queue import Part

UNCOUNTED_BYTES: Final = 16 * 1024
"""With so few, a connection has none: they would be counted with each answer, in each turn."""


class UnreadAnswers:
    """How many bytes they are."""

    __slots__ = ("bytes_max", "size_bytes")

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self.size_bytes = 0

    @property
    def is_full(self) -> bool:
        return self.size_bytes >= self.bytes_max


def memory_bytes_of(parts: Iterable[Part]) -> int:
    """What the parts of an answer take; those in files take nothing."""
    return sum(len(part) for part in parts if isinstance(part, bytes))
