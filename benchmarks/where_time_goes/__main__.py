"""The command: looks at the paths that are named, tells of them, and keeps what it found."""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import where_time_goes
from benchmarks.harness import save
from benchmarks.where_time_goes.looking import look_at
from benchmarks.where_time_goes.paths import PATHS
from benchmarks.where_time_goes.profile import Profile


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.where_time_goes", description=where_time_goes.__doc__
    )
    parser.add_argument("paths", nargs="*", metavar="PATH", help=", ".join(PATHS))
    parser.add_argument("--no-save", action="store_true", help="tell, and keep nothing")
    chosen = parser.parse_args()
    if unknown := [path for path in chosen.paths if path not in PATHS]:
        parser.error(f"there is no path {unknown[0]}: there are {', '.join(PATHS)}")
    console, found = Console(), list[Profile]()
    for path in chosen.paths or PATHS:
        for profile in _looked_at(path):
            found.append(profile)
            console.print(_table(profile))
    if not chosen.no_save:
        kept = save((), details={"profiles": [asdict(profile) for profile in found]})
        console.print(f"kept: {kept}")
    return 0


def _looked_at(path: str) -> Iterator[Profile]:
    with tempfile.TemporaryDirectory(prefix="tidemark-profile-") as folder:
        yield from look_at(path, Path(folder))


def _table(profile: Profile) -> Table:
    of_loop, everything = profile.loop_microseconds, profile.microseconds
    table = Table(
        "step",
        "µs",
        "share",
        title=f"{profile.title}, {profile.broker}: {everything:,.1f} µs a {profile.unit}",
        caption=profile.calls_text,
    )
    for step, microseconds in profile.by_step():
        table.add_row(step, f"{microseconds:,.1f}", f"{microseconds / everything:.1%}")
    table.add_section()
    table.add_row("the loop's thread", f"{of_loop:,.1f}", f"{profile.samples} samples")
    return table


if __name__ == "__main__":
    sys.exit(main())
