"""Why a group rebalanced: the last few times, and as long as its coordinator lives."""

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from tidemark.protocol.values import dataclass

REBALANCES_KEPT: Final = 10
REASONS_KEPT: Final = 8
"""Reasons of one rebalance that are kept in words; the others are counted."""
_REASON_LENGTH_MAX: Final = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebalance:
    """How a generation (of the consumer protocol: an epoch of the group) came about."""

    generation: int
    at_ms: int
    """When the first of the reasons came up, since 1970."""
    reasons: tuple[str, ...]
    """In their order: the first began it, others came while it was under way."""
    more_reasons: int = 0


class History:
    """The last rebalances, the latest last."""

    def __init__(self) -> None:
        self._rebalances: deque[Rebalance] = deque(maxlen=REBALANCES_KEPT)

    @property
    def rebalances(self) -> Sequence[Rebalance]:
        return tuple(self._rebalances)

    def note(self, generation: int, at_ms: int, reason: str) -> None:
        """`reason` is part of what leads to `generation`."""
        reason = reason[:_REASON_LENGTH_MAX]
        last = self._rebalances[-1] if self._rebalances else None
        if last is None or last.generation != generation:
            self._rebalances.append(
                Rebalance(generation=generation, at_ms=at_ms, reasons=(reason,))
            )
        elif len(last.reasons) < REASONS_KEPT:
            self._rebalances[-1] = replace(last, reasons=(*last.reasons, reason))
        else:
            self._rebalances[-1] = replace(last, more_reasons=last.more_reasons + 1)
