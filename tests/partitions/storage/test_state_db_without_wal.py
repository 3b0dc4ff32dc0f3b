"""`state.db` where SQLite has not made a write-ahead log, and says so to nobody."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

STRACE: Final = shutil.which("strace")
COMMITS: Final = """
import os
import sys
from tidemark.partitions.storage.state_db import StateDb

db = StateDb.open(sys.argv[1])
with db.transaction() as connection:
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
db.set_meta("name", "value")
os._exit(0)
"""


@pytest.mark.skipif(STRACE is None, reason="strace makes a sync fail")
def test_a_commit_without_a_write_ahead_log_survives_a_power_cut(tmp_path: Path) -> None:
    """It is the removal of the rollback journal, which is durable once the directory is synced."""
    assert STRACE is not None
    trace = tmp_path / "trace"
    tracing = [STRACE, "-f", "-q", "-y", "-e", "trace=unlink,fsync,fdatasync", "-o", str(trace)]
    first_fails = ["-e", "inject=fdatasync,fsync:error=EIO:when=1"]
    data = tmp_path / "data"
    data.mkdir()
    program = [sys.executable, "-B", "-c", COMMITS, str(data / "state.db")]
    subprocess.run([*tracing, *first_fails, *program], timeout=60, check=True)
    last, after = trace.read_text().splitlines()[-3:-1]
    assert re.search(r'unlink\("[^"]*/state\.db-journal"\) += 0', last)
    assert re.search(rf"sync\(\d+<{data}>\) += 0", after)
