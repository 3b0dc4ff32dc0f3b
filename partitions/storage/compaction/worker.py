"""A process that does one run: `python -m tidemark.partitions.storage.compaction.worker`.

A run is minutes of Python; in a thread of the broker each slice of it would keep a client waiting
for the interpreter. So it has a process of its own, and a low priority. Lines of JSON:

| from | line |
|------|------|
| broker | the job |
| worker | `{"rewritten": [base, end, size, is changed]}`, for each new segment |
| broker | an empty line: that one is in its place, go on |
| worker | `{"tally": {...}}` and an end, or `{"damage": "..."}`, `{"error": "..."}` |

It ends when the broker does: whoever opens the directory next must find it alone.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time
from dataclasses import asdict
from typing import Any, Final, TextIO

from tidemark.partitions.storage.compaction.compacting import CompactionRun
from tidemark.partitions.storage.compaction.job import Job
from tidemark.partitions.storage.files import Files
from tidemark.partitions.storage.os_files import OsFiles
from tidemark.protocol.errors import StorageError

_NICENESS: Final = 10
_GONE: Final = 3
_SLEEP_SECONDS_MAX: Final = 0.25


class Pacer:
    """Sleeps for as long as bytes came too fast, and ends the process when the broker is gone."""

    def __init__(self, bytes_per_second_max: int | None, commands: TextIO) -> None:
        self._rate = bytes_per_second_max
        self._commands = commands
        self._due = time.monotonic()

    def __call__(self, size_bytes: int) -> None:
        if self._rate is None:
            self._leave_with_the_broker(0)
            return
        self._due = max(self._due, time.monotonic()) + size_bytes / self._rate
        while True:
            ahead = self._due - time.monotonic()
            self._leave_with_the_broker(max(0.0, min(ahead, _SLEEP_SECONDS_MAX)))
            if ahead <= _SLEEP_SECONDS_MAX:
                return

    def _leave_with_the_broker(self, seconds: float) -> None:
        # Nothing is to come while a segment is written, but the end.
        if select.select([self._commands], [], [], seconds)[0]:
            os._exit(_GONE)


def run(files: Files, commands: TextIO, answers: TextIO) -> None:
    """Do the job that is the first of the commands."""
    job = Job.from_json(json.loads(commands.readline()))
    compaction = CompactionRun(files, job, Pacer(job.limits.bytes_per_second_max, commands))
    try:
        for rewritten in compaction:
            _say(answers, rewritten=list(rewritten))
            if not commands.readline():
                return
        _say(answers, tally=asdict(compaction.tally))
    except StorageError as error:
        _say(answers, damage=str(error))
    except OSError as error:
        _say(answers, error=f"{error.strerror or error}", errno=error.errno)


def _say(answers: TextIO, **values: Any) -> None:  # Any: as json gives and takes it
    answers.write(json.dumps(values) + "\n")
    answers.flush()


def main() -> None:
    os.nice(_NICENESS)
    run(OsFiles(), sys.stdin, sys.stdout)


if __name__ == "__main__":
    main()
