"""A disk for each broker that can lose its power, and fill up.

With root it is an ext4 file system in a file. `EXT4_IOC_SHUTDOWN` without a log flush is the power
cut: from then on every call fails, and what was not synced is gone when it is mounted again.
Without root it is a directory, and only what needs no file system of its own can be done to it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, Protocol

from tests.chaos.commands import ToolFailed, run, tried

_SHUTDOWN: Final = 0x8004_587D
_WITHOUT_FLUSH: Final = struct.pack("I", 2)
_DISK_BYTES: Final = 1 << 30
_FILLER_CHUNK_BYTES: Final = 1 << 20
_APART: Final = "TIDEMARK_CHAOS_APART"


class Disk(Protocol):
    """Where one broker keeps its data."""

    path: Path
    can_fail: bool

    def cut_power(self) -> None:
        """Lose all that was not synced. The broker has to be killed, then `restore` called."""
        ...

    def restore(self) -> None: ...

    def fill(self) -> None:
        """Leave no byte free."""
        ...

    def free(self) -> None: ...


def go_apart() -> None:
    """Begin this process anew in a mount namespace of its own, where the machine allows it.

    A namespace that anybody else makes while disks are mounted begins with a copy of all mounts. It
    keeps a disk alive that loses its power, and what is mounted next is the same one, as it was.
    What a run that is killed leaves mounted goes with its namespace, too.
    """
    if _APART in os.environ or os.geteuid() or not tried("unshare", "--mount", "true"):
        return
    command = ["unshare", "--mount", *sys.orig_argv]
    os.execvpe(command[0], command, {**os.environ, _APART: "yes"})


@contextmanager
def open_disks(directory: Path, nodes: Sequence[int]) -> Iterator[dict[int, Disk]]:
    """A disk for each node."""
    with ExitStack() as stack:
        disks: dict[int, Disk] = {}
        for node in nodes:
            home = directory / f"disk-{node}"
            home.mkdir()
            disk = Ext4(directory / f"disk-{node}.img", home)
            if os.geteuid() == 0 and disk.make():
                stack.callback(disk.remove)
                disks[node] = disk
            else:
                disks[node] = Folder(home)
        yield disks


def sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Folder:
    """A directory on the machine's own disk."""

    can_fail = False

    def __init__(self, path: Path) -> None:
        self.path = path

    def cut_power(self) -> None:
        raise NotImplementedError("only a disk of its own can lose its power")

    restore = fill = free = cut_power


class Ext4:
    """A file system in a file, over a loop device."""

    can_fail = True

    def __init__(self, image: Path, path: Path) -> None:
        self.path = path
        self._image = image
        self._filler = path / "filler"

    def make(self) -> bool:
        """Whether it could be made and mounted."""
        with self._image.open("wb") as image:
            image.truncate(_DISK_BYTES)
        return tried("mkfs.ext4", "-q", "-E", "lazy_itable_init=1", str(self._image)) and (
            self._mount()
        )

    def _mount(self) -> bool:
        return tried("mount", "-o", "loop", str(self._image), str(self.path))

    def cut_power(self) -> None:
        descriptor = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.ioctl(descriptor, _SHUTDOWN, _WITHOUT_FLUSH)
        finally:
            os.close(descriptor)

    def restore(self) -> None:
        run("umount", str(self.path))
        run("mount", "-o", "loop", str(self._image), str(self.path))
        try:
            sync_directory(self.path)
        except OSError as error:
            raise ToolFailed(f"{self.path} is mounted elsewhere, too, and without power") from error

    def fill(self) -> None:
        with self._filler.open("wb", buffering=0) as filler:
            size = _FILLER_CHUNK_BYTES
            while size:
                try:
                    filler.write(bytes(size))
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
                    size //= 2
            os.fsync(filler.fileno())

    def free(self) -> None:
        self._filler.unlink(missing_ok=True)

    def remove(self) -> None:
        tried("umount", "-l", str(self.path))
        self._image.unlink(missing_ok=True)
