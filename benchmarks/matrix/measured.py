"""What a workload's runs have given, and the rows that it makes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from benchmarks.harness import Row, row_of, spread_of
from benchmarks.load.generator import Said
from benchmarks.matrix.workload import Workload
from tidemark.client.histogram import Histogram

_MB: Final = 1e6
UNITS: Final = {
    "bytes": "MB/s",
    "requests": "requests/s",
    "processor time a request": "µs",
    "processor time a MB": "ms",
    "resident memory": "MB",
    "resident memory, at most": "MB",
}
"""A metric's unit, in the order in which they are told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """What this machine did in the same run, for each metric that it has."""

    name: str
    figures: Mapping[str, float]


@dataclass(slots=True, kw_only=True)
class Measured:
    """Figures by metric, one of each run; latencies of all runs together and of each."""

    workload: Workload
    target: str = "tidemark"
    figures: dict[str, list[float]] = field(default_factory=dict)
    latencies: dict[str, list[Histogram]] = field(default_factory=dict)
    generator_share: list[float] = field(default_factory=list)
    """Of a core that the load generators took: near one, they were the limit."""
    rate: float | None = None
    """Requests a second at which the latencies were measured."""
    lateness_ns: int = 0
    """p99 of how late requests were sent."""

    def note(self, metric: str, value: float) -> None:
        self.figures.setdefault(metric, []).append(value)

    def add(self, other: Measured) -> None:
        """Take in the runs of another measurement of the same."""
        for metric, values in other.figures.items():
            self.figures.setdefault(metric, []).extend(values)
        for what, histograms in other.latencies.items():
            self.latencies.setdefault(what, []).extend(histograms)
        self.generator_share += other.generator_share
        self.rate = other.rate
        self.lateness_ns = max(self.lateness_ns, other.lateness_ns)

    def note_work(
        self,
        requests: int,
        size_bytes: int,
        seconds: float,
        cpu_seconds: float,
        *,
        handled: int | None = None,
    ) -> None:
        """One run: what was done, how long it took, and the brokers' processor time.

        That was for `handled` requests of the same kind, if these are more: a thousand connections
        have thousands under way when the clock stops, which are a good part of a second's work.
        """
        self.note("bytes", size_bytes / seconds / _MB)
        self.note("requests", requests / seconds)
        counted = cpu_seconds if handled is None else cpu_seconds * requests / handled
        self.note("processor time a request", counted / requests * 1e6)
        self.note("processor time a MB", counted / (size_bytes / _MB) * 1e3)

    def rows(self, limit: Limit | None) -> Iterator[Row]:
        for metric in [name for name in UNITS if name in self.figures]:
            values = self.figures[metric]
            bound = None if limit is None else limit.figures.get(metric)
            against = None if limit is None else limit.name
            name, unit = self.workload.name, UNITS[metric]
            yield row_of(metric, name, unit, values, against=against, bound=bound)
        for what, histograms in self.latencies.items():
            yield from latency_rows(what, self.workload.name, histograms)

    def to_json(self) -> dict[str, object]:
        return {
            "target": self.target,
            "workload": self.workload.settings,
            "rate": self.rate,
            "lateness_ns": self.lateness_ns,
            "generator_share": self.generator_share,
            "latencies": {
                what: merged(histograms).to_json() for what, histograms in self.latencies.items()
            },
        }


def latency_rows(
    what: str, case: str, histograms: Sequence[Histogram], **aims: float
) -> Iterator[Row]:
    """Percentiles of all runs together; the spread is that of the single runs' percentiles.

    `aims` are by percentile, as in `p99=8`, in ms and at most.
    """
    for percent, value in merged(histograms).percentiles():
        name = f"p{percent:g}"
        each = [histogram.percentile(percent) / 1e6 for histogram in histograms]
        yield Row(
            question=f"{what}, {name}",
            case=case,
            value=value / 1e6,
            unit="ms",
            runs=len(histograms),
            spread=spread_of(each),
            low=min(each),
            high=max(each),
            aim=aims.get(name),
            at_most=name in aims,
        )


def histogram_of(seconds: Iterable[float]) -> Histogram:
    histogram = Histogram()
    for each in seconds:
        histogram.record(round(each * 1e9))
    return histogram


def merged(histograms: Sequence[Histogram]) -> Histogram:
    total = Histogram()
    for histogram in histograms:
        total.add(histogram)
    return total


def delivered(
    arrivals: Sequence[Sequence[int]], *, first: int, each: int, began_ns: int, rate: float
) -> Histogram:
    """From when a batch was due until a reader had it.

    `arrivals` says when a reader had all below an offset. Batch n of a schedule of `rate` a
    second ends at `first + (n + 1) * each`, and was due at `began_ns + n / rate`.
    """
    histogram, number, gap = Histogram(), 0, 1e9 / rate
    for offset, at in arrivals:
        while first + (number + 1) * each <= offset:
            histogram.record(at - began_ns - int(number * gap))
            number += 1
    return histogram


def histogram_in(said: Said, name: str = "latency") -> Histogram:
    return Histogram.from_json(said[name])
