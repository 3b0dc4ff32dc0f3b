"""Coroutines in virtual time: what one does between two waits is one event."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from typing import Any, Generic, Protocol, TypeVar, TypeVarTuple, Unpack

T = TypeVar("T")
_Args = TypeVarTuple("_Args")


class Wait(Generic[T]):
    """What a coroutine awaits. `begin` is told where the outcome goes, which is once, and later."""

    __slots__ = ("begin",)

    def __init__(self, begin: Callable[[Callable[[T], None]], None]) -> None:
        self.begin = begin

    def __await__(self) -> Generator[Wait[T], T, T]:
        return (yield self)


# Any: a coroutine waits for outcomes of many types.
Task = Coroutine[Wait[Any], Any, None]


def run(task: Task) -> None:
    """Until it is over; between its waits others run."""

    def go_on(outcome: object) -> None:
        try:
            wait = task.send(outcome)
        except StopIteration:
            return
        wait.begin(go_on)

    go_on(None)


class Later(Protocol):
    """Does something after so many seconds."""

    def __call__(
        self, seconds: float, action: Callable[[Unpack[_Args]], None], *args: *_Args
    ) -> None: ...


def sleep(later: Later, seconds: float) -> Wait[None]:
    return Wait(lambda go_on: later(seconds, go_on, None))


class Tasks:
    """In the place of a nursery, for as long as its process lives."""

    def __init__(self, later: Later) -> None:
        self._later = later

    def start_soon(self, function: Callable[[Unpack[_Args]], Task], *args: *_Args) -> None:
        self._later(0.0, lambda: run(function(*args)))
