"""Requests with tens of thousands of elements, or many requests: answered a little at a time.

trio lets every task that can go on go on before it looks at the sockets again. Were hundreds of
clients to ask at once for a topic with thousands of partitions, as they do when its leaders have
died, other brokers would hear nothing of this one for seconds, and elect. So all such work on a
loop has a pace: once it is behind, one request goes on at a time.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Final, TypeAlias, TypeVar

import trio

A = TypeVar("A")
B = TypeVar("B")

_ELEMENTS_AT_ONCE: Final = 1_000
"""Some milliseconds of work, topics, partitions, groups and members alike."""


def portions(elements: Sequence[A]) -> Iterator[Sequence[A]]:
    """All of these in their order, as many at a time as are worked on at once."""
    at_once = _ELEMENTS_AT_ONCE
    for at in range(0, len(elements), at_once):
        yield elements[at : at + at_once]


def distinct(
    elements: Iterable[A], of: Callable[[A], Hashable] = lambda element: element
) -> list[A]:
    """The first of those that are the same, or the same by `of`, in their order.

    For requests whose answer says much of each thing that is asked about: who names one thing ten
    thousand times would have all of it as often, made on the loop and in its memory.
    """
    first: dict[Hashable, A] = {}
    for element in elements:
        first.setdefault(of(element), element)
    return list(first.values())


_Waiting: TypeAlias = dict[trio.Event, None]
"""In the order of their coming. Who is cancelled while it waits is taken out."""


class Pace:
    """How far the requests of one loop are with what it may do between two looks at its sockets."""

    __slots__ = ("_begun", "_is_due", "_left", "_new", "_token")

    def __init__(self) -> None:
        self._left = _ELEMENTS_AT_ONCE
        # They go before those that have not begun: what is begun takes memory until it is done.
        self._begun: _Waiting = {}
        self._new = dict[Hashable, _Waiting]()
        self._is_due = False
        self._token = trio.lowlevel.current_trio_token()

    def did(self, elements: int) -> None:
        self._left -= elements

    async def begin(self, client: Hashable) -> None:
        """Wait until a request of `client` may be begun: at once, unless there is much to do.

        Clients take turns: who asks for a hundred things at once waits for itself.
        """
        if self._left <= 0 or self._new:
            waiting = self._new.setdefault(client, {})
            try:
                await self._wait_among(waiting)
            finally:
                if not waiting and self._new.get(client) is waiting:
                    del self._new[client]

    async def go_on(self) -> None:
        """Wait until a request that has done much may do more."""
        await self._wait_among(self._begun)

    async def _wait_among(self, waiting: _Waiting) -> None:
        turn = trio.Event()
        waiting[turn] = None
        if not self._is_due:
            self._is_due = True
            self._token.run_sync_soon(self._let_go)
        try:
            await turn.wait()
        finally:
            waiting.pop(turn, None)  # where it was cancelled

    def _let_go(self) -> None:
        """Let one go on, or begin. What it does at once is done before the next but one is let."""
        self._left = _ELEMENTS_AT_ONCE
        if self._begun:
            _first(self._begun).set()
        elif self._new:
            client, waiting = next(iter(self._new.items()))
            del self._new[client]
            _first(waiting).set()
            if waiting:
                self._new[client] = waiting  # behind the others
        self._is_due = bool(self._begun or self._new)
        if self._is_due:
            with suppress(trio.RunFinishedError):
                self._token.run_sync_soon(self._let_go)


def _first(waiting: _Waiting) -> trio.Event:
    turn = next(iter(waiting))
    del waiting[turn]
    return turn


_PACE: Final = trio.lowlevel.RunVar[Pace]("pace")


def pace_of_loop() -> Pace:
    """That of the loop that this is called on; brokers of one loop share it."""
    try:
        return _PACE.get()
    except LookupError:
        _PACE.set(pace := Pace())
        return pace


class Steps:
    """Of one request. Others on the loop have their turn between two."""

    __slots__ = ("_left", "_pace")

    def __init__(self) -> None:
        self._left = _ELEMENTS_AT_ONCE
        self._pace = pace_of_loop()

    async def did(self, elements: int) -> None:
        """So many more were worked on."""
        self._left -= elements
        self._pace.did(elements)
        if self._left <= 0:
            self._left = _ELEMENTS_AT_ONCE
            await self._pace.go_on()

    async def each(self, elements: Iterable[A], answer: Callable[[A], B]) -> list[B]:
        """The answers, in this order; for elements that are about as much work each."""
        answers = list[B]()
        for element in elements:
            answers.append(answer(element))
            await self.did(1)
        return answers
