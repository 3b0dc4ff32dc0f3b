"""Where a process spends its processor time, sampled by that time and not by the clock's.

A sampler that goes by the clock sees, on a busy machine, mostly where a process was made to wait.
This one is a `sitecustomize` module: copied to a folder on the path of a Python process, it has the
kernel interrupt the process for every few milliseconds of processor time that it used, and counts
the innermost frames. SIGUSR1 begins anew, SIGUSR2 writes down what was counted.
"""

import os
import signal
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Final

FOLDER: Final = "TIDEMARK_SAMPLES"
"""The environment variable that names the folder for the counts: a file by process id."""
_SECONDS: Final = 0.002
_FRAMES: Final = 8


class Sampler:
    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)
        self._counts: Counter[tuple[str, ...]] = Counter()
        signal.signal(signal.SIGPROF, self._sample)
        signal.signal(signal.SIGUSR1, lambda signum, frame: self._counts.clear())
        signal.signal(signal.SIGUSR2, self._write)
        signal.setitimer(signal.ITIMER_PROF, _SECONDS, _SECONDS)

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


if FOLDER in os.environ:
    Sampler(os.environ[FOLDER])
