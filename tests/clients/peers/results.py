"""What came of one test of a suite, and the table of all of them."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatch


class Outcome(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    NOT_APPLICABLE = "not applicable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    test: str
    outcome: Outcome
    reason: str = ""


def reason_for(test: str, reasons: Mapping[str, str]) -> str | None:
    """The reason of the first pattern that a test's name matches."""
    return next((why for pattern, why in reasons.items() if fnmatch(test, pattern)), None)


def table(results: Iterable[Result]) -> str:
    """Markdown: how many of each, then all that did not pass, those of one reason together."""
    results = list(results)
    counts = Counter(result.outcome for result in results)
    lines = [", ".join(f"{counts[outcome]} {outcome}" for outcome in Outcome) + ".", ""]
    by_reason: dict[tuple[Outcome, str], list[str]] = {}
    for result in results:
        if result.outcome is not Outcome.PASSED:
            by_reason.setdefault((result.outcome, result.reason), []).append(result.test)
    if by_reason:
        lines += ["| test | outcome | reason |", "|---|---|---|"]
    for (outcome, reason), tests in sorted(by_reason.items()):
        names = ", ".join(f"`{test}`" for test in sorted(tests))
        lines.append(f"| {names} | {outcome} | {_one_line(reason)} |")
    return "\n".join(lines) + "\n"


def _one_line(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
