"""What becomes of a write of `state.db` that the system refuses: strace has it do so."""

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tidemark.partitions.storage.state_db import StateDb

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

FILLS: Final = """
import sys
from tidemark.partitions.storage.state_db import StateDb

db, told = StateDb.open(sys.argv[1]), []
db.on_disk_failed = told.append
for number in range(20):
    db.set_meta("name", str(number) * 600_000)
    db.copy_long_log()
    if told:
        break
print(number, *(failure.errno for failure in told))
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


@pytest.mark.skipif(STRACE is None, reason="strace makes a write fail")
@pytest.mark.parametrize(
    ("call", "error", "told"),
    [
        ("pwrite64", "EIO", [errno.EIO]),
        ("fdatasync", "EIO", [errno.EIO]),
        ("ftruncate", "EIO", [errno.EIO]),
        ("pwrite64", "ENOSPC", []),
    ],
)
def test_a_disk_that_does_not_take_what_sqlite_copies_into_the_file_is_heard_of(
    call: str, error: str, told: list[int], tmp_path: Path
) -> None:
    """SQLite copies it with a commit, which succeeds whatever becomes of that."""
    path = tmp_path / "state.db"
    StateDb.open(str(path)).close()
    done = run(
        FILLS, path, "-e", f"trace={call}", "-e", f"inject={call}:error={error}", "-P", str(path)
    )
    number, *numbers = map(int, done.stdout.split())
    assert numbers == told
    assert number > 10, "it is not asked as long as the log is short"


def test_a_disk_that_takes_all_is_not_asked(tmp_path: Path) -> None:
    db = StateDb.open(str(tmp_path / "state.db"))
    statements: list[str] = []
    db._connection.set_trace_callback(statements.append)
    for number in range(20):
        db.set_meta("name", str(number) * 600_000)
        db.copy_long_log()
    assert not [each for each in statements if "wal_checkpoint" in each]
    db.close()
