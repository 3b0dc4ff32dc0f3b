"""Log lines: to standard error, for people on a terminal and as JSON elsewhere.

The code logs with the standard library, as what it is built on does. Lines for people get their
form from structlog, which is imported for the first of them, and not before: it brings asyncio, and
with rich installed would bring that too, for tracebacks that are not used here. A JSON line is an
object of four members, for which a broker need not hold all that.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, TextIO

from tidemark.broker.late_imports import repeatable_imports

if TYPE_CHECKING:
    from structlog.stdlib import ProcessorFormatter

_LEVELS: Final = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}


def configure_logs(level: str, format: str, stream: TextIO) -> None:
    """Set up logging for this process: what `tidemark serve` does first.

    `level` and `format` are the settings `logging.level` and `logging.format`. Being the
    process's own, this is for the command alone; a broker inside somebody's process logs as that
    process wishes.
    """
    is_terminal = stream.isatty()
    handler = logging.StreamHandler(stream)
    for_people = format == "console" or (format == "auto" and is_terminal)
    handler.setFormatter(_LinesForPeople(colors=is_terminal) if for_people else _JsonLines())
    logging.basicConfig(level=_LEVELS[level], handlers=[handler], force=True)


class _JsonLines(logging.Formatter):
    """One object a line, as structlog would write it."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC)
        line = {
            "event": record.getMessage(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "timestamp": at.isoformat(timespec="microseconds").replace("+00:00", "Z"),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line)


class _LinesForPeople(logging.Formatter):
    """structlog's formatter, made for the first line."""

    def __init__(self, *, colors: bool) -> None:
        super().__init__()
        self._colors = colors
        self._formatter: ProcessorFormatter | None = None

    def format(self, record: logging.LogRecord) -> str:
        # No lock: two threads that both make one make the same.
        if self._formatter is None:
            try:
                self._formatter = _make_formatter(colors=self._colors)
            except OSError:
                # Importing takes descriptors. What there is to say may well be that there are none.
                return super().format(record)
        return self._formatter.format(record)


def _make_formatter(*, colors: bool) -> ProcessorFormatter:
    with _without_rich(), repeatable_imports():
        import structlog

    plain = structlog.dev.plain_traceback
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[
            structlog.stdlib.add_log_level,
            structlog.stdlib.add_logger_name,
            structlog.processors.TimeStamper(fmt="iso", utc=False),
        ],
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=plain),
        ],
    )


@contextmanager
def _without_rich() -> Iterator[None]:
    if "rich" in sys.modules:
        yield
        return
    # None in sys.modules makes `import rich` raise ImportError, which structlog expects.
    sys.modules["rich"] = None  # type: ignore[assignment] # documented: import then fails
    try:
        yield
    finally:
        del sys.modules["rich"]
