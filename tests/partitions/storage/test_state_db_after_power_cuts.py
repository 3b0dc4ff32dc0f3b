"""What the disk has of `state.db` when the power goes: strace says what was written and synced."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tidemark.partitions.storage.state_db import StateDb

STRACE: Final = shutil.which("strace")
RECORDS: Final = """
import os
import sys
from tidemark.partitions.storage.refusals import NotRecorded
from tidemark.partitions.storage.state_db import StateDb

db = StateDb.open(sys.argv[1])
for name in sys.argv[2:]:
    try:
        db.set_meta(name, "kept")
    except NotRecorded:
        os._exit(1)
os._exit(0)
"""
CALL: Final = re.compile(r'(\w+)\(\d+<(.+?)>(?:, "(.*)", \d+)?(?:, (\d+))?\) += (-?\d+)')


class PoweredFiles:
    """Files, as the disk has them: with what was written to them before a sync that succeeded.
    One that fails takes with it what was written since the last one."""

    def __init__(self) -> None:
        self._synced: dict[str, bytearray] = {}
        self._written: dict[str, list[tuple[int, bytes | None]]] = {}

    def follow(self, trace: Path) -> None:
        """Do as a process did."""
        for line in trace.read_text().splitlines():
            call = CALL.search(line)
            if call is not None:
                name, path, text, number, result = call.groups()
                name_of_file = Path(unescaped(path).decode()).name
                self._do(name, name_of_file, text, int(number or 0), has_failed=int(result) < 0)

    def _do(self, name: str, file: str, text: str | None, number: int, *, has_failed: bool) -> None:
        written = self._written.setdefault(file, [])
        match name:
            case "pwrite64" if text is not None:
                written.append((number, unescaped(text)))
            case "ftruncate":
                written.append((number, None))
            case _:
                if not has_failed:
                    self._sync(self._synced.setdefault(file, bytearray()), written)
                written.clear()

    def _sync(self, content: bytearray, written: list[tuple[int, bytes | None]]) -> None:
        for position, data in written:
            if data is None:
                del content[position:]
                continue
            content.extend(bytes(max(0, position + len(data) - len(content))))
            content[position : position + len(data)] = data

    def restore(self, folder: Path) -> None:
        """What there is once the power is back."""
        for name in ("state.db", "state.db-wal"):
            (folder / name).write_bytes(self._synced[name])


def unescaped(text: str) -> bytes:
    return bytes.fromhex(text.replace(r"\x", ""))


def record(path: Path, trace: Path, *names: str, inject: tuple[str, ...] = ()) -> int:
    """Have a process record these, and end as if it were killed. Its status."""
    assert STRACE is not None
    calls = "trace=pwrite64,ftruncate,fsync,fdatasync"
    tracing = [STRACE, "-f", "-q", "-y", "-xx", "-s", "2000000", "-e", calls, "-o", str(trace)]
    program = [sys.executable, "-B", "-c", RECORDS, str(path), *names]
    return subprocess.run([*tracing, *inject, *program], timeout=60, check=False).returncode


@pytest.mark.skipif(STRACE is None, reason="strace makes a sync fail")
def test_what_is_recorded_after_a_sync_that_failed_survives_a_power_cut(tmp_path: Path) -> None:
    """A process that reads what only the page cache has must not build on that."""
    path, traces, disk = (
        tmp_path / "state.db",
        [tmp_path / str(n) for n in range(3)],
        PoweredFiles(),
    )
    assert record(path, traces[0], "before") == 0
    fails = ("-e", "inject=fdatasync:error=EIO:when=1", "-P", f"{path}-wal")
    assert record(path, traces[1], "unknown", inject=fails) == 1
    assert record(path, traces[2], "after") == 0
    for trace in traces:
        disk.follow(trace)

    (tmp_path / "restored").mkdir()
    disk.restore(tmp_path / "restored")
    db = StateDb.open(str(tmp_path / "restored" / "state.db"))
    assert (db.meta("before"), db.meta("after")) == ("kept", "kept")
    db.close()
