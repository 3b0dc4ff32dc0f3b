"""A broker in a process of its own, for what only a process can show: `kill -9`, start-up time,
memory, and benchmarks in which broker and load do not share an interpreter.

Blocking, so that scripts, benchmarks and synchronous tests use it as it is; from trio, run it in a
thread. The process is the real command, `tidemark serve`, and its ready line is the only thing that
is waited for.
"""

import re
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from tidemark.protocol.errors import TidemarkError

_READY = re.compile(
    r"^ready node=(\d+) kafka=(\S+) http=(\S+)(?: peers=(\S+))?(?: listeners=\S+)?$"
)


class BrokerDidNotStart(TidemarkError):
    """The process ended, or said nothing, before its ready line; the message quotes its log."""


class BrokerProcess:
    """`tidemark serve` on free ports of 127.0.0.1; it can be started again on the same data.

    `bootstrap`, `peers` and `http` are known once `start` has returned; a restart keeps the first
    two, so that clients and other brokers find the broker again.
    """

    def __init__(
        self,
        data_dir: Path,
        *,
        settings: Mapping[str, str] | None = None,
        arguments: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.data_dir = data_dir
        self.bootstrap = "127.0.0.1:0"
        self.peers = "127.0.0.1:0"
        self.http = "127.0.0.1:0"
        self._settings = dict(settings or {})
        self._arguments = list(arguments)
        self._environment = environment
        self._process: subprocess.Popen[bytes] | None = None
        self._log_path = data_dir.parent / f"{data_dir.name}.log"

    @property
    def pid(self) -> int:
        assert self._process is not None, "start() comes first"
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def log(self) -> str:
        """What the broker has written to standard error, over all its starts."""
        return self._log_path.read_text(errors="replace") if self._log_path.exists() else ""

    def command(self) -> list[str]:
        """The command line that `start` runs."""
        command = [sys.executable, "-m", "tidemark.cli.main", "serve"]
        command += ["--data-dir", str(self.data_dir), "--listen", self.bootstrap]
        command += ["--peer-listen", self.peers, "--http", "127.0.0.1:0", *self._arguments]
        for name, value in self._settings.items():
            command += ["--set", f"{name}={value}"]
        return command

    def start(self, *, timeout_seconds: float = 60) -> None:
        """Start the broker and return when it serves. Raises `BrokerDidNotStart`."""
        assert not self.is_running, "it runs already"
        if self._process is not None:
            self._forget()  # it has ended by itself
        with self._log_path.open("ab") as log:
            self._process = self._spawn(log)
        try:
            line = self._first_line(timeout_seconds)
        except BaseException:
            self.kill()
            raise
        match = _READY.match(line)
        if match is None:
            self.kill()
            raise BrokerDidNotStart(f"no ready line but {line!r}; it said:\n{self.log[-2000:]}")
        self.bootstrap, self.http = match[2], match[3]
        self.peers = match[4] or self.peers

    def kill(self) -> None:
        """`kill -9`: nothing is flushed, nothing is said."""
        self._end(signal.SIGKILL)

    def stop(self, *, timeout_seconds: float = 20) -> int:
        """A graceful stop; returns the exit status."""
        return self._end(signal.SIGTERM, timeout_seconds)

    def pause(self) -> None:
        """Freeze the process, as a stalled virtual machine would."""
        self._running().send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._running().send_signal(signal.SIGCONT)

    def wait(self, *, timeout_seconds: float) -> int:
        """Wait for the process to end by itself; returns its exit status."""
        status = self._running().wait(timeout_seconds)
        self._forget()
        return status

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._process is not None:
            self.kill()

    def _spawn(self, log: IO[bytes]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self.command(), stdout=subprocess.PIPE, stderr=log, env=self._environment
        )

    def _running(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "it does not run"
        return self._process

    def _end(self, how: signal.Signals, timeout_seconds: float = 20) -> int:
        process = self._running()
        process.send_signal(how)
        try:
            status = process.wait(timeout_seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
        finally:
            self._forget()
        return status

    def _forget(self) -> None:
        process = self._running()
        if process.stdout is not None:
            process.stdout.close()
        self._process = None

    def _first_line(self, timeout_seconds: float) -> str:
        """The first line of standard output, or what there was of it in the end."""
        process = self._running()
        assert process.stdout is not None
        deadline = time.monotonic() + timeout_seconds
        line = b""
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while not line.endswith(b"\n"):
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    break
                chunk = process.stdout.read1(4096)  # type: ignore[attr-defined]  # a BufferedReader
                if not chunk:
                    break
                line += chunk
        return line.decode(errors="replace").rstrip("\n")


@contextmanager
def open_broker_process(
    data_dir: Path,
    *,
    settings: Mapping[str, str] | None = None,
    arguments: Sequence[str] = (),
) -> Iterator[BrokerProcess]:
    """A broker process that runs when the block begins and is gone, by `kill -9`, when it ends."""
    with BrokerProcess(data_dir, settings=settings, arguments=arguments) as broker:
        yield broker
