"""Broker processes that are forks of one that has imported everything.

Nine tenths of what a broker's start costs are imports, and the tests start hundreds. A fork is as
much a process as any: it has its own memory, descriptors and fate. What is about the command, its
environment and its limits, starts the command (`tests/system/test_serve.py`).
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import wait
from multiprocessing.reduction import DupFd
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, Final

from tidemark.cli.main import run

_CONTEXT: Final = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tests.forked", "tidemark.cli.broker", "tidemark.broker.server"])
# Two threads that look at once whether a process has ended would take its status from each other.
_STATUS = threading.Lock()


class Forked:
    """As much of `subprocess.Popen` as is needed, for a `tidemark` command line."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        stderr: IO[bytes],
        environment: Mapping[str, str] | None = None,
        directory: Path | None = None,
    ) -> None:
        assert command[:3] == [sys.executable, "-m", "tidemark.cli.main"]
        output, theirs = os.pipe()
        self.stdout = os.fdopen(output, "rb")
        self.args = command
        given = dict(os.environ if environment is None else environment)
        self._process = _CONTEXT.Process(
            target=_run,
            args=(
                command[3:],
                str(directory or Path.cwd()),
                given,
                _Sent(theirs),
                _Sent(stderr.fileno()),
            ),
            daemon=True,
        )
        with _STATUS:
            self._process.start()
        os.close(theirs)
        assert self._process.pid is not None
        self.pid = self._process.pid

    @property
    def returncode(self) -> int | None:
        return self.poll()

    def poll(self) -> int | None:
        with _STATUS:
            return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        wait([self._process.sentinel], timeout)
        status = self.poll()
        if status is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return status

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def end(self) -> None:
        """Kill it, if it is still there, and let go of it."""
        self.kill()
        self.wait()
        self.stdout.close()


def outcome(
    command: Sequence[str], *, directory: Path | None = None, seconds_max: float = 60
) -> tuple[int, list[str]]:
    """The exit status of a command that ends by itself, and what it says on standard error.

    On standard output it says nothing.
    """
    with TemporaryFile() as log:
        process = Forked(command, stderr=log, directory=directory)
        try:
            status = process.wait(seconds_max)
            assert not process.stdout.read()
        finally:
            process.end()
        log.seek(0)
        return status, log.read().decode().splitlines()


class _Sent:
    """A descriptor that goes to the new process."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def __reduce__(self) -> tuple[Any, ...]:  # Any: what pickle takes
        return _received, (DupFd(self._fd),)


def _received(sent: Any) -> int:  # Any: the library's own class, without a name
    fd: int = sent.detach()
    return fd


def _run(
    arguments: Sequence[str],
    directory: str,
    environment: Mapping[str, str],
    stdout: int,
    stderr: int,
) -> None:
    for number, given in ((1, stdout), (2, stderr)):
        os.dup2(given, number)
        os.close(given)
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    sys.exit(run(arguments))
