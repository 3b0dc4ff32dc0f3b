"""`python -m tests.mutations.simulator [WORD ...]`: which seed notices that a rule is broken.

The tests that `python -m tests.mutations` runs were written for their rules. This asks how strong
the simulator is, which knows of none of them (`hunting`). The `PLANTED` are tried, or those of all
mutations whose names have the words. With `--write`, each row of the table in `docs/simulator.md`
is made anew as soon as it is known, and nothing is lost when this is stopped. Two of these may
go on side by side, with `--part 1/2` and `--part 2/2`: each breaks a tree of its own. What is drawn
from seeds changes: with `--check` a row whose own seed still notices stays, and others are sought.
"""

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from pathlib import Path

from tests.mutations import Mutation, all_mutations
from tests.mutations.hunting import CPU_SECONDS, Catch, hunt, notices
from tests.mutations.page import NOTHING, Row, put, rows_of
from tests.mutations.planted import AIMS, PLANTED
from tests.mutations.runner import ROOT, copy_of_the_tree

PAGE = ROOT / "docs" / "simulator.md"


def main(arguments: list[str]) -> int:
    """Print one row of a table for each rule. 1 if the text of one is no longer in the tree."""
    options = _parser().parse_args(arguments)
    failed = 0
    with copy_of_the_tree(options.commit) as copy:
        for mutation in _chosen(options):
            try:
                if options.check and _stands(copy, mutation, options.page):
                    print(f"{mutation.name}: stands", flush=True)
                    continue
                catch = hunt(copy, mutation, options.seconds)
            except ValueError as error:
                print(error, file=sys.stderr, flush=True)
                failed = 1
                continue
            row = _row(mutation.name, catch)
            print(row, flush=True)
            if options.write:
                put(options.page, row, PLANTED)
    return failed


def _parser() -> ArgumentParser:
    parser = ArgumentParser(prog="python -m tests.mutations.simulator", description=__doc__)
    parser.add_argument("words", nargs="*", metavar="WORD")
    parser.add_argument("--write", action="store_true", help="put each row into the page")
    parser.add_argument("--stale", action="store_true", help="rows with † and missing ones alone")
    parser.add_argument("--unnoticed", action="store_true", help="those that nothing noticed")
    parser.add_argument("--check", action="store_true", help="hunt if a row's seed notices no more")
    parser.add_argument("--part", default="1/1", metavar="N/M", help="the Nth of M disjoint parts")
    parser.add_argument("--seconds", type=float, default=CPU_SECONDS, help="of CPU, a layer")
    parser.add_argument("--commit", metavar="REV", help="hunt there, not in the tree as it lies")
    parser.add_argument("--page", type=Path, default=PAGE)
    return parser


def _chosen(options: Namespace) -> list[Mutation]:
    by_name = {mutation.name: mutation for mutation in all_mutations()}
    planted = [by_name[name] for names in PLANTED.values() for name in names]
    if options.words:
        planted = [m for m in by_name.values() if all(word in m.name for word in options.words)]
    part, parts = map(int, options.part.split("/"))
    mine = planted[part - 1 :: parts]
    rows = rows_of(options.page.read_text())
    filters: list[Callable[[Row | None], bool]] = []
    if options.stale:
        filters.append(lambda row: row is None or row.is_stale)
    if options.unnoticed:
        filters.append(lambda row: row is not None and not row.is_noticed)
    return [m for m in mine if not filters or any(each(rows.get(m.name)) for each in filters)]


def _stands(copy: Path, mutation: Mutation, page: Path) -> bool:
    """Whether the seed of its row still notices. Raises as `notices` does."""
    row = rows_of(page.read_text()).get(mutation.name)
    if row is None or row.found_at is None or row.is_stale:
        return False
    return notices(copy, mutation, *row.found_at)


def _row(name: str, catch: Catch) -> Row:
    aim = AIMS.get(name)
    where = "" if catch.checker is None else f"{catch.layer}, {catch.seed}"
    if aim is not None:
        where = f"{where} (*{aim}*)".strip()
    return Row(
        name=name,
        checker=catch.checker or NOTHING,
        where=where,
        simulated=f"{catch.simulated_seconds / 60:.1f} min",
        cpu=f"{catch.cpu_seconds:.1f} s",
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
