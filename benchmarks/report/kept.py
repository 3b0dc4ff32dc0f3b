"""What is kept in `results/`, read for the page: of each figure the newest, and where from."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.harness import Row
from benchmarks.where_time_goes.profile import ORDER, Profile
from tidemark.client.histogram import Histogram


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A workload of a matrix: what it was, and the latencies of all its runs."""

    target: str
    settings: Mapping[str, Any]  # a Workload's fields, maybe of another day
    rate: float | None
    lateness_ns: int
    generator_share: Sequence[float]
    latencies: Mapping[str, Histogram]

    @property
    def name(self) -> str:
        return str(self.settings["name"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One file."""

    path: Path
    commit: str
    at: str
    machine: Mapping[str, str]
    rows: Sequence[Row]
    is_quick: bool = False
    seconds: Mapping[str, float] = field(default_factory=dict)
    workloads: Sequence[Ran] = ()
    calls: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """System calls a request, by workload and name."""
    profiles: Sequence[Profile] = ()

    @property
    def is_against(self) -> bool:
        """Whether another broker has done the same work."""
        return any(ran.target != "tidemark" for ran in self.workloads)

    def value(self, question: str, case: str) -> Row | None:
        return next((r for r in self.rows if (r.question, r.case) == (question, case)), None)


def read(path: Path) -> Result:
    """Raises `ValueError` for a file that is no result."""
    try:
        document = json.loads(path.read_text())
        return Result(
            path=path,
            commit=document["commit"],
            at=document.get("at", path.name[:10]),
            machine=document["machine"],
            rows=[Row(**row) for row in document["rows"]],
            is_quick=document.get("quick", False),
            seconds=document.get("seconds", {}),
            workloads=[_ran(workload) for workload in document.get("workloads", ())],
            calls=document.get("system calls a request", {}),
            profiles=[Profile(**profile) for profile in document.get("profiles", ())],
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is no result of `python -m benchmarks`: {error}") from error


def _ran(document: Mapping[str, Any]) -> Ran:
    return Ran(
        target=document["target"],
        settings=document["workload"],
        rate=document["rate"],
        lateness_ns=document["lateness_ns"],
        generator_share=document["generator_share"],
        latencies={
            what: Histogram.from_json(histogram)
            for what, histogram in document["latencies"].items()
        },
    )


def newest_first(directory: Path) -> list[Result]:
    """All results of a folder, by when they were made."""
    found = [read(path) for path in directory.glob("*.json")]
    return sorted(found, key=lambda result: (result.at, result.path.name), reverse=True)


def newest_rows(results: Sequence[Result]) -> Iterator[tuple[Row, Result]]:
    """Each figure once, of the newest result that has it, in the order of the newest results."""
    seen = set[tuple[str, str]]()
    for result in results:
        for row in result.rows:
            if (row.question, row.case) not in seen:
                seen.add((row.question, row.case))
                yield row, result


def newest_profiles(results: Sequence[Result]) -> list[tuple[Profile, Result]]:
    """Of each path that was looked at the newest look, at all of its brokers."""
    newest: dict[str, Result] = {}
    for result in results:
        for profile in result.profiles:
            newest.setdefault(profile.path, result)
    return [
        (profile, result)
        for path, result in sorted(newest.items(), key=lambda each: _place(each[0]))
        for profile in result.profiles
        if profile.path == path
    ]


def _place(path: str) -> int:
    """A path of another day comes last."""
    return ORDER.index(path) if path in ORDER else len(ORDER)
