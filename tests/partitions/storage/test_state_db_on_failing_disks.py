"""What becomes of a write of `state.db` that the system refuses: strace has it do so."""

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

STRACE: Final = shutil.which("strace")
TOLD_NOTHING: Final = 200
WRITES: Final = f"""
import sys
from tidemark.partitions.storage.refusals import NotRecorded
from tidemark.partitions.storage.state_db import StateDb

db, told = StateDb.open(sys.argv[1]), []
db.on_disk_failed = told.append
try:
    for number in range(100):
        db.set_meta(str(number), "value")
except NotRecorded:
    sys.exit(told[0].errno if told else {TOLD_NOTHING})
"""

OPENS: Final = """
import sys
from tidemark.partitions.storage.state_db import StateDb
from tidemark.protocol.errors import StorageError

try:
    StateDb.open(sys.argv[1])
except StorageError as error:
    print(error)
"""


def status(path: Path, *, of_writes: str, of_others: str | None) -> int:
    """Of a process whose `state.db` is not written to any more after a while, and which is told
    this when it writes to another file."""
    inject = ["-e", f"inject=pwrite64:error={of_writes}:when=100+"]
    if of_others is not None:
        inject += ["-e", f"inject=write:error={of_others}"]
    return run(WRITES, path, "-e", "trace=pwrite64,write", *inject).returncode


def run(program: str, path: Path, *inject: str) -> subprocess.CompletedProcess[str]:
    assert STRACE is not None
    command = [STRACE, "-f", "-q", *inject, "-o", "/dev/null", sys.executable, "-B", "-c", program]
    return subprocess.run(
        [*command, str(path)], capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.skipif(STRACE is None, reason="strace makes a write fail")
@pytest.mark.parametrize(
    ("of_writes", "of_others", "told"),
    [
        ("EIO", "EIO", errno.EIO),
        ("EIO", None, errno.EIO),
        ("EROFS", "EROFS", errno.EROFS),
        ("EDQUOT", "EDQUOT", TOLD_NOTHING),
        ("ENOSPC", None, TOLD_NOTHING),
    ],
)
def test_a_disk_that_fails_is_told_from_a_quota_that_is_used_up(
    of_writes: str, of_others: str | None, told: int, tmp_path: Path
) -> None:
    """SQLite calls both the same."""
    assert status(tmp_path / "state.db", of_writes=of_writes, of_others=of_others) == told
    assert all(name.startswith("state.db") for name in os.listdir(tmp_path))


@pytest.mark.skipif(STRACE is None, reason="strace makes a write fail")
@pytest.mark.parametrize("call", ["ftruncate", "pwrite64"])
@pytest.mark.parametrize("error", ["ENOSPC", "EIO"])
def test_a_file_that_the_disk_does_not_let_open_need_not_be_restored(
    call: str, error: str, tmp_path: Path
) -> None:
    done = run(
        OPENS, tmp_path / "state.db", "-e", f"trace={call}", "-e", f"inject={call}:error={error}"
    )
    assert "has no room for it" in done.stdout
    assert "Restore" not in done.stdout
