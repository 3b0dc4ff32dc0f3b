"""`tidemark serve`, as long as a test runs."""

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

READY = re.compile(
    r"ready node=(\d+) kafka=127\.0\.0\.1:(\d+) http=(none|127\.0\.0\.1:\d+)"
    r"(?: peers=127\.0\.0\.1:\d+)?(?: listeners=(\S+))?\n"
)
FREE_PORTS = ("--listen", "127.0.0.1:0", "--peer-listen", "127.0.0.1:0", "--http", "127.0.0.1:0")
SECONDS = 30


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "tidemark.cli.main", "serve", *arguments]


@contextlib.contextmanager
def running(
    folder: Path,
    *arguments: str,
    environment: dict[str, str] | None = None,
    within: Sequence[str] = (),
) -> Iterator[tuple[subprocess.Popen[str], re.Match[str]]]:
    """A broker in `folder` that has said that it is ready; killed if it is still there. `within`
    is a command that is to run it."""
    process = subprocess.Popen(
        [*within, *command(*arguments)],
        cwd=folder,
        env={**os.environ, **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        ready = READY.fullmatch(process.stdout.readline())
        assert ready is not None
        yield process, ready
    finally:
        process.kill()
        process.communicate(timeout=SECONDS)
