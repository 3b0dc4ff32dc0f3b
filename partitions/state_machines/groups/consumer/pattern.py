"""Topics named by a regular expression, which is a stranger's: it costs what it is long, no more.

Python's `re` backtracks, and an expression of twenty characters can keep it busy for ever. This
is RE2's way instead: the expression becomes a machine whose possible states are followed all at
once, and the sets of states that come up are remembered, so that a name costs one look-up a
character. What RE2 has no words for (references back, looking ahead and behind) is refused, and so
are flags. A topic's whole name must match.
"""

from collections.abc import Iterable
from typing import Final

from tidemark.partitions.state_machines.groups.consumer.pattern_program import (
    Assertion,
    Choice,
    Letter,
    Program,
    compile_program,
)
from tidemark.partitions.state_machines.groups.topic_view import MayKnow
from tidemark.protocol.errors import ErrorCode, RequestError

SETS_KEPT_MAX: Final = 1_000
"""Sets of states, or of names, remembered; with more, all are forgotten and remembered anew."""

States = frozenset[int]


def check_pattern(text: str) -> None:
    """Raises `RequestError` INVALID_REGULAR_EXPRESSION, with what is wrong and where."""
    _compile(text)


class Pattern:
    """One expression, and which of the topics it names."""

    def __init__(self, text: str) -> None:
        self._program = _compile(text)
        self._next: dict[tuple[States, str], States] = {}
        self._known: dict[str, bool] = {}
        self._version = -1
        self.matching: frozenset[str] = frozenset()
        self._shown: dict[MayKnow, frozenset[str]] = {}
        self.heard: MayKnow | None = None
        """Of the member that was heard last, and who others are taken for until they are."""

    def look_at(self, names: Iterable[str], version: int) -> None:
        """Find the names that match, unless they are those of the last time."""
        if version == self._version:
            return
        self._version = version
        known = self._known
        self._known = {name: known[name] if name in known else self.matches(name) for name in names}
        self.matching = frozenset(name for name, does in self._known.items() if does)
        self._shown.clear()

    def shown_to(self, may_know: MayKnow | None) -> frozenset[str]:
        """Those that match and that somebody may know of. It is not asked again before the next
        version of the topics."""
        may_know = may_know or self.heard
        if may_know is None:
            return self.matching
        shown = self._shown.get(may_know)
        if shown is None:
            if len(self._shown) >= SETS_KEPT_MAX:
                self._shown.clear()
            shown = self._shown[may_know] = frozenset(filter(may_know, self.matching))
        return shown

    def matches(self, name: str) -> bool:
        states = self._reach([0], at_start=True, at_end=not name)
        for position, letter in enumerate(name):
            at_end = position == len(name) - 1
            # At the end more is possible than elsewhere, so those sets are no others' to reuse.
            states = self._after(states, letter) if not at_end else self._step(states, letter, True)
        return self._program.end in states

    def _after(self, states: States, letter: str) -> States:
        found = self._next.get((states, letter))
        if found is None:
            if len(self._next) >= SETS_KEPT_MAX:
                self._next.clear()
            found = self._next[states, letter] = self._step(states, letter, False)
        return found

    def _step(self, states: States, letter: str, at_end: bool) -> States:
        steps = self._program.steps
        starts = [
            each.next
            for each in (steps[state] for state in states)
            if isinstance(each, Letter) and letter in each.letters
        ]
        return self._reach(starts, at_start=False, at_end=at_end)

    def _reach(self, starts: Iterable[int], *, at_start: bool, at_end: bool) -> States:
        """All states that are reached without a letter."""
        steps, seen, left = self._program.steps, set[int](), list(starts)
        while left:
            state = left.pop()
            if state in seen:
                continue
            seen.add(state)
            match steps[state]:
                case Choice(ways):
                    left += ways
                case Assertion(is_start, next_):
                    if at_start if is_start else at_end:
                        left.append(next_)
        return frozenset(seen)


def _compile(text: str) -> Program:
    try:
        return compile_program(text)
    except ValueError as error:
        raise RequestError(
            ErrorCode.INVALID_REGULAR_EXPRESSION, f"the regular expression {text[:200]!r}: {error}"
        ) from error
