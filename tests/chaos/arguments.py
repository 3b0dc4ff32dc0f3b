"""What `python -m tests.chaos` is told."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

_DESCRIPTION: Final = "A run of faults, judged, with a report of what was done and found."
_RANDOM_SECONDS: Final = 300.0


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(prog="python -m tests.chaos", description=_DESCRIPTION)
    found.add_argument(
        "--minutes",
        type=float,
        help="without: a random schedule has each kind of fault once, and goes on for 5 minutes; "
        "the others go to their end",
    )
    found.add_argument("--seed", type=int)
    found.add_argument("--brokers", type=int, default=3)
    found.add_argument("--only", metavar="WORD", help="only faults whose name has the word")
    found.add_argument(
        "--schedule",
        default="random",
        choices=["random", "cuts", "orders", "syncs"],
        help="cuts: every subset of the links; orders: one killed, the others paused, in every "
        "order; syncs: the first, second, … sync fails",
    )
    found.add_argument("--network", default="auto", choices=["auto", "namespaces", "proxies"])
    found.add_argument(
        "--tls",
        action=argparse.BooleanOptionalAction,
        help="whether brokers speak TLS among themselves; without: with odd seeds",
    )
    found.add_argument(
        "--operator",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="have leaders and replicas moved, brokers drained and observers changed meanwhile",
    )
    found.add_argument("--rate", type=float, default=240.0, help="records a second, in all")
    found.add_argument("--keep", type=Path, help="a directory to keep logs and data in")
    found.add_argument("--json", action="store_true", help="the report on standard output")
    return found


def seconds_max(minutes: float | None, schedule: str) -> float:
    """How long a run may go on to begin rounds."""
    if minutes is None:
        return _RANDOM_SECONDS if schedule == "random" else float("inf")
    return 60 * minutes
