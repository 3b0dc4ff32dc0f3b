"""Where a process's first thread spends its processor time, sampled by that time.

A sampler that goes by the clock sees, on a busy machine, mostly where a process was made to wait;
and one that goes by the process's time takes what other threads use for what the first one does
just then, asleep as it may be. This one is a `sitecustomize` module: copied to a folder on the path
of a Python process, it has the kernel interrupt that thread for every few milliseconds of processor
time that it used (`timer_create(2)`), and counts the innermost frames. SIGUSR1 begins anew, SIGUSR2
writes down what was counted.
"""

import atexit
import ctypes
import os
import signal
import time
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Final

FOLDER: Final = "TIDEMARK_SAMPLES"
"""The environment variable that names the folder for the counts: a file by process id."""
_NANOSECONDS: Final = 2_000_000
_FRAMES: Final = 8


class Sampler:
    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)
        self._counts: Counter[tuple[str, ...]] = Counter()
        signal.signal(signal.SIGPROF, self._sample)
        signal.signal(signal.SIGUSR1, lambda signum, frame: self._counts.clear())
        signal.signal(signal.SIGUSR2, self._write)
        _interrupt_by_own_time()
        # The interpreter's end puts the signal back to what it does by itself, which is to kill.
        atexit.register(signal.signal, signal.SIGPROF, signal.SIG_IGN)

    def _sample(self, signum: int, frame: FrameType | None) -> None:
        frames: list[str] = []
        while frame is not None and len(frames) < _FRAMES:
            frames.append(f"{frame.f_code.co_filename}:{frame.f_code.co_name}")
            frame = frame.f_back
        self._counts[tuple(frames)] += 1

    def _write(self, signum: int, frame: FrameType | None) -> None:
        # Of a copy: the next sample may come in the middle of this.
        counts = list(self._counts.items())
        lines = [f"{count} {';'.join(frames)}\n" for frames, count in counts]
        partial = self._folder / f"{os.getpid()}.part"
        partial.write_text("".join(lines))
        partial.rename(self._folder / str(os.getpid()))


class _SignalEvent(ctypes.Structure):
    """`struct sigevent`, as long as it is with all that a union in it may hold."""

    _fields_ = (
        ("value", ctypes.c_void_p),
        ("signal", ctypes.c_int),
        ("notify", ctypes.c_int),  # 0: by that signal
        ("rest", ctypes.c_byte * 48),
    )


class _Intervals(ctypes.Structure):
    """`struct itimerspec`: seconds and nanoseconds, between two and until the first."""

    _fields_ = tuple((name, ctypes.c_long) for name in ("every", "every_ns", "first", "first_ns"))


def _interrupt_by_own_time() -> None:
    """SIGPROF again and again, by the time that this thread has used. Raises `OSError`."""
    libc, timer = ctypes.CDLL(None, use_errno=True), ctypes.c_void_p()
    event = _SignalEvent(signal=signal.SIGPROF)
    intervals = _Intervals(every_ns=_NANOSECONDS, first_ns=_NANOSECONDS)
    if libc.timer_create(
        time.CLOCK_THREAD_CPUTIME_ID, ctypes.byref(event), ctypes.byref(timer)
    ) or libc.timer_settime(timer, 0, ctypes.byref(intervals), None):
        number = ctypes.get_errno()
        raise OSError(number, f"no timer for samples: {os.strerror(number)}")


if FOLDER in os.environ:
    Sampler(os.environ[FOLDER])
