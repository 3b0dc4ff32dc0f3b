"""A run that is told to end before its time ends in order, and what there is is judged."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

from tests.chaos.faults.fault import wait_until

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class Ending:
    """Whether one of the signals has come. The next one ends the run at once, unjudged."""

    def __init__(self) -> None:
        self.told_by = ""
        """The name of the signal; empty: none has come."""

    @contextmanager
    def listening(self) -> Iterator[None]:
        """On the main thread, which goes on with what it does when one comes."""
        before = {number: signal.signal(number, self._hear) for number in _SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        del frame
        self.told_by = signal.Signals(number).name
        for each in _SIGNALS:
            signal.signal(each, signal.default_int_handler)

    def sleep(self, seconds: float) -> None:
        """Or less, if it is told to end."""
        wait_until(lambda: bool(self.told_by), seconds)
