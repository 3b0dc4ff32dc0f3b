"""What was injected, how often, how long the cluster took to serve again, and what was found."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from rich.console import Console
from rich.table import Table

from tests.chaos.faults.fault import WRONG
from tests.chaos.judge import Interval, Verdict
from tests.chaos.operating import Operator, lines_of
from tests.chaos.workload.workload import Workload
from tidemark.testing.checkers import Outcome

_SHOWN_MAX = 20


@dataclass(slots=True)
class Kind:
    """One kind of fault: how often, and the seconds from its end until all partitions served."""

    seconds: list[float] = field(default_factory=list)
    stuck: int = 0

    @property
    def times(self) -> int:
        return len(self.seconds) + self.stuck


class Report:
    """Filled while the run goes on."""

    def __init__(
        self,
        seed: int,
        schedule: str,
        machine: Sequence[str],
        left_out: Mapping[str, str],
        operator: Operator | None,
    ) -> None:
        self.seed = seed
        self.schedule = schedule
        self.machine = machine
        """How the brokers were kept apart."""
        self.rounds = 0
        self.is_cut_short = False
        """Whether a schedule with an end was not gone through to it."""
        self.ended_by = ""
        """The signal that ended the run before its time, if one did."""
        self.calm: list[Interval] = []
        self.wrong: list[str] = []
        self.verdicts: list[Verdict] = []
        self.unread: list[str] = []
        """Of topics with which something is wrong: what nobody has read, and where it lies."""
        self._left_out = left_out
        self._operator = operator
        self._kinds: dict[str, Kind] = {}
        self._beside: list[float] = []
        """The seconds until the others served while one was away."""

    @property
    def is_good(self) -> bool:
        return not self.wrong and not any(verdict.anomalies for verdict in self.verdicts)

    def planned(self, kinds: Iterable[str]) -> None:
        """Kinds that there may be no time for: the report then says so."""
        for name in kinds:
            self._kinds.setdefault(name, Kind())

    def recovered(self, kinds: Sequence[str], said: Sequence[str], seconds: float | None) -> None:
        """A round is over; every partition served so long after its end, or not at all."""
        self.wrong += [each for each in said if each.startswith(WRONG)]
        if seconds is None:
            self.wrong.append(f"round {self.rounds}: not served again after {'; '.join(said)}")
        for name in kinds or ("nothing",):
            kind = self._kinds.setdefault(name, Kind())
            if seconds is None:
                kind.stuck += 1
            else:
                kind.seconds.append(seconds)

    def served_beside(self, said: Sequence[str], seconds: float | None) -> None:
        """One broker is away; the others served so long after that had begun, or do not."""
        if seconds is None:
            self.wrong.append(f"round {self.rounds}: not served beside {'; '.join(said)}")
        else:
            self._beside.append(seconds)

    def print(self, console: Console, workload: Workload) -> None:
        title = f"seed {self.seed}, schedule {self.schedule}, {self.rounds} rounds"
        title += " and no time for the rest" if self.is_cut_short else ""
        title += f", cut short by {self.ended_by}" if self.ended_by else ""
        table = Table(title=f"{title}; {', '.join(self.machine)}")
        for heading in ("fault", "times", "serves again after, p50", "at most", "not at all"):
            table.add_column(heading, justify="left" if heading == "fault" else "right")
        for name, kind in sorted(self._kinds.items()):
            times = kind.seconds
            shown = [f"{statistics.median(times):.2f} s", f"{max(times):.2f} s"] if times else []
            without = ["" if kind.times else "there was no time for it", ""]
            table.add_row(name, str(kind.times), *(shown or without), str(kind.stuck or ""))
        for name, reason in self._left_out.items():
            table.add_row(name, "-", reason)
        console.print(table)
        for line in [*self._beside_lines(), *self._operations(), *self._figures(workload)]:
            console.print(line, soft_wrap=True)
        self._print_findings(console)

    def _beside_lines(self) -> list[str]:
        if not self._beside:
            return []
        times, most = len(self._beside), max(self._beside)
        return [f"one was away, and the others served meanwhile: {times} times, in {most:.1f} s"]

    def _operations(self) -> list[str]:
        if self._operator is None:
            return []
        left = self._operator.left
        end = "nobody could say" if left is None else "; ".join(left) or "nothing"
        return [*lines_of(self._operator.tallies), f"open or drained at the end: {end}"]

    def _figures(self, workload: Workload) -> list[str]:
        lines = []
        allowed = {verdict.topic: verdict.lost_as_allowed for verdict in self.verdicts}
        doubled = {verdict.topic: verdict.doubled_by_client for verdict in self.verdicts}
        for stream in workload.streams:
            outcomes = Counter(send.outcome for send in stream.history.sends)
            polled = sum(len(poll.records) for poll in stream.history.polls)
            lost, twice = allowed.get(stream.topic, 0), doubled.get(stream.topic, 0)
            lines.append(
                f"{stream.topic}: {len(stream.history.sends):,} sends "
                f"({outcomes[Outcome.OK]:,} acknowledged, {outcomes[Outcome.INFO]:,} unknown), "
                f"{polled:,} records polled"
                + (f", {lost} lost with their leader" if lost else "")
                + (f", {len(stream.timeouts)} timed out" if stream.timeouts else "")
                + (f", {twice} doubled by librdkafka after that" if twice else "")
                + (f", {len(stream.corrupt)} corrupt batches met" if stream.corrupt else "")
                + (f", {stream.deadlocked} deadlocked in librdkafka" if stream.deadlocked else "")
                + (", judged until a majority lost its power" if stream.lost_power_at else "")
            )
        group = workload.group
        polled = sum(len(poll.records) for poll in group.polls)
        lines.append(
            f"the group: {group.members} members, {group.rebalances} assignments, {polled:,} "
            f"records polled, {len(group.commits.made):,} commits, looked at "
            f"{len(group.commits.seen):,} times"
        )
        return lines

    def _print_findings(self, console: Console) -> None:
        for wrong in self.wrong:
            console.print(f"wrong: {wrong}", style="red", soft_wrap=True)
        found = [(each.topic, what) for each in self.verdicts for what in each.anomalies]
        console.print(f"anomalies: {len(found) or 'none'}")
        for topic, what in found[:_SHOWN_MAX]:
            console.print(f"  {topic}: {what}", style="red", soft_wrap=True, highlight=False)
        for line in self.unread:
            console.print(line, style="red", soft_wrap=True, highlight=False)

    def as_json(self, workload: Workload) -> str:
        return json.dumps(
            {
                "seed": self.seed,
                "schedule": self.schedule,
                "machine": list(self.machine),
                "rounds": self.rounds,
                "cut_short": self.is_cut_short,
                "ended_by": self.ended_by or None,
                "good": self.is_good,
                "faults": {
                    name: {
                        "times": kind.times,
                        "stuck": kind.stuck,
                        "seconds_median": statistics.median(kind.seconds or [0.0]),
                        "seconds_max": max(kind.seconds, default=None),
                    }
                    for name, kind in sorted(self._kinds.items())
                },
                "served_beside_seconds_max": max(self._beside, default=None),
                "left_out": dict(self._left_out),
                "operator": self._operations_as_json(),
                "topics": {
                    stream.topic: {
                        "sends": len(stream.history.sends),
                        "acknowledged": sum(
                            send.outcome is Outcome.OK for send in stream.history.sends
                        ),
                        "polled": sum(len(poll.records) for poll in stream.history.polls),
                    }
                    for stream in workload.streams
                },
                "group": {
                    "members": workload.group.members,
                    "assignments": workload.group.rebalances,
                    "commits": len(workload.group.commits.made),
                },
                "wrong": self.wrong,
                "unread": self.unread,
                "lost_with_leader": sum(each.lost_as_allowed for each in self.verdicts),
                "anomalies": {each.topic: each.anomalies for each in self.verdicts},
            },
            indent=2,
        )

    def _operations_as_json(self) -> dict[str, object] | None:
        if self._operator is None:
            return None
        return {
            "operations": {
                kind: {
                    "times": tally.times,
                    "beside_faults": tally.beside_faults,
                    "outcomes": dict(tally.outcomes),
                }
                for kind, tally in sorted(self._operator.tallies.items())
            },
            "open_at_the_end": self._operator.left,
        }
