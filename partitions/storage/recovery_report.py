"""What opening a log came to."""

from typing import Final

from tidemark.protocol.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """Where a torn tail began: of `path` everything from `position` on was no batch."""

    path: str
    position: int
    what: str
    is_older: bool = False
    """Or what an older segment has left in its file: nothing is lost with it."""


@dataclass(slots=True, kw_only=True)
class RecoveryReport:
    """What opening a log took and changed."""

    clean: bool = False
    """It ended at its recovery point: nothing was checked, nothing cut."""
    checked_batches: int = 0
    checked_bytes: int = 0
    cut: Cut | None = None
    cut_bytes: int = 0
    removed_segments: int = 0
    """Behind the cut, whole."""


_USUAL: Final = (RecoveryReport(clean=True), RecoveryReport())


def shared(report: RecoveryReport) -> RecoveryReport:
    """An equal report that thousands of logs share, if there was nothing to recover."""
    return next((usual for usual in _USUAL if usual == report), report)
