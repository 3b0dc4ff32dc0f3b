"""Bits that turn over in what a broker has stored, while it is down."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Final

from tests.chaos.brokers import ChaosCluster
from tests.chaos.faults.fault import WRONG, any_broker, wait_until

_REPAIR_SECONDS: Final = 20.0
_AROUND_BYTES: Final = 64


@contextmanager
def flip_in_segment(cluster: ChaosCluster, rng: Random) -> Iterator[str]:
    """`tidemark log verify` has to find it; nobody may be given it; in the end it is put right.

    A broker that does not read a batch again does not notice. Clients do, by the CRC.
    """
    broker = any_broker(cluster, rng)
    broker.kill_if_running()
    path = _any_file(broker.data_dir.glob("*-*/*.log"), rng)
    if path is None:
        yield "no segment to damage"
        cluster.start_missing()
        return
    flip = Flip(path, rng.randrange(path.stat().st_size), rng.randrange(8))
    said = f"{flip} of {broker.node}"
    if not _is_found(path.parent):
        said = f"{WRONG}{said}: not found by log verify"
    broker.spawn()
    try:
        yield said
    finally:
        broker.kill_if_running()
        flip.undo()
        cluster.start_missing()


@contextmanager
def flip_in_journal(cluster: ChaosCluster, rng: Random) -> Iterator[str]:
    """It stays: a broker that has lost promises says so, and is repaired by the others."""
    broker = any_broker(cluster, rng)
    broker.kill_if_running()
    path = _any_file(broker.data_dir.glob("journal/*.journal"), rng)
    if path is None:
        yield "no journal to damage"
        cluster.start_missing()
        return
    said_before = len(broker.log)
    flip = Flip(path, rng.randrange(_written_bytes(path)), rng.randrange(8))
    broker.spawn()
    wait_until(lambda: broker.is_ready, _REPAIR_SECONDS)
    noticed = "noticed" if "corrupt" in broker.log[said_before:] else "of no meaning"
    yield f"{flip} of {broker.node}: {noticed}"
    cluster.start_missing()


class Flip:
    """A bit that has turned over."""

    def __init__(self, path: Path, at: int, bit: int) -> None:
        self._path = path
        self._at = at
        self._start = max(0, at - _AROUND_BYTES)
        before = self._around()
        damaged = bytearray(before)
        damaged[at - self._start] ^= 1 << bit
        self._before, self._damaged = before, bytes(damaged)
        self._write(self._damaged)

    def __str__(self) -> str:
        return f"a bit of {self._path.parent.name}/{self._path.name} at {self._at}"

    def undo(self) -> None:
        """Unless the broker has written there meanwhile, and so put it right itself."""
        if self._path.exists() and self._around() == self._damaged:
            self._write(self._before)

    def _around(self) -> bytes:
        with self._path.open("rb") as file:
            file.seek(self._start)
            return file.read(2 * _AROUND_BYTES)

    def _write(self, data: bytes) -> None:
        with self._path.open("r+b") as file:
            file.seek(self._start)
            file.write(data)


def _any_file(found: Iterable[Path], rng: Random) -> Path | None:
    files = sorted(path for path in found if path.stat().st_size)
    return rng.choice(files) if files else None


def _written_bytes(path: Path) -> int:
    """Up to the last byte that is not zero: journal files are as large at first as later."""
    return max(1, len(path.read_bytes().rstrip(b"\0")))


def _is_found(directory: Path) -> bool:
    command = [sys.executable, "-m", "tidemark.cli.main", "log", "verify", str(directory)]
    return subprocess.run(command, capture_output=True, check=False).returncode != 0
