"""A small file system of a test's own, and how to fill it."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.system.attacks import Peer
from tidemark.protocol.errors import ErrorCode


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """A folder with a file system in memory, of a size as `mount` reads it; gone after the block.
    Without root the test is skipped."""
    folder.mkdir()
    mount = shutil.which("mount")
    if mount is None or sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("only root may mount a small file system")
    done = subprocess.run(
        [mount, "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], check=False
    )
    if done.returncode != 0:
        pytest.skip("no small file system may be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(ballast: Path) -> None:
    """Take the rest of the disk."""
    with ballast.open("ab", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))


def wait_taken(peer: Peer, topic: str, records: bytes) -> None:
    """Until a batch is taken, which happens soon once there is room."""
    deadline = time.monotonic() + 20
    while (code := peer.produce(topic, records)) is not ErrorCode.NONE:
        assert code is ErrorCode.KAFKA_STORAGE_ERROR
        assert time.monotonic() < deadline, "records are refused still"
        time.sleep(0.1)


def wait_reserved(data: Path) -> None:
    """The reserve is taken a moment after the start."""
    reserve = data / "reserve"
    deadline = time.monotonic() + 20
    while not reserve.exists() or not reserve.stat().st_size:
        assert time.monotonic() < deadline
        time.sleep(0.05)
