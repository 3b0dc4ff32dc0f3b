"""Whether librdkafka has locked itself out, which no broker can make it do, nor undo.

Where it finds no broker any more it gives up all its handles, to begin anew. The thread of such a
handle locks the client and then a partition; its main thread, which is told meanwhile that
OffsetForLeaderEpoch has failed, has locked the partition and wants the client (its issue 5476).
Then that client reads nothing any more, and cannot be closed.
"""

from __future__ import annotations

import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Final

_MAIN: Final = "rdk:main"
_FUTEX: Final = ("202", "98")
"""On x86-64 and on aarch64."""
_TIMEOUT: Final = 4
"""Its place in what `/proc` says: the call's number, and then its arguments."""
_LOOKS: Final = 3
_LOOK_SECONDS: Final = 0.5


def deadlocked_clients() -> int:
    """How many main threads of librdkafka wait for one lock all the while, without an end.

    Whoever waits for something to happen, wakes up now and then.
    """
    waiting = _waiting()
    for _ in range(_LOOKS - 1):
        time.sleep(_LOOK_SECONDS)
        waiting &= _waiting()
    return len(waiting)


def _waiting() -> set[tuple[str, str]]:
    """Which of them wait without an end at this moment, and for what."""
    found = set()
    for task in Path("/proc/self/task").iterdir():
        try:
            if (task / "comm").read_text().strip() != _MAIN:
                continue
            call = (task / "syscall").read_text().split()
        except OSError:  # It has ended, or this machine does not tell.
            continue
        if call[0] in _FUTEX and call[_TIMEOUT] == "0x0":
            found.add((task.name, call[1]))
    return found


def line_of(thread: threading.Thread) -> str:
    """The line that it is at, and the one that called it there."""
    frame = sys._current_frames().get(thread.ident or 0)
    lines = traceback.extract_stack(frame)[-2:] if frame else []
    return " > ".join(f"{each.name}, line {each.lineno}: {each.line}" for each in lines)
