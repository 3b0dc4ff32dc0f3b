"""`python -m tests.chaos`: a run of faults, judged, with a report of what was done and found."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from random import Random
from typing import Final

from rich.console import Console

from tests.chaos.arguments import parser, seconds_max
from tests.chaos.brokers import TIDEMARK, ChaosCluster, open_cluster
from tests.chaos.disks import go_apart
from tests.chaos.doubled import producers_of
from tests.chaos.ending import Ending
from tests.chaos.faults import FAULTS, possible
from tests.chaos.judge import judge, judge_group, unexplained
from tests.chaos.operating import Operator
from tests.chaos.operations import Place
from tests.chaos.report import Report
from tests.chaos.schedule import Injection, Round, schedules
from tests.chaos.unread import unread
from tests.chaos.workload.promise import CACHED, majority_of
from tests.chaos.workload.stream import PARTITIONS
from tests.chaos.workload.workload import Workload, problems_of
from tidemark.protocol.types import Offset, TopicPartition
from tidemark.testing.process import BrokerDidNotStart

_RECOVERY_SECONDS_MAX: Final = 60.0
_WARM_UP_SECONDS: Final = 30.0


def main() -> int:
    chosen = parser().parse_args()
    seed = int(time.time()) if chosen.seed is None else chosen.seed
    directory = chosen.keep or Path(tempfile.mkdtemp(prefix="chaos-"))
    directory.mkdir(parents=True, exist_ok=True)
    console = Console(stderr=chosen.json)
    nodes = range(1, chosen.brokers + 1)
    tls = seed % 2 == 1 if chosen.tls is None else chosen.tls
    ending = Ending()
    with (
        ending.listening(),
        open_cluster(directory, nodes, network_kind=chosen.network, speaks_tls=tls) as cluster,
    ):
        run = _Run(cluster, chosen, seed, console, ending)
        run.run()
        report = run.report
        report.print(console, run.workload)
        if chosen.json:
            print(report.as_json(run.workload))
        if not report.is_good:
            _keep_data(cluster)
            (directory / "report.json").write_text(report.as_json(run.workload))
    if report.is_good and chosen.keep is None:
        shutil.rmtree(directory)
    else:
        console.print(f"everything is kept in {directory}")
    return 0 if report.is_good else 1


class _Run:
    """One run, from warming up to the verdict."""

    def __init__(
        self,
        cluster: ChaosCluster,
        chosen: argparse.Namespace,
        seed: int,
        console: Console,
        ending: Ending,
    ) -> None:
        reasons = possible(cluster)
        word = chosen.only or ""
        faults = {
            kind: fault for kind, fault in FAULTS.items() if not reasons[kind] and word in kind
        }
        left_out = {kind: reason for kind, reason in reasons.items() if reason and word in kind}
        self._cluster = cluster
        self._seconds_max = seconds_max(chosen.minutes, chosen.schedule)
        self._rounds_min = len(faults) if chosen.minutes is None else 0
        self._seed = seed
        self._console = console
        self._ending = ending
        possible_schedules = schedules(seed, cluster.nodes, faults)
        if chosen.schedule not in possible_schedules:
            raise SystemExit(f"this machine cannot have the schedule {chosen.schedule}")
        self._schedule = possible_schedules[chosen.schedule]
        self.workload = Workload(
            cluster.bootstrap,
            nodes=cluster.nodes,
            sends_per_second=chosen.rate,
            seed=seed,
        )
        self.operator = self._operator() if self._may_operate(chosen) else None
        self.report = Report(seed, chosen.schedule, _machine(cluster), left_out, self.operator)
        if chosen.schedule == "random":
            self.report.planned(faults)
        self._said: list[str] = []
        """What the faults were."""
        self._began = time.monotonic()
        console.print(f"seed {seed}; {', '.join(self.report.machine)}")
        console.print(f"faults: {', '.join(faults)}")

    def run(self) -> None:
        with self.workload.running():
            self.workload.served_since(time.monotonic(), _WARM_UP_SECONDS)
            try:
                with self.operator.running() if self.operator else nullcontext():
                    self._rounds()
            except BrokerDidNotStart as error:
                self.report.wrong.append(f"a broker does not start: {error}")
            self._judge_operator()
        self.workload.read_to_the_end()
        self.report.wrong += problems_of(self.workload.streams) + self.workload.problems
        self.report.wrong += unexplained(self.workload.streams, self._said)
        data_dirs = {node: broker.data_dir for node, broker in self._cluster.brokers.items()}
        for stream in self.workload.streams:
            verdict = judge(stream, self.report.calm, self._producers_of)
            self.report.verdicts.append(verdict)
            if verdict.anomalies or stream.unread:
                self.report.unread += unread(stream.history, data_dirs)
        group = judge_group(self.workload.group, self.workload.synced, self._producers_of)
        self.report.verdicts.append(group)

    def _producers_of(self, partition: TopicPartition) -> dict[Offset, tuple[int, int]]:
        brokers = self._cluster.brokers.values()
        return producers_of([broker.data_dir for broker in brokers], partition)

    def _may_operate(self, chosen: argparse.Namespace) -> bool:
        return bool(chosen.operator and self.workload.movable)

    def _operator(self) -> Operator:
        place = Place(
            self._cluster.nodes,
            topics=lambda: [stream.topic for stream in self.workload.current],
            movable=lambda: [stream.topic for stream in self.workload.movable],
            replicas=self.workload.replicas_of,
            partitions=PARTITIONS,
        )
        log_path = self._cluster.directory / "operator.log"
        return Operator(self._cluster.bootstrap, place, self._seed, log_path)

    def _judge_operator(self) -> None:
        if self.operator is not None and self.operator.problems:
            self.report.wrong += self.operator.problems
            self._keep_status()

    def _rounds(self) -> None:
        calm_since = time.monotonic()
        for plan in self._schedule():
            if self._ending.told_by:
                self.report.ended_by = self._ending.told_by
                self._say(f"ended by {self._ending.told_by}; what there is is judged …")
                break
            is_over = time.monotonic() - self._began > self._seconds_max
            if is_over and self.report.rounds >= self._rounds_min:
                self.report.planned(each.kind for each in plan.faults)
                self.report.is_cut_short = self.report.schedule != "random"
                break
            self.report.calm.append((calm_since, time.monotonic()))
            self._round(plan, Random(f"{self._seed}-{self.report.rounds}"))
            calm_since = time.monotonic()
            self._ending.sleep(plan.rest_seconds)
        self.report.calm.append((calm_since, float("inf")))

    def _round(self, plan: Round, rng: Random) -> None:
        report = self.report
        report.rounds += 1
        began = time.monotonic()
        self._tell_operator(is_fault_on=bool(plan.faults))
        with _all(self._cluster, plan.faults, rng) as said:
            self._say(f"{'; '.join(said) or 'nothing'} …")
            self._said += said
            is_so_since = time.monotonic()
            self._ending.sleep(plan.seconds)
            if plan.is_served and not self._ending.told_by:
                self._judge_served_beside(said, is_so_since)
        self._tell_operator(is_fault_on=False)
        healed = time.monotonic()
        self._cluster.heal()
        lost = [each for at, each in self._cluster.power_cuts if at >= began]
        if len(frozenset().union(*lost)) >= majority_of(CACHED, len(self._cluster.nodes)):
            self.workload.majority_lost_power(began)
        seconds = self.workload.served_since(healed, _RECOVERY_SECONDS_MAX)
        report.recovered([each.kind for each in plan.faults], said, seconds)
        if seconds is None:
            self._say("NOT SERVED AGAIN: " + ", ".join(self.workload.unserved_since(healed)))
            self._keep_status()
        else:
            self._say(f"serves again after {seconds:.1f} s")
        self.workload.renew()

    def _judge_served_beside(self, said: Sequence[str], started: float) -> None:
        seconds = self.workload.served_beside(started, _RECOVERY_SECONDS_MAX)
        self.report.served_beside(said, seconds)
        if seconds is None:
            self._say("NOT SERVED MEANWHILE")
            self._keep_status()

    def _tell_operator(self, *, is_fault_on: bool) -> None:
        if self.operator is not None:
            self.operator.is_fault_on = is_fault_on

    def _keep_status(self) -> None:
        """What an operator would see now."""
        command = [*TIDEMARK, "cluster", "status", "-o", "wide"]
        command += ["--bootstrap", self._cluster.bootstrap]
        done = subprocess.run(command, capture_output=True, text=True, check=False, process_group=0)
        path = self._cluster.directory / f"status-in-round-{self.report.rounds}"
        path.write_text(done.stdout + done.stderr)

    def _say(self, what: str) -> None:
        minutes, seconds = divmod(int(time.monotonic() - self._began), 60)
        self._console.print(
            f"{minutes:3}:{seconds:02}  round {self.report.rounds}: {what}",
            soft_wrap=True,
            highlight=False,
        )


@contextmanager
def _all(
    cluster: ChaosCluster, injections: Sequence[Injection], rng: Random
) -> Iterator[list[str]]:
    with ExitStack() as stack:
        yield [stack.enter_context(each.fault(cluster, rng)) for each in injections]


def _machine(cluster: ChaosCluster) -> list[str]:
    can_fail = all(broker.disk.can_fail for broker in cluster.brokers.values())
    return [
        cluster.network.name,
        "ext4 disks" if can_fail else "folders for disks",
        "TLS between brokers" if cluster.speaks_tls else "no TLS between brokers",
    ]


def _keep_data(cluster: ChaosCluster) -> None:
    """The brokers' directories as they are now: disks of their own go with the run."""
    for broker in cluster.brokers.values():
        broker.kill_if_running()
        kept = cluster.directory / f"data-{broker.node}"
        shutil.copytree(broker.data_dir, kept, dirs_exist_ok=True)


if __name__ == "__main__":
    go_apart()
    sys.exit(main())
