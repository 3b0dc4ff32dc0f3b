"""A regular expression as a program of steps, after Thompson.

Letters are those that topics are called by; of a class of letters only these are kept, so `.`,
`[^,]` and `\\w` are plain sets.
"""

import string
from typing import Final, NoReturn, TypeAlias

from tidemark.protocol.values import dataclass

LENGTH_MAX: Final = 1_000
"""Characters of an expression: four times what a topic's name may have."""
STEPS_MAX: Final = 1_000
DEPTH_MAX: Final = 50
REPEATS_MAX: Final = 1_000
"""How often `{n,m}` may repeat something, as in RE2."""

_DIGITS: Final = frozenset(string.digits)
_WORD: Final = frozenset(string.ascii_letters + string.digits + "_")
_ALL: Final = _WORD | {".", "-"}
_CLASSES: Final = {"d": _DIGITS, "w": _WORD, "s": frozenset[str]()}
_POSIX: Final = {
    "alpha": frozenset(string.ascii_letters),
    "digit": _DIGITS,
    "alnum": _WORD - {"_"},
    "lower": frozenset(string.ascii_lowercase),
    "upper": frozenset(string.ascii_uppercase),
    "word": _WORD,
    "punct": frozenset("._-"),
    "space": frozenset[str](),
}
_UNBOUNDED: Final = -1


@dataclass(slots=True)
class Letter:
    """Goes on over one of these letters."""

    letters: frozenset[str]
    next: int


@dataclass(slots=True)
class Choice:
    """Goes on in each of these ways, without a letter."""

    ways: list[int]


@dataclass(slots=True)
class Assertion:
    """Goes on at the start of the name, or else at its end only."""

    is_start: bool
    next: int


@dataclass(slots=True)
class End:
    """Here the expression has matched."""


Step: TypeAlias = Letter | Choice | Assertion | End


@dataclass(frozen=True, slots=True)
class Program:
    """Begins at step 0."""

    steps: list[Step]
    end: int


def compile_program(text: str) -> Program:
    """Raises `ValueError` with a sentence for what is no expression, or is too much of one."""
    if len(text) > LENGTH_MAX:
        raise ValueError(f"it has {len(text)} characters, and {LENGTH_MAX} are allowed")
    compiler = _Compiler(text)
    start = compiler.whole()
    compiler.steps[0] = Choice([start.first])
    compiler.connect(start, compiler.add(End()))
    return Program(compiler.steps, len(compiler.steps) - 1)


@dataclass(slots=True)
class _Piece:
    """Part of the program: where it begins, and the steps whose way on is still open."""

    first: int
    open: list[int]


class _Compiler:
    """Reads the expression once, from left to right, writing steps as it goes."""

    def __init__(self, text: str) -> None:
        self.steps: list[Step] = [End()]  # Step 0, replaced by the way in.
        self._text = text
        self._at = 0
        self._depth = 0

    def whole(self) -> _Piece:
        piece = self._alternatives()
        if self._at < len(self._text):
            self._fail("there is no ( for this )")
        return piece

    def add(self, step: Step) -> int:
        if len(self.steps) >= STEPS_MAX:
            raise ValueError("it repeats too much")
        self.steps.append(step)
        return len(self.steps) - 1

    def connect(self, piece: _Piece, to: int) -> None:
        for position in piece.open:
            match self.steps[position]:
                case Letter() | Assertion() as step:
                    step.next = to
                case Choice(ways):
                    ways.append(to)

    def _alternatives(self) -> _Piece:
        pieces = [self._sequence()]
        while self._take("|"):
            pieces.append(self._sequence())
        if len(pieces) == 1:
            return pieces[0]
        first = self.add(Choice([piece.first for piece in pieces]))
        return _Piece(first, [position for piece in pieces for position in piece.open])

    def _sequence(self) -> _Piece:
        empty = self.add(Choice([]))
        whole = _Piece(empty, [empty])
        while self._peek() not in ("", "|", ")"):
            begins = self._at
            piece = self._atom()
            piece = self._repeated(piece, begins)
            self.connect(whole, piece.first)
            whole = _Piece(whole.first, piece.open)
        return whole

    def _repeated(self, piece: _Piece, begins: int) -> _Piece:
        """The piece as often as what follows it says; `begins` is where its text does."""
        ends = self._at
        found = self._quantifier()
        if found is None:
            return piece
        after = self._at
        if self._quantifier() is not None:
            self._fail("one repetition of another: put it into ( )")
        self._at = after
        least, most = found
        copies = [piece, *(self._copy(begins, ends) for _ in range(max(least, most, 1) - 1))]
        self._at = after
        return self._chain(copies, least, most)

    def _copy(self, begins: int, ends: int) -> _Piece:
        self._at = begins
        piece = self._atom()
        assert self._at == ends
        return piece

    def _chain(self, copies: list[_Piece], least: int, most: int) -> _Piece:
        """The copies one behind the other; from `least` on one may stop before each."""
        first = self.add(Choice([]))
        whole = _Piece(first, [first])
        stops: list[int] = []
        for number, piece in enumerate(copies):
            entry = self.add(Choice([piece.first]))
            self.connect(whole, entry)
            if number >= least:
                stops.append(entry)
            whole = _Piece(first, piece.open)
            if most == _UNBOUNDED and number == len(copies) - 1:
                again = self.add(Choice([piece.first]))
                self.connect(whole, again)
                whole = _Piece(first, [again])
        if most == 0:
            return _Piece(first, [first])
        return _Piece(first, [*whole.open, *stops])

    def _quantifier(self) -> tuple[int, int] | None:
        """How often at least and at most, if that is what comes next."""
        found = {"*": (0, _UNBOUNDED), "+": (1, _UNBOUNDED), "?": (0, 1)}.get(self._peek())
        if found is not None:
            self._at += 1
        else:
            found = self._counts()
        if found is not None:
            self._take("?")  # As few as possible, or as many: the whole name must match.
        return found

    def _counts(self) -> tuple[int, int] | None:
        end = self._text.find("}", self._at)
        if self._peek() != "{" or end < 0:
            return None
        low, comma, high = self._text[self._at + 1 : end].partition(",")
        if not (low.isdecimal() and (not high or high.isdecimal())):
            return None  # As in RE2, it is letters then.
        least = int(low)
        most = least if not comma else int(high) if high else _UNBOUNDED
        if max(least, most) > REPEATS_MAX or most not in (_UNBOUNDED, max(least, most)):
            self._fail(f"no repetition is that: at most {REPEATS_MAX} times, and m >= n")
        self._at = end + 1
        return least, most

    def _atom(self) -> _Piece:
        letter = self._next()
        match letter:
            case "(":
                return self._group()
            case "[":
                return self._letters(self._class())
            case ".":
                return self._letters(_ALL)
            case "^" | "$":
                return self._open(Assertion(letter == "^", -1))
            case "\\":
                return self._escaped()
            case "*" | "+" | "?":
                self._at -= 1
                return self._fail(f"there is nothing that {letter} could repeat")
            case _:
                return self._letters({letter} & _ALL)

    def _group(self) -> _Piece:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            self._fail(f"more than {DEPTH_MAX} ( in one another")
        if self._take("?") and not self._take(":"):
            self._fail("only (?: is known of what begins with (?")
        piece = self._alternatives()
        if not self._take(")"):
            self._fail("a ( is not closed")
        self._depth -= 1
        return piece

    def _escaped(self) -> _Piece:
        letter = self._next()
        if letter in ("A", "z"):
            return self._open(Assertion(letter == "A", -1))
        return self._letters(self._escape(letter) & _ALL)

    def _escape(self, letter: str) -> frozenset[str]:
        if letter.lower() in _CLASSES:
            found = _CLASSES[letter.lower()]
            return found if letter.islower() else _ALL - found
        if letter.isalnum() or not letter:
            self._fail(f"\\{letter} is not known")
        return frozenset(letter)

    def _class(self) -> frozenset[str]:
        is_negated = self._take("^")
        found: set[str] = set()
        is_first = True
        while is_first or self._peek() != "]":
            if not self._peek():
                self._fail("a [ is not closed")
            is_first = False
            found |= self._range()
        self._at += 1
        return _ALL - found if is_negated else _ALL & found

    def _range(self) -> frozenset[str]:
        """One letter of a class, a range of them, or a class in the class."""
        if self._text.startswith("[:", self._at):
            return self._posix()
        low = self._next()
        if low == "\\":
            letters = self._escape(self._next())
            if len(letters) != 1:
                return letters
            (low,) = letters
        if not (self._peek() == "-" and self._text[self._at + 1 : self._at + 2] not in ("", "]")):
            return frozenset(low)
        self._at += 1
        high = self._next()
        if high == "\\":
            letters = self._escape(self._next())
            if len(letters) != 1:
                self._fail("a range ends with a letter, not with a class of them")
            (high,) = letters
        if high < low:
            self._fail(f"the range {low}-{high} is empty")
        return frozenset(letter for letter in _ALL if low <= letter <= high)

    def _posix(self) -> frozenset[str]:
        end = self._text.find(":]", self._at)
        found = _POSIX.get(self._text[self._at + 2 : end]) if end > 0 else None
        if found is None:
            self._fail("no such class of letters")
        self._at = end + 2
        return found

    def _letters(self, letters: frozenset[str] | set[str]) -> _Piece:
        return self._open(Letter(frozenset(letters), -1))

    def _open(self, step: Step) -> _Piece:
        position = self.add(step)
        return _Piece(position, [position])

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _next(self) -> str:
        letter = self._peek()
        self._at += 1
        return letter

    def _take(self, letter: str) -> bool:
        is_there = self._peek() == letter
        self._at += is_there
        return is_there

    def _fail(self, sentence: str) -> NoReturn:
        raise ValueError(f"at {self._at}: {sentence}")
