"""What Linux says of the processes of this machine: who listens where, and what it has used."""

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

_LISTENING: Final = "0A"
_SCHEDULED_TIME: Final = 2
"""Of the clocks that a process has; see clock_getcpuclockid(3)."""


def cpu_seconds(pid: int) -> float:
    """What a process has used of processors until now, in user and system mode.

    To the nanosecond: what `/proc/<pid>/stat` says in hundredths of a second. Raises `OSError` for
    a process that is gone.
    """
    return time.clock_gettime((~pid << 3) | _SCHEDULED_TIME)


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
        with suppress(FileNotFoundError):
            for line in Path(table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == _LISTENING and int(fields[1].rpartition(":")[2], 16) == port:
                    yield fields[9]
