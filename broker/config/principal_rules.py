"""Which user a client is, by the name in its certificate: `ssl.principal.mapping.rules` (KIP-371).

    rules = rule *("," rule)
    rule  = "DEFAULT" | "RULE:" pattern "/" replacement "/" ["L" | "U"]

The first rule counts whose pattern matches the whole name; then the replacement is the user's name,
with `$1` for what the first group has matched, in lower case (`L`) or upper (`U`). `DEFAULT` is the
name as it is. A backslash stands before a slash that does not end a pattern or replacement, and
before a dollar of the replacement's own.

Patterns are Python's, as far as Java reads them alike: `\\w` is ASCII, a set in a set is refused.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from tidemark.partitions.state_machines.config_table import ConfigType
from tidemark.protocol.values import dataclass

_DEFAULT: Final = "DEFAULT"
_RULE: Final = "RULE:"
_TO_SLASH: Final = re.compile(r"((?:[^\\/]|\\.)*)/", re.DOTALL)
_SYNTAX: Final = (
    "DEFAULT and RULE:pattern/replacement/, with L or U behind it for lower or upper case, and "
    "commas between"
)


@dataclass(frozen=True, slots=True)
class AsItIs:
    """Calls a client what its certificate does."""

    def user_of(self, name: str) -> str | None:
        return name

    def __str__(self) -> str:
        return _DEFAULT


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewriting:
    """Calls those clients whose names match what it makes of the name."""

    text: str
    """As it was written."""
    pattern: re.Pattern[str]
    replacement: tuple[str | int, ...]
    """Letters, and numbers of groups."""
    case: str
    """`L`, `U` or nothing."""

    def user_of(self, name: str) -> str | None:
        """`None` if it is for others."""
        match = self.pattern.fullmatch(name)
        if match is None:
            return None
        user = "".join(
            part if isinstance(part, str) else match[part] or "" for part in self.replacement
        )
        return user.lower() if self.case == "L" else user.upper() if self.case == "U" else user

    def __str__(self) -> str:
        return self.text


PrincipalRule: TypeAlias = AsItIs | Rewriting


def first_user(rules: Iterable[PrincipalRule], name: str) -> str | None:
    """What the first rule that matches calls the client of that name; `None` if none does."""
    return next((user for rule in rules if (user := rule.user_of(name)) is not None), None)


@dataclass(frozen=True, slots=True)
class PrincipalRules:
    """The setting; nothing at all is `DEFAULT`."""

    type: ConfigType = ConfigType.STRING

    def parse(self, text: str) -> tuple[PrincipalRule, ...]:
        try:
            return tuple(_rules(text.strip() or _DEFAULT))
        except ValueError as error:
            raise ValueError(f"{_SYNTAX}; {error}") from None


def _rules(text: str) -> Iterator[PrincipalRule]:
    rest = text
    while True:
        if rest.startswith(_RULE):
            rule, rest = _rewriting(rest)
            yield rule
        elif rest.startswith(_DEFAULT):
            rest = rest.removeprefix(_DEFAULT)
            yield AsItIs()
        else:
            raise ValueError(f"{rest!r} begins with neither")
        rest = rest.lstrip()
        if not rest:
            return
        if not rest.startswith(","):
            raise ValueError(f"a comma is missing before {rest!r}")
        rest = rest[1:].lstrip()
        if not rest:
            raise ValueError("there is no rule behind the last comma")


def _rewriting(text: str) -> tuple[Rewriting, str]:
    """The rule that `text` begins with, and what is behind it."""
    begins = len(_RULE)
    pattern = _TO_SLASH.match(text, begins)
    replacement = pattern and _TO_SLASH.match(text, pattern.end())
    if pattern is None or replacement is None:
        raise ValueError(f"{text!r} has no / behind its {'replacement' if pattern else 'pattern'}")
    end = replacement.end()
    case = text[end : end + 1] if text[end : end + 1] in ("L", "U") else ""
    end += len(case)
    compiled = _compiled(pattern[1])
    rule = Rewriting(
        text=text[:end],
        pattern=compiled,
        replacement=tuple(_replacement(replacement[1], compiled.groups)),
        case=case,
    )
    return rule, text[end:]


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        with warnings.catch_warnings():
            # That a set in a set will mean something one day: in Java it does.
            warnings.simplefilter("error", FutureWarning)
            return re.compile(pattern, re.ASCII)
    except (re.error, OverflowError, RecursionError, ValueError, FutureWarning) as error:
        raise ValueError(f"{pattern!r} is no pattern: {error}") from error


def _replacement(text: str, groups: int) -> Iterator[str | int]:
    """Of `$12`, the 2 is a letter where there are fewer than twelve groups, as in Java."""
    at = 0
    while at < len(text):
        letter, at = text[at], at + 1
        if letter == "\\":
            yield text[at]
            at += 1
        elif letter == "$":
            end = at
            while _is_digit(text[end : end + 1]) and int(text[at : end + 1]) <= groups:
                end += 1
            if end == at:
                raise ValueError(
                    f"the $ in {text!r} is not followed by the number of a group, and the pattern "
                    f"has {groups}; a dollar of its own is \\$"
                )
            yield int(text[at:end])
            at = end
        else:
            yield letter


def _is_digit(letter: str) -> bool:
    return letter.isascii() and letter.isdigit()
