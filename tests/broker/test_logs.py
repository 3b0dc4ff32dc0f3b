"""Log lines as a process sees them."""

import json
import subprocess
import sys
from datetime import UTC, datetime

SCRIPT = """
import logging, sys
from tidemark.broker.logs import configure_logs
configure_logs({level!r}, {format!r}, sys.stderr)
print("structlog" in sys.modules)
log = logging.getLogger("here")
log.debug("too small")
log.info("opened %s", 1)
try: 1 / 0
except ZeroDivisionError: log.exception("failed")
logging.getLogger("library").warning("careful: %s", "hot")
print("rich" in sys.modules)
print("structlog" in sys.modules)
"""


def lines(level: str, format: str, *, with_structlog: bool) -> list[str]:
    script = SCRIPT.format(level=level, format=format)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    expected = f"False\nFalse\n{with_structlog}\n"
    assert done.stdout == expected, "neither structlog too early, nor rich, nor a line"
    return done.stderr.splitlines()


def test_away_from_a_terminal_each_line_is_json() -> None:
    opened, failed, library = map(json.loads, lines("info", "auto", with_structlog=False))
    assert opened.items() >= {"event": "opened 1", "logger": "here", "level": "info"}.items()
    assert "ZeroDivisionError" in failed["exception"]
    assert library.items() >= {"event": "careful: hot", "logger": "library"}.items()
    assert datetime.fromisoformat(library["timestamp"]).tzinfo is UTC


def test_for_people_lines_are_text_and_the_level_holds() -> None:
    text = "\n".join(lines("warning", "console", with_structlog=True))
    assert "opened" not in text
    assert "failed" in text
    assert "ZeroDivisionError" in text
