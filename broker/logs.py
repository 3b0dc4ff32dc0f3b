"""Log lines: to standard error, for people on a terminal and as JSON elsewhere.

The code logs with the standard library, as what it is built on does; structlog only gives the lines
their form. It is imported for the first line, and not before: it brings asyncio, and with rich
installed would bring that too, for tracebacks that are not used here.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TextIO

if TYPE_CHECKING:
    from structlog.stdlib import ProcessorFormatter
    from structlog.typing import Processor

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
    handler.setFormatter(
        _LazyFormatter(
            for_people=format == "console" or (format == "auto" and is_terminal),
            colors=is_terminal,
        )
    )
    logging.basicConfig(level=_LEVELS[level], handlers=[handler], force=True)


class _LazyFormatter(logging.Formatter):
    """structlog's formatter, made for the first line."""

    def __init__(self, *, for_people: bool, colors: bool) -> None:
        super().__init__()
        self._for_people = for_people
        self._colors = colors
        self._formatter: ProcessorFormatter | None = None

    def format(self, record: logging.LogRecord) -> str:
        # No lock: two threads that both make one make the same.
        if self._formatter is None:
            try:
                self._formatter = _make_formatter(for_people=self._for_people, colors=self._colors)
            except OSError:
                # Importing takes descriptors. What there is to say may well be that there are none.
                return super().format(record)
        return self._formatter.format(record)


def _make_formatter(*, for_people: bool, colors: bool) -> ProcessorFormatter:
    with _without_rich():
        import structlog

    render: list[Processor]
    if for_people:
        plain = structlog.dev.plain_traceback
        render = [structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=plain)]
    else:
        json = structlog.processors.JSONRenderer(default=str)
        render = [structlog.processors.format_exc_info, json]
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[
            structlog.stdlib.add_log_level,
            structlog.stdlib.add_logger_name,
            structlog.processors.TimeStamper(fmt="iso", utc=not for_people),
        ],
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *render],
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
