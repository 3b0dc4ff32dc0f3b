"""`python -m tests.coverage_of_raft [--seeds N]`: which branches of the core no test has taken.

The tests of the core, the scenarios, the paper's rules and some seeds of the simulator's fast layer
are run with every branch counted. A branch that is taken is not yet judged: for that there are
`tests/mutations`. One that is not taken is judged by nobody.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import coverage
import pytest

_PACKAGE: Final = "tidemark.partitions.raft"
_TESTS: Final = ("tests/partitions/raft", "tests/scenarios", "tests/paper")
_PERCENT_MIN: Final = 95.0


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.coverage_of_raft", description=__doc__)
    parser.add_argument("--seeds", type=int, default=10, help="of the simulator's core layer")
    options = parser.parse_args(arguments)
    # What is imported before this counts for nothing.
    counter = coverage.Coverage(
        branch=True, source_pkgs=[_PACKAGE], data_file=None, config_file=False
    )
    with counter.collect():
        status = pytest.main(["-q", "-p", "no:cacheprovider", *_TESTS])
        broken = _simulate(options.seeds)
    percent = _report(_counted(counter))
    return 1 if status or broken or percent < _PERCENT_MIN else 0


def _simulate(seeds: int) -> int:
    """How many have broken something."""
    from tidemark.testing.simulator.knobs import Layer
    from tidemark.testing.simulator.run import simulate

    verdicts = [simulate(seed, layer=Layer.CORE) for seed in range(seeds)]
    failed = [verdict.seed for verdict in verdicts if not verdict.passed]
    print(f"{seeds} seeds of the core's layer, {len(failed)} failed: {failed}")
    return len(failed)


def _counted(counter: coverage.Coverage) -> dict[str, Any]:  # Any: JSON
    with TemporaryDirectory() as folder:
        path = Path(folder) / "coverage.json"
        counter.json_report(outfile=str(path))
        found: dict[str, Any] = json.loads(path.read_text())
        return found


def _report(found: dict[str, Any]) -> float:  # Any: JSON
    """Each branch that was not taken; how many in a hundred were."""
    totals = found["totals"]
    for name, file in sorted(found["files"].items()):
        lines = Path(name).read_text().splitlines()
        for start, end in file["missing_branches"]:
            to = f"line {end}: {lines[end - 1].strip()}" if end > 0 else "the end"
            print(f"{name}:{start}: {lines[start - 1].strip()}\n    never goes on to {to}")
    taken, there = totals["covered_branches"], totals["num_branches"]
    percent: float = 100 * taken / there
    missing = totals["missing_lines"]
    print(f"{taken} of {there} branches, {percent:.1f} %; {missing} lines not reached")
    return percent


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
