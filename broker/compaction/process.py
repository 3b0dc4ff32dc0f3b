"""One run of a compaction in a process of its own, as the broker sees it."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from subprocess import PIPE
from typing import Any, Final

import trio

from tidemark.partitions.storage.compaction.job import Job, Rewritten, Tally
from tidemark.protocol.errors import StorageError

# -P: not from the folder that the broker runs in, where a user's json.py would be imported.
_COMMAND: Final = (sys.executable, "-P", "-m", "tidemark.partitions.storage.compaction.worker")
_READ_BYTES: Final = 1 << 16


class CompactionFailed(Exception):
    """A run that came to nothing, for a reason that may pass."""


class CompactionProcess:
    """Used by `open_run`."""

    def __init__(self, process: trio.Process) -> None:
        self.tally = Tally()
        """What has come of it, once it is done."""
        self._process = process
        self._lines = b""

    async def begin(self, job: Job) -> None:
        await self._say(json.dumps(job.to_json()).encode())

    async def segments(self) -> AsyncGenerator[Rewritten, None]:
        """The new segments; the next one is made when it is asked for.

        Raises `StorageError` for a log that is not sound, and `CompactionFailed`.
        """
        while True:
            answer = await self._answer()
            if "rewritten" not in answer:
                break
            yield Rewritten(*answer["rewritten"])
            await self._say(b"")
        if "tally" in answer:
            self.tally = Tally(**answer["tally"])
        elif "damage" in answer:
            raise StorageError(answer["damage"])
        else:
            raise CompactionFailed(answer["error"])

    async def _say(self, line: bytes) -> None:
        assert self._process.stdin is not None
        try:
            await self._process.stdin.send_all(line + b"\n")
        except trio.BrokenResourceError:
            raise await self._ended() from None

    async def _answer(self) -> dict[str, Any]:  # Any: as json gives it
        assert self._process.stdout is not None
        while b"\n" not in self._lines:
            more = await self._process.stdout.receive_some(_READ_BYTES)
            if not more:
                raise await self._ended()
            self._lines += more
        line, _, self._lines = self._lines.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer

    async def _ended(self) -> CompactionFailed:
        status = await self._process.wait()
        return CompactionFailed(
            f"its process ended with status {status}. Where it was killed for want of memory, make "
            "log.cleaner.dedupe.buffer.size smaller"
        )


@asynccontextmanager
async def open_run(job: Job) -> AsyncIterator[CompactionProcess]:
    """A process that does the job; it has ended when the block does.

    Raises `CompactionFailed` where there can be none.
    """
    try:
        process = await trio.lowlevel.open_process(_COMMAND, stdin=PIPE, stdout=PIPE)
    except OSError as error:
        raise CompactionFailed(f"its process cannot be started: {error}") from error
    try:
        run = CompactionProcess(process)
        await run.begin(job)
        yield run
    finally:
        process.kill()
        with trio.CancelScope(shield=True):
            await process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    await pipe.aclose()
