"""A request with tens of thousands of elements, answered a little at a time."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Final, TypeVar

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


class Steps:
    """Of one request. Others on the loop have their turn between two."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = _ELEMENTS_AT_ONCE

    async def did(self, elements: int) -> None:
        """So many more were worked on."""
        self._left -= elements
        if self._left <= 0:
            self._left = _ELEMENTS_AT_ONCE
            await trio.lowlevel.checkpoint()

    async def each(self, elements: Iterable[A], answer: Callable[[A], B]) -> list[B]:
        """The answers, in this order; for elements that are about as much work each."""
        answers = list[B]()
        for element in elements:
            answers.append(answer(element))
            await self.did(1)
        return answers
