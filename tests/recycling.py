"""Whether the system tells what has to be known of a file that is to be written over.

Some sandboxes and file systems do not.
"""

import os
from pathlib import Path

import pytest

from tidemark.partitions.storage.os_files import OsFiles


def need_leases(folder: Path) -> None:
    """Skip the test where it does not tell who has a file open alone."""
    path = folder / "lease"
    path.write_bytes(b"")
    if OsFiles().open_alone(str(path)) is None:
        pytest.skip("no leases are given here")
    path.unlink()


def need_recycling(folder: Path) -> None:
    """Skip the test where it does not tell that, or not what of a file is in memory."""
    need_leases(folder)
    path = folder / "memory"
    path.write_bytes(b"x")
    if not OsFiles().open(str(path)).is_in_memory(0):
        pytest.skip("nobody tells here what is in memory")
    path.unlink()


def need_disk(folder: Path) -> None:
    """Skip the test where all is in memory always."""
    path = folder / "disk"
    path.write_bytes(b"x")
    put_out_of_memory(path)
    if OsFiles().open(str(path)).is_in_memory(0):
        pytest.skip("this file system has nothing but memory")
    path.unlink()


def put_out_of_memory(path: Path) -> None:
    """As if nobody had read it or written to it for long. To ask whether some of it is in memory
    may bring it back.

    Pages that the kernel is about to put in its lists stay: one time in sixty, of an idle machine.
    """
    with path.open("rb") as file:
        os.fsync(file.fileno())
        for _ in range(3):
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
