"""What was injected, how often, how long the cluster took to serve again, and what was found."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table

from tidemark.testing.checkers import Anomaly, History, Outcome

_SHOWN_MAX = 20


class Report:
    """Filled while the run goes on."""

    def __init__(self, seed: int, left_out: Mapping[str, str]) -> None:
        self.seed = seed
        self.rounds = 0
        self.anomalies: Sequence[Anomaly] = ()
        self.served_at_end = False
        self._left_out = left_out
        self._seconds: dict[str, list[float]] = {}
        self._stuck: Counter[str] = Counter()
        self._wrong: list[str] = []

    @property
    def is_good(self) -> bool:
        return not (self.anomalies or self._stuck or self._wrong) and self.served_at_end

    def recovered(self, faults: Sequence[str], said: Sequence[str], seconds: float | None) -> None:
        """A round is over; a send was acknowledged so long after its end, or not at all."""
        self._wrong += [each for each in said if each.isupper() or "IT GOES ON" in each]
        for fault in faults or ("nothing",):
            times = self._seconds.setdefault(fault, [])
            if seconds is None:
                self._stuck[fault] += 1
            else:
                times.append(seconds)

    def print(self, console: Console, history: History) -> None:
        table = Table(title=f"seed {self.seed}: {self.rounds} rounds")
        for heading in ("fault", "times", "served again after, p50", "at most", "not at all"):
            table.add_column(heading, justify="left" if heading == "fault" else "right")
        for fault, times in sorted(self._seconds.items()):
            shown = [f"{statistics.median(times):.2f} s", f"{max(times):.2f} s"] if times else []
            count = len(times) + self._stuck[fault]
            table.add_row(fault, str(count), *(shown or ["", ""]), str(self._stuck[fault] or ""))
        for fault, reason in self._left_out.items():
            table.add_row(fault, "-", reason)
        console.print(table)
        self._print_findings(console, history)

    def _print_findings(self, console: Console, history: History) -> None:
        outcomes = Counter(send.outcome for send in history.sends)
        polled = sum(len(poll.records) for poll in history.polls)
        console.print(
            f"{len(history.sends):,} sends ({outcomes[Outcome.OK]:,} acknowledged, "
            f"{outcomes[Outcome.INFO]:,} unknown), {polled:,} records polled"
        )
        for wrong in self._wrong:
            console.print(f"wrong: {wrong}")
        if not self.served_at_end:
            console.print("the cluster did not serve in the end")
        kinds = Counter(anomaly.kind for anomaly in self.anomalies)
        console.print(f"anomalies: {dict(kinds) or 'none'}")
        for anomaly in self.anomalies[:_SHOWN_MAX]:
            console.print(f"  {anomaly}")
