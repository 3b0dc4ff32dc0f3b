"""What a seed decides in a process that runs brokers: the schedule, time, chance and threads.

Production code has no switches for this. In the block of `seeded`, trio draws its schedule from the
seed, the clock jumps to when something is due, `os.urandom` and what rests on it are drawn, and
what would be done in a thread is done on the loop, some virtual time later.
"""

from __future__ import annotations

import os
import random
import secrets
import subprocess
import sys
import threading
import time
import uuid
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from queue import Empty
from random import Random
from types import FunctionType
from typing import Any, Final, TypeVar
from unittest.mock import patch

import trio
from trio.testing import MockClock

from tidemark.broker.network.lingering import Lingering
from tidemark.broker.replicas import services
from tidemark.broker.replicas.writer_thread import WriterThread
from tidemark.partitions.storage.journal.journal import Journal
from tidemark.testing.shell.sockets import near_sockets

_BEGAN: Final = 1_750_000_000.0
"""Seconds since 1970 at the clock's zero."""
_THREAD_SECONDS_MAX: Final = 0.004
_DISK_SECONDS_MAX: Final = 0.01
_NOTED: Final = 0.3
"""How often the writer's thread has time to note what is synced."""

_JOURNAL_BYTES: Final = (1 << 16, 1 << 20, 1 << 24)

_JOURNAL: Final[Any] = vars(Journal)["open"].__func__  # Any: a class method's function

BOOT: Final = ContextVar[str]("BOOT")
"""Which run of its machine a broker is in."""

T = TypeVar("T")


@contextmanager
def seeded(rng: Random, clock: MockClock) -> Iterator[None]:
    """Everything that chance and the machine would decide is the seed's, until the block ends.

    To be entered before `trio.run(..., clock=clock)`; nothing else may run in the process.
    """
    scheduler: Any = trio._core._run  # Any: what a seed needs is not trio's public face
    with ExitStack() as patches:

        def put(target: object, name: str, value: object) -> None:
            patches.enter_context(patch.object(target, name, value))

        patches.enter_context(near_sockets())
        put(scheduler, "_ALLOW_DETERMINISTIC_SCHEDULING", True)
        state = scheduler._r.getstate()
        patches.callback(scheduler._r.setstate, state)
        scheduler._r.seed(rng.getrandbits(64))
        _draw_chances(put, Random(rng.getrandbits(64)))
        _keep_time(put, clock)
        threads = Random(rng.getrandbits(64))
        _keep_to_one_thread(put, threads)
        put(services, "_boot_id", BOOT.get)
        named = {**_JOURNAL.__kwdefaults__, "file_bytes": rng.choice(_JOURNAL_BYTES)}
        put(_JOURNAL, "__kwdefaults__", named)
        put(WriterThread, "start", lambda thread: _WriterTask(thread, threads))
        yield


def _draw_chances(put: Callable[[object, str, object], None], rng: Random) -> None:
    put(os, "urandom", rng.randbytes)
    put(secrets, "token_bytes", lambda size=32: rng.randbytes(size))
    put(random.SystemRandom, "random", lambda self: rng.random())
    put(random.SystemRandom, "getrandbits", lambda self, bits: rng.getrandbits(bits))
    put(random.SystemRandom, "randbytes", lambda self, size: rng.randbytes(size))
    put(random, "random", rng.random)

    class Drawn(Random):
        """One that is given no seed takes it from the kernel, by a way that leads through C."""

        def __init__(self, seed: Any = None) -> None:  # Any: as `Random`
            super().__init__(rng.getrandbits(64) if seed is None else seed)

    for module in _own_modules():
        if getattr(module, "Random", None) is Random and module is not sys.modules[__name__]:
            put(module, "Random", Drawn)
        if getattr(module, "uuid4", None) is uuid.uuid4:
            put(module, "uuid4", lambda: uuid.UUID(bytes=rng.randbytes(16), version=4))


def _keep_time(put: Callable[[object, str, object], None], clock: MockClock) -> None:
    for module in _own_modules():
        if getattr(module, "perf_counter", None) is time.perf_counter:
            put(module, "perf_counter", clock.current_time)
    put(Lingering, "begin", lambda self, now: now)  # to look again takes no virtual time
    put(time, "perf_counter", clock.current_time)
    put(time, "monotonic", clock.current_time)
    put(time, "time", lambda: _BEGAN + clock.current_time())
    put(time, "time_ns", lambda: int((_BEGAN + clock.current_time()) * 1e9))


def _keep_to_one_thread(put: Callable[[object, str, object], None], rng: Random) -> None:
    real, on_the_loop = trio.to_thread.run_sync, _on_the_loop(rng)
    put(trio.to_thread, "run_sync", on_the_loop)
    for function in _functions():
        named = function.__kwdefaults__ or {}
        if real in named.values():
            drawn = {n: on_the_loop if value is real else value for n, value in named.items()}
            put(function, "__kwdefaults__", drawn)
    for kind in (threading.Thread, subprocess.Popen):
        put(kind, "__init__", _refuse)


def _refuse(self: object, *_: object, **__: object) -> None:
    raise AssertionError(f"a {type(self).__name__} of its own: no seed says when it is done")


def _functions() -> Iterator[FunctionType]:
    """Those of production, which may have kept as a default what is put in another's place."""
    for module in _own_modules():
        for held in list(vars(module).values()):
            if isinstance(held, FunctionType):
                yield held
            elif isinstance(held, type):
                yield from (each for each in vars(held).values() if isinstance(each, FunctionType))


def _own_modules() -> list[object]:
    return [module for name, module in list(sys.modules.items()) if name.startswith("tidemark.")]


def _on_the_loop(rng: Random) -> Callable[..., Awaitable[Any]]:
    async def run_sync(
        work: Callable[..., T],
        *args: object,
        limiter: trio.CapacityLimiter | None = None,
        abandon_on_cancel: bool = False,
        **_: object,
    ) -> T:
        """As trio's: who is cancelled before it begins does not begin; then it is waited for."""
        await trio.lowlevel.checkpoint_if_cancelled()
        if limiter is None:
            return await _work(work, args)
        async with limiter:
            return await _work(work, args)

    async def _work(work: Callable[..., T], args: tuple[object, ...]) -> T:
        seconds = rng.random() * _THREAD_SECONDS_MAX
        with trio.CancelScope(shield=True):
            await trio.sleep(seconds)
        return work(*args)

    return run_sync


class _Idle(Exception):
    """There is nothing to be written."""


class _WriterTask:
    """A disk writer's thread, and its queue, as a task: what is put is written a while later."""

    def __init__(self, thread: WriterThread, rng: Random) -> None:
        self._thread: Any = thread  # Any: what it does is its own
        self._rng = rng
        self._groups: deque[object] = deque()
        self._works = False
        thread._groups = self  # type: ignore[assignment] # it puts and gets, no more

    def put(self, group: object) -> None:
        self._groups.append(group)
        if not self._works:
            self._works = True
            trio.lowlevel.spawn_system_task(self._work)

    def get(self, timeout: float | None = None) -> object:
        if self._groups:
            return self._groups.popleft()
        if timeout is not None and self._rng.random() < _NOTED:
            raise Empty
        raise _Idle

    async def _work(self) -> None:
        await trio.sleep(self._rng.random() * _DISK_SECONDS_MAX)
        self._works = False
        try:
            self._thread._write_until_stopped()
        except _Idle:
            return

    def join(self) -> None:
        """As of a thread: whoever joins it has told it to stop, and it is idle."""
