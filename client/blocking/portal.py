"""From a thread without trio into the client's, which has it."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from functools import partial
from typing import ParamSpec, TypeVar

import trio

P = ParamSpec("P")
T = TypeVar("T")


class Portal:
    """Runs things in the client's thread, one after the other as they are asked for."""

    def __init__(self, token: trio.lowlevel.TrioToken, nursery: trio.Nursery) -> None:
        self._token = token
        self._nursery = nursery

    def run(self, function: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        with _closed_by_then():
            return trio.from_thread.run(partial(function, *args, **kwargs), trio_token=self._token)

    def run_sync(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        call = partial(function, *args, **kwargs)
        with _closed_by_then():
            return trio.from_thread.run_sync(call, trio_token=self._token)

    @contextmanager
    def entered(self, manager: AbstractAsyncContextManager[T]) -> Iterator[T]:
        """The block of an asynchronous context manager, which lives in a task of its own there."""
        closing, closed = trio.Event(), trio.Event()
        failures: list[Exception] = []
        is_failing = False

        async def hold(task_status: trio.TaskStatus[T]) -> None:
            is_entered = False
            try:
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

        value: T = self.run(self._nursery.start, hold)
        try:
            yield value
        except BaseException:
            is_failing = True
            raise
        finally:
            self.run_sync(closing.set)
            self.run(closed.wait)
        if failures:
            raise failures[0]


@contextmanager
def _closed_by_then() -> Iterator[None]:
    """The words of the trio client for one that is used behind its block."""
    try:
        yield
    except trio.RunFinishedError as error:
        raise trio.ClosedResourceError("the client is closed") from error


class _BlockFailed(Exception):
    """Tells the asynchronous side that the block did not end well."""
