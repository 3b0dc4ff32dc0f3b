"""Whether a name begins with one of many prefixes."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence


def outermost(prefixes: Iterable[str]) -> list[str]:
    """Those that do not begin with another, in order. With one of these begins all that begins
    with one of all."""
    kept: list[str] = []
    for prefix in sorted(prefixes):
        if not kept or not prefix.startswith(kept[-1]):
            kept.append(prefix)
    return kept


def begins_with_one(name: str, prefixes: Sequence[str]) -> bool:
    """Whether it begins with one of those that are `outermost`."""
    # What lies between a prefix and a name with that prefix has the prefix too. So of these none
    # lies there: if one is a prefix of the name, it is the last that is not behind it.
    at = bisect_right(prefixes, name)
    return at > 0 and name.startswith(prefixes[at - 1])
