"""Where the time goes: the newest look at each path, as a table and as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from matplotlib.figure import Figure

from benchmarks.harness import figure as shown
from benchmarks.report.kept import Result, newest_profiles
from benchmarks.where_time_goes.profile import Profile

_SMALL: Final = 0.02
"""A step that nowhere has as much of the whole is among the others."""
_SHOWN_MIN: Final = 0.05  # microseconds
_REST: Final = "all else"
_SAY: Final = """\
Microseconds of processor time, by `python -m benchmarks.where_time_goes`: of the loop's thread by
samples of its own time, and of all other threads together. Five requests are in flight on one
connection; `flush=os` and one replica where nothing else is said. A sample belongs to the innermost
frame that is of a step: what the interpreter and the kernel do for a step is its."""


def where_time_goes(results: Sequence[Result]) -> str:
    """The section of the page; empty where nobody has looked."""
    found = newest_profiles(results)
    if not found:
        return ""
    profiles = [profile for profile, _ in found]
    commits = sorted({result.commit for _, result in found})
    rows = _rows(profiles)
    lines = [
        "## Where the time goes",
        "",
        f"At {', '.join(commits)}. {_SAY}",
        "",
        f"| µs | {' | '.join(_name(profile) for profile in profiles)} |",
        f"|---|{'---:|' * len(profiles)}",
        *(f"| {step} | {' | '.join(map(_cell, values))} |" for step, values in rows),
        f"| **all** | {' | '.join(f'**{shown(each.microseconds)}**' for each in profiles)} |",
        f"| samples | {' | '.join(f'{each.samples:,}' for each in profiles)} |",
    ]
    lines += ["", *_calls(profiles)]
    return "\n".join(lines)


def draw(figure: Figure, results: Sequence[Result]) -> None:
    """Each path as a bar of its steps."""
    profiles = [profile for profile, _ in newest_profiles(results)]
    axes = figure.subplots()
    left = [0.0] * len(profiles)
    for number, (step, values) in enumerate(_rows(profiles)):
        shares = [100 * v / p.microseconds for v, p in zip(values, profiles, strict=True)]
        axes.barh(
            range(len(profiles)),
            shares,
            left=left,
            color=f"C{number % 10}",
            hatch="" if number < 10 else "//",
            edgecolor="white",
            linewidth=0.5,
            label=step,
        )
        left = [a + b for a, b in zip(left, shares, strict=True)]
    labels = [f"{_name(each)}: {shown(each.microseconds)} µs" for each in profiles]
    axes.set_yticks(range(len(profiles)), labels, fontsize=7)
    axes.invert_yaxis()
    axes.set_xlim(0, 100)
    axes.set_xlabel("% of the broker's processor time")
    figure.legend(fontsize=6, loc="outside lower center", ncols=4)


def _rows(profiles: Sequence[Profile]) -> list[tuple[str, list[float]]]:
    """The steps, by what they have of all paths, and what each path spends there."""
    spent = [dict(profile.by_step()) for profile in profiles]
    shares = {
        step: [s.get(step, 0.0) / p.microseconds for s, p in zip(spent, profiles, strict=True)]
        for step in dict.fromkeys(step for each in spent for step in each)
    }
    told = sorted(
        (step for step in shares if max(shares[step]) >= _SMALL), key=lambda s: -sum(shares[s])
    )
    rows = [(step, [each.get(step, 0.0) for each in spent]) for step in told]
    rest = [sum(each.values()) - sum(each.get(s, 0.0) for s in told) for each in spent]
    return [*rows, (_REST, rest)]


def _name(profile: Profile) -> str:
    broker = "" if profile.broker == "leader" else f", a {profile.broker}"
    return f"{profile.title}{broker}, a {profile.unit}"


def _cell(microseconds: float) -> str:
    return shown(microseconds) if microseconds >= _SHOWN_MIN else ""


def _calls(profiles: Sequence[Profile]) -> list[str]:
    """System calls of each path, where somebody could count them."""
    told = [f"| {_name(each)} | {each.calls_text} |" for each in profiles if each.calls]
    return ["| | system calls |", "|---|---|", *told] if told else []
