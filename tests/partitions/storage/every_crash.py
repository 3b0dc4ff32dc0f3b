"""Every disk that a loss of power may leave: which unsynced changes it has, and how they are torn.

`MemoryFiles.after_crash` asks chance. Here each of its questions is answered in every way, one
after the other, as long as there are not too many ways (ALICE, OSDI 2014, for our own files).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from random import Random

from tidemark.testing.memory_files import MemoryFiles

_ALL_MAX = 4
"""A number out of more than so many stands for all: the first, the last and one between."""


class EveryWay(Random):
    """Answers like chance, and differently each time, until there is nothing left to answer."""

    def __init__(self) -> None:
        super().__init__(0)
        self._answers: list[int] = []
        self._counts: list[int] = []
        self._asked = 0

    def begin(self) -> None:
        self._asked = 0

    def next_way(self) -> bool:
        """Go on to the next way; false if that was the last."""
        del self._answers[self._asked :], self._counts[self._asked :]
        while self._answers and self._answers[-1] + 1 == self._counts[-1]:
            self._answers.pop()
            self._counts.pop()
        if not self._answers:
            return False
        self._answers[-1] += 1
        return True

    def random(self) -> float:
        return (0.25, 0.75)[self._answer(2)]

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        assert stop is None
        assert step == 1
        return self._answer(start)

    def randint(self, a: int, b: int) -> int:
        values = range(a, b + 1) if b - a <= _ALL_MAX else (a, (a + b) // 2, b)
        return values[self._answer(len(values))]

    def _answer(self, count: int) -> int:
        if self._asked == len(self._answers):
            self._answers.append(0)
            self._counts.append(count)
        assert self._counts[self._asked] == count, "the same question is asked otherwise"
        self._asked += 1
        return self._answers[self._asked - 1]


def every_crash(files: MemoryFiles, *, ways_max: int = 40) -> Iterator[MemoryFiles]:
    """Each different disk that a crash may leave; of more than `ways_max` ways, as many by chance.

    A kill, which leaves all, is among them.
    """
    seen: set[Hashable] = set()
    every = EveryWay()
    ways = 0
    is_more = True
    while is_more and ways < ways_max:
        every.begin()
        disk = files.after_crash(every)
        ways += 1
        is_more = every.next_way()
        if (content := _content(disk)) not in seen:
            seen.add(content)
            yield disk
    for seed in range(ways_max if is_more else 0):
        disk = files.after_crash(Random(seed))
        if (content := _content(disk)) not in seen:
            seen.add(content)
            yield disk


def _content(files: MemoryFiles, path: str = "") -> Hashable:
    """What a process would find."""
    names = sorted(files.sizes(path))
    return (
        tuple((name, files.open(f"{path}/{name}").pread(1 << 30, 0)) for name in names),
        tuple(
            (name, _content(files, f"{path}/{name}")) for name in sorted(files.subdirectories(path))
        ),
    )
