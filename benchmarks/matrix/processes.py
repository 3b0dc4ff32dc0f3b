"""What the kernel says of processes: who listens on a port, processor time, memory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.harness import cpu_seconds

_LISTENING: Final = "0A"


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """By some processes together."""

    cpu_seconds: float
    resident_bytes: int
    peak_bytes: int


def used(pids: Sequence[int]) -> Used:
    memory = [_memory(pid) for pid in pids]
    return Used(
        cpu_seconds=sum(map(cpu_seconds, pids)),
        resident_bytes=sum(resident for resident, _ in memory),
        peak_bytes=sum(peak for _, peak in memory),
    )


def _memory(pid: int) -> tuple[int, int]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    status = dict(line.split(":", 1) for line in lines)
    return tuple(int(status[name].split()[0]) * 1024 for name in ("VmRSS", "VmHWM"))  # type: ignore[return-value]  # two names


def listener_of(port: int) -> int:
    """The process that listens on a TCP port of this machine.

    Raises `LookupError` if there is none, or if it is another user's.
    """
    sockets = {f"socket:[{inode}]" for inode in _inodes(port)}
    for folder in Path("/proc").glob("[0-9]*/fd"):
        if sockets.intersection(_links_in(folder)):
            return int(folder.parent.name)
    raise LookupError(
        f"no process of yours listens on port {port} here: start the broker on this machine"
    )


def _links_in(folder: Path) -> Iterator[str]:
    with suppress(OSError):  # the process has ended, or is not ours to look at
        for name in os.listdir(folder):
            with suppress(FileNotFoundError):  # it has closed this one
                yield os.readlink(folder / name)


def _inodes(port: int) -> Iterator[str]:
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == _LISTENING and int(fields[1].rpartition(":")[2], 16) == port:
                yield fields[9]
