"""Log lines about what clients do wrong, which must not become a second attack: a few of each
kind a minute, and then how many were left out.
"""

import logging
import time
from collections.abc import Callable
from typing import Final

LINES_PER_PERIOD: Final = 5
PERIOD_SECONDS: Final = 60.0


class OddEvents:
    """Logs warnings, at most a few of one kind in a period."""

    def __init__(
        self, logger: logging.Logger, *, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._logger = logger
        self._now = now
        self._periods: dict[str, tuple[float, int]] = {}

    def warn(self, kind: str, message: str, *arguments: object, error: bool = False) -> None:
        """Log `message`, with the traceback of the exception being handled if `error`.

        `kind` is one of a few constants: what is limited together.
        """
        now = self._now()
        since, count = self._periods.get(kind, (now, 0))
        if now - since >= PERIOD_SECONDS:
            if count > LINES_PER_PERIOD:
                self._logger.warning("%s: %d more were not logged", kind, count - LINES_PER_PERIOD)
            since, count = now, 0
        self._periods[kind] = (since, count + 1)
        if count < LINES_PER_PERIOD:
            self._logger.log(
                logging.ERROR if error else logging.WARNING, message, *arguments, exc_info=error
            )
