"""`python -m tests.chaos`: a run of faults, judged, with a report of what was done and found."""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from typing import Final

from rich.console import Console

from tests.chaos.brokers import ChaosCluster, open_cluster
from tests.chaos.faults import FAULTS, possible
from tests.chaos.report import Report
from tests.chaos.schedule import Round, rounds
from tests.chaos.workload import Workload
from tidemark.testing.checkers import check

_RECOVERY_SECONDS_MAX: Final = 60.0
_PARTITIONS: Final = 4
_CONFIGS: Final = {"segment.bytes": "1048576", "min.insync.replicas": "2"}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--brokers", type=int, default=3)
    parser.add_argument("--only", metavar="WORD", help="only faults whose name has the word")
    parser.add_argument("--keep", type=Path, help="a directory to keep logs and data in")
    chosen = parser.parse_args()
    with ExitStack() as stack:
        directory = chosen.keep
        if directory is None:
            directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="chaos-")))
        directory.mkdir(parents=True, exist_ok=True)
        cluster = stack.enter_context(open_cluster(directory, range(1, chosen.brokers + 1)))
        return run(cluster, chosen.seed, minutes=chosen.minutes, only=chosen.only)


def run(cluster: ChaosCluster, seed: int, *, minutes: float, only: str | None = None) -> int:
    """The exit status: 1 if a promise was broken."""
    console = Console()
    reasons = possible(cluster)
    kinds = [kind for kind in FAULTS if not reasons[kind] and (only is None or only in kind)]
    console.print(f"seed {seed}; faults: {', '.join(kinds)}")
    workload = Workload(cluster.bootstrap, "chaos", _PARTITIONS)
    replicas = min(3, len(cluster.nodes))
    configs = _CONFIGS if replicas > 1 else {}
    workload.create_topic(replicas=replicas, configs=configs)
    report = Report(seed, {kind: reason for kind, reason in reasons.items() if reason})
    with workload.running(producers=3, consumers=2):
        deadline = time.monotonic() + 60 * minutes
        for each in rounds(seed, kinds):
            if time.monotonic() > deadline:
                break
            _run_round(cluster, workload, each, report, Random(f"{seed}-{report.rounds}"), console)
        cluster.heal()
        report.served_at_end = workload.acknowledges_within(_RECOVERY_SECONDS_MAX) is not None
    workload.read_to_the_end()
    report.anomalies = check(workload.history)
    report.print(console, workload.history)
    return 0 if report.is_good else 1


def _run_round(
    cluster: ChaosCluster,
    workload: Workload,
    plan: Round,
    report: Report,
    rng: Random,
    console: Console,
) -> None:
    report.rounds += 1
    with _all(cluster, plan.faults, rng) as said:
        console.print(f"round {report.rounds}: {'; '.join(said) or 'nothing'}")
        time.sleep(plan.seconds)
    cluster.heal()
    seconds = workload.acknowledges_within(_RECOVERY_SECONDS_MAX)
    report.recovered(plan.faults, said, seconds)
    time.sleep(plan.rest_seconds)


@contextmanager
def _all(cluster: ChaosCluster, kinds: Sequence[str], rng: Random) -> Iterator[list[str]]:
    with ExitStack() as stack:
        yield [stack.enter_context(FAULTS[kind](cluster, rng)) for kind in kinds]


if __name__ == "__main__":
    sys.exit(main())
