"""The write-ahead log that SQLite has beside `state.db`: what a start and a checkpoint do about it.

SQLite relies on what it reads there. A sync of it that failed has left in the page cache what the
disk does not have, and the next process reads it from there. What that one commits it adds behind
it and syncs; after a power cut, a reader ends at the gap, and all that comes after it is lost. So
whoever opens the file has the log written again first, as tails of partitions are.

| step | a log's frames on the disk | in the page cache |
|------|----------------------------|-------------------|
| the sync of commit 3 fails, the broker ends | 1 2 | 1 2 3 |
| the next start commits, and syncs that | 1 2 _ 4 | 1 2 3 4 |
| the power is cut | 1 2, for 4 is behind a gap | |

What the log has is copied into the file once it has come to a thousand pages, at the end of a
commit. SQLite says nothing if that fails. Nothing is lost then, for all of it is written again with
the next commit, and the log begins anew only once the file was synced. But the log grows from then
on, which its size shows.
"""

import os
from typing import Final

_PIECE_BYTES: Final = 1024 * 1024
LONG_BYTES: Final = 8 * 1024 * 1024
"""Twice what comes together until SQLite copies it."""


def write_again(path: str) -> None:
    """Have all that is read of the log of this file be on the disk. Raises `OSError`.

    To be called before SQLite opens the file, by whoever has the directory's lock.
    """
    try:
        log = os.open(_log_of(path), os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        position = 0
        while piece := os.pread(log, _PIECE_BYTES, position):
            position += os.pwrite(log, piece, position)
        os.fsync(log)
    finally:
        os.close(log)


def is_long(path: str) -> bool:
    """Whether the log is longer than SQLite should let it become.

    Also where one commit was that large: the log does not shrink until the file is closed.
    """
    try:
        return os.stat(_log_of(path)).st_size > LONG_BYTES
    except OSError:
        return False


def _log_of(path: str) -> str:
    # SQLite has it beside the file itself, not beside a link to it.
    return f"{os.path.realpath(path)}-wal"
