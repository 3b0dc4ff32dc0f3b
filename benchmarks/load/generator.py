"""The side of a load generator that asks: see `process` for the other one."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

Said = Mapping[str, Any]  # JSON, as `process` says it


class GeneratorFailed(RuntimeError):
    """The load could not be made; the message is the generator's."""


class Generator:
    """One process, one task at a time."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    @contextmanager
    def task(self, **task: object) -> Iterator[Said]:
        """Open its connections; gives what it said when it was ready. Raises `GeneratorFailed`."""
        self.tell(task)
        ready: Said = self.hear()["ready"]
        yield ready
        self.tell({})

    def run(self, **run: object) -> Said:
        self.tell(run)
        return self.hear()

    def tell(self, what: Mapping[str, object]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(what) + "\n")
        self._process.stdin.flush()

    def hear(self) -> Said:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise GeneratorFailed("the load generator has ended; its errors are above")
        said: Said = json.loads(line)
        if "failed" in said:
            raise GeneratorFailed(said["failed"])
        return said


@contextmanager
def open_generator() -> Iterator[Generator]:
    command = [sys.executable, "-m", "benchmarks.load.process"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield Generator(process)
        finally:
            process.kill()
