"""Log lines: to standard error, for people on a terminal and as JSON elsewhere.

Import this module before anything imports structlog: structlog's `dev` loads rich if it can, for
tracebacks that are not used here, and that is a third of its memory and half of its time.
"""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, TextIO


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


with _without_rich():
    import structlog

_LEVELS: Final = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}


class _IntoStructlog(logging.Handler):
    """Shows what libraries log with the standard library as lines like our own."""

    def emit(self, record: logging.LogRecord) -> None:
        logger = structlog.get_logger(record.name)
        logger.log(record.levelno, record.getMessage(), exc_info=record.exc_info)


def configure_logs(level: str, format: str, stream: TextIO) -> None:
    """Set up logging for this process: what `tidemark serve` does first.

    `level` and `format` are the settings `logging.level` and `logging.format`. Being the
    process's own, this is for the command alone; a broker inside somebody's process logs as that
    process wishes.
    """
    threshold = _LEVELS[level]
    is_console = format == "console" or (format == "auto" and stream.isatty())
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=not is_console),
            *(_for_people(stream) if is_console else _for_machines()),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=structlog.PrintLoggerFactory(stream),
        cache_logger_on_first_use=True,
    )
    logging.basicConfig(level=threshold, handlers=[_IntoStructlog()], force=True)


def _for_people(stream: TextIO) -> list[structlog.typing.Processor]:
    formatter = structlog.dev.plain_traceback
    return [structlog.dev.ConsoleRenderer(colors=stream.isatty(), exception_formatter=formatter)]


def _for_machines() -> list[structlog.typing.Processor]:
    return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(default=str)]
