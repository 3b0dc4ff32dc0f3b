"""What does a request take of memory and of the kernel: allocations, collections, system calls?

Each in runs of its own, since looking slows the broker down: allocated blocks and garbage
collections from inside; `tracemalloc`'s memory; system calls counted by `strace`, where it is
there. A slower broker finds more requests waiting each time, so its calls are too few if anything.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from benchmarks.harness import Row
from benchmarks.inside import AskableBroker
from benchmarks.load.generator import Generator, open_generator
from benchmarks.matrix.session import produce_task
from benchmarks.matrix.targets import Target
from benchmarks.matrix.workload import BASE, Workload

WORKLOADS: Final = (
    replace(BASE, name="one record, 5 in flight", batch_bytes=1_100),
    replace(BASE, name="16 KB, 5 in flight"),
    replace(BASE, name="1 MB, 5 in flight", batch_bytes=1_000_000),
    replace(BASE, name="16 KB, flush=commit, 5 in flight", flush="commit"),
)
_SECONDS: Final = 1.0


def measure(directory: Path, details: dict[str, object]) -> Iterator[Row]:
    """Rows for produce; what calls there were is kept in `details`, by workload."""
    calls = details.setdefault("system calls a request", {})
    assert isinstance(calls, dict)
    with open_generator() as load:
        for number, workload in enumerate(WORKLOADS):
            folder = directory / f"resources-{number}"
            yield from _allocations(folder, workload, load)
            yield from _traced(folder, workload, load)
            if shutil.which("strace"):
                calls[workload.name] = found = _system_calls(folder, workload, load)
                yield _row("system calls a request", workload, sum(found.values()), "calls")


def _allocations(folder: Path, workload: Workload, load: Generator) -> Iterator[Row]:
    with _open_run(folder, workload, load) as run:
        before = run.broker.ask()
        requests = run.requests()
        after = run.broker.ask()
    kept = (after["blocks"] - before["blocks"]) / requests * 1_000
    yield _row("blocks kept of 1,000 requests", workload, max(0.0, kept), "blocks")
    for generation in (0, 2):
        ran = after["collections"][generation] - before["collections"][generation]
        name = f"garbage collections in 1,000 requests, generation {generation}"
        yield _row(name, workload, ran / requests * 1_000, "collections")


def _traced(folder: Path, workload: Workload, load: Generator) -> Iterator[Row]:
    with _open_run(folder, workload, load) as run:
        before = run.broker.ask("trace")
        run.requests()
        after = run.broker.ask()
    grown = (after["traced_peak"] - before["traced"]) / 1_000
    yield _row("memory over that before, at most", workload, max(0.0, grown), "kB")


def _system_calls(folder: Path, workload: Workload, load: Generator) -> Mapping[str, float]:
    """Calls by name, for each request."""
    with _open_run(folder, workload, load) as run:
        output = folder / "strace"
        command = ["strace", "-f", "-c", "-o", str(output), "-p", str(run.broker.pid)]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as strace:
            _wait_traced(run.broker.pid, strace)
            requests = run.requests()
            strace.send_signal(signal.SIGINT)
        found = calls_in(output.read_text())
    return {name: count / requests for name, count in found.items()}


def _wait_traced(pid: int, strace: subprocess.Popen[bytes]) -> None:
    """Raises `RuntimeError` if it may not look at the process."""
    status = Path(f"/proc/{pid}/status")
    while "TracerPid:\t0\n" in status.read_text():
        if strace.poll() is not None:
            raise RuntimeError("strace may not look at the broker: run it as the same user or root")
        time.sleep(0.01)


def calls_in(summary: str) -> dict[str, int]:
    """What the table of `strace -c` says: calls by name, most first."""
    found = {}
    for line in summary.splitlines():
        fields = line.split()
        if len(fields) >= 5 and fields[3].isdigit() and fields[-1] != "total":
            found[fields[-1]] = int(fields[3])
    return dict(sorted(found.items(), key=lambda entry: -entry[1]))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """A broker that can be asked, and producers that are warm."""

    broker: AskableBroker
    load: Generator

    def requests(self) -> int:
        """Produce for a while; how many requests the broker has had."""
        return int(self.load.run(seconds=_SECONDS, rate=None)["handled"])


@contextmanager
def _open_run(folder: Path, workload: Workload, load: Generator) -> Iterator[_Run]:
    folder.mkdir()
    with AskableBroker(folder / "data") as broker:
        target = Target("tidemark", broker.bootstrap, [broker.pid], is_tidemark=True)
        with (
            target.topic("asked", partitions=1, replicas=1, flush=workload.flush) as topic,
            load.task(**produce_task(workload, topic)),
        ):
            load.run(seconds=_SECONDS, rate=None)
            yield _Run(broker=broker, load=load)
    shutil.rmtree(folder)


def _row(question: str, workload: Workload, value: float, unit: str) -> Row:
    return Row(question=question, case=workload.name, value=value, unit=unit)
