"""From a thread without trio into the client's, which has it."""

import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from functools import partial
from inspect import iscoroutine
from typing import ParamSpec, TypeVar

import trio

P = ParamSpec("P")
T = TypeVar("T")


def run_there(token: trio.lowlevel.TrioToken, function: Callable[[], Awaitable[T]]) -> T:
    """Call it in another thread's loop, and wait for what it returns or raises.

    What interrupts the wait (Ctrl-C) cancels the call, and goes out once that has ended: else it
    would go on for nobody. It may have ended well just then.
    """
    scope, has_begun, ended = trio.CancelScope(), trio.Event(), trio.Event()

    async def call() -> T:
        has_begun.set()
        try:
            with scope:
                return await function()
            raise AssertionError("it was cancelled, and nobody waits for this")
        finally:
            ended.set()

    async def cancel() -> None:
        scope.cancel()
        # What was posted before this has begun by then; what was not never will.
        await trio.lowlevel.checkpoint()
        if has_begun.is_set():
            await ended.wait()

    try:
        return trio.from_thread.run(call, trio_token=token)
    except BaseException:
        if not ended.is_set():
            with suppress(trio.RunFinishedError, trio.Cancelled):
                trio.from_thread.run(cancel, trio_token=token)
        raise


class Portal:
    """Runs things in the client's thread, one after the other as they are asked for."""

    def __init__(self, token: trio.lowlevel.TrioToken, nursery: trio.Nursery) -> None:
        self._token = token
        self._nursery = nursery
        self._process = os.getpid()

    def run(self, function: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """As `run_there`. Raises `TypeError` for what is no asynchronous function."""
        self._require_thread()
        given: object = function
        if not callable(given):
            if iscoroutine(given):
                given.close()  # nobody else awaits it
            raise TypeError(
                "what is run is an asynchronous function, with its arguments behind it, as in"
                f" run(client.admin.list_topics), not {function!r}"
            )
        with _closed_by_then():
            return run_there(self._token, partial(function, *args, **kwargs))

    def run_sync(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        self._require_thread()
        call = partial(function, *args, **kwargs)
        with _closed_by_then():
            return trio.from_thread.run_sync(call, trio_token=self._token)

    def _require_thread(self) -> None:
        if os.getpid() != self._process:
            # Nobody would ever answer.
            raise RuntimeError("a client does not outlive a fork: open one in each process")

    @contextmanager
    def entered(self, manager: AbstractAsyncContextManager[T]) -> Iterator[T]:
        """The block of an asynchronous context manager, which lives in a task of its own there."""
        closing, closed, whole = trio.Event(), trio.Event(), trio.CancelScope()
        failures: list[Exception] = []
        is_held = is_failing = False

        async def hold(task_status: trio.TaskStatus[T]) -> None:
            nonlocal is_held
            is_entered, is_held = False, True
            try:
                with whole:
                    async with manager as value:
                        is_entered = True
                        task_status.started(value)
                        await closing.wait()
                        if is_failing:
                            raise _BlockFailed
            except _BlockFailed:
                pass
            except Exception as error:
                if not is_entered:
                    raise  # to the one who called start
                failures.append(error)
            finally:
                closed.set()

        try:
            value: T = self.run(self._nursery.start, hold)
            yield value
        except BaseException:
            is_failing = True
            raise
        finally:
            # Whatever interrupts this: else the client's block would wait for it for ever.
            with suppress(trio.RunFinishedError):
                self._token.run_sync_soon(closing.set)
            if is_held:
                self._wait_closed(closed, whole)
        if failures:
            raise failures[0]

    def _wait_closed(self, closed: trio.Event, whole: trio.CancelScope) -> None:
        """Until a block has closed. What interrupts this is not to wait for it, either: whatever a
        cancellation ends, such as a producer's flush, is ended."""
        try:
            self.run(closed.wait)
        except BaseException:
            with suppress(trio.RunFinishedError):
                self._token.run_sync_soon(whole.cancel)
            raise


@contextmanager
def _closed_by_then() -> Iterator[None]:
    """The words of the trio client for one that is used behind its block."""
    try:
        yield
    except (trio.RunFinishedError, trio.Cancelled) as error:
        raise trio.ClosedResourceError("the client is closed") from error


class _BlockFailed(Exception):
    """Tells the asynchronous side that the block did not end well."""
