"""`python -m tests.mutations.simulator [WORD ...]`: which seed notices that a rule is broken.

The tests that `python -m tests.mutations` runs were written for their rules. This asks how strong
the simulator is, which knows of none of them: it runs seed after seed of the broken tree until a
checker fires, or `CPU_SECONDS` are spent: of the fast layer first, where that has the rule, and
then of the full one; and of the layer in which replicas move, or that of transactions, where the
rule is about those; of what any seed rarely meets (`AIMS`), only seeds that were drawn for it. A
seed that fails in the whole tree too says nothing, and is passed over. Without words, the `PLANTED`
are tried; with `--write`, the table in `docs/simulator.md` is made anew.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from tests.mutations import Mutation, all_mutations
from tests.mutations.planted import AIMS, PLANTED
from tests.mutations.runner import ROOT, copy_of_the_tree, mutated

CPU_SECONDS = 20.0
WALL_SECONDS_MAX = 600
_OF_TRANSACTIONS = (
    "Transactions",
    "Transactions at partitions",
    "Groups",
    "Groups that change their protocol",
    "Coordinators on failing disks",
    "Compaction",
)
_OF_THE_CORE = (
    "partitions/raft/",
    "partitions/replication/moves.py",
    "partitions/replication/elections.py",
    "partitions/replication/retries.py",
)
"""Of these files the fast layer runs the code."""
_BEGIN, _END = "<!-- planted bugs: begin -->", "<!-- planted bugs: end -->"
_HUNT = """
import json, sys, time
from tidemark.testing.simulator.drawing import draw_knobs
from tidemark.testing.simulator.knobs import Layer
from tidemark.testing.simulator.run import SECONDS, simulate
seed, seeds_end, budget = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
layer, aim = Layer(sys.argv[4]), sys.argv[5]
started, found, simulated = time.process_time(), None, 0.0
while found is None and seed < seeds_end and time.process_time() - started < budget:
    if not aim or draw_knobs(seed, seconds=SECONDS[layer], layer=layer).aim == aim:
        verdict = simulate(seed, layer=layer)
        found = verdict.invariant
        simulated += verdict.at
    seed += 1
print(json.dumps([found, seed - 1, simulated, time.process_time() - started]))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Catch:
    """The end of a hunt. `checker` is None if nothing fired."""

    checker: str | None
    seed: int
    layer: str
    simulated_seconds: float
    cpu_seconds: float


def layers_of(mutation: Mutation) -> tuple[str, ...]:
    """Those that run the code of its rule."""
    if mutation.name in PLANTED["Leaving, and coming back"]:
        return ("replicas",)
    if any(mutation.name in PLANTED[area] for area in _OF_TRANSACTIONS):
        return ("transactions",)
    if mutation.file.endswith("raft/observer.py"):
        return ("full",)
    if mutation.file.startswith(_OF_THE_CORE):
        return ("core",) if mutation.name in AIMS else ("core", "full")
    return ("full",)


def hunt(copy: Path, mutation: Mutation, layer: str) -> Catch:
    """Run seeds of the tree with the mutation, until one fails that does not without it."""
    path = copy / mutation.file
    whole = path.read_text()
    aim = AIMS.get(mutation.name, "")
    seed, simulated, spent = 0, 0.0, 0.0
    while True:
        path.write_text(mutated(whole, mutation))
        try:
            catch = _run_seeds(copy, seed, 1_000_000, CPU_SECONDS - spent, layer, aim)
        finally:
            path.write_text(whole)
        simulated += catch.simulated_seconds
        spent += catch.cpu_seconds
        seed = catch.seed + 1
        is_ours = (
            catch.checker is not None
            and _run_seeds(copy, catch.seed, seed, 60, layer, aim).checker is None
        )
        if is_ours or spent >= CPU_SECONDS:
            return Catch(
                checker=catch.checker if is_ours else None,
                seed=catch.seed,
                layer=layer,
                simulated_seconds=simulated,
                cpu_seconds=spent,
            )


def _run_seeds(
    copy: Path, first: int, seeds_end: int, cpu_seconds: float, layer: str, aim: str
) -> Catch:
    environment = os.environ | {"PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    numbers = [str(first), str(seeds_end), str(cpu_seconds)]
    command = [sys.executable, "-c", _HUNT, *numbers, layer, aim]
    try:
        done = subprocess.run(
            command,
            cwd=copy,
            env=environment,
            stdout=subprocess.PIPE,
            check=True,
            timeout=WALL_SECONDS_MAX,
        )
    except subprocess.TimeoutExpired:
        return Catch(
            checker="a seed does not end",
            seed=first,
            layer=layer,
            simulated_seconds=0,
            cpu_seconds=CPU_SECONDS,
        )
    checker, seed, simulated, spent = json.loads(done.stdout)
    return Catch(
        checker=checker, seed=seed, layer=layer, simulated_seconds=simulated, cpu_seconds=spent
    )


def table(areas: dict[str, tuple[str, ...]]) -> Iterator[str]:
    """Its lines, each as soon as it is known."""
    by_name = {mutation.name: mutation for mutation in all_mutations()}
    yield "| rule that is broken | what notices | layer, seed | simulated | CPU |"
    yield "|---|---|---|---|---|"
    with copy_of_the_tree() as copy:
        for area, names in areas.items():
            yield f"| **{area}** | | | | |"
            for name in names:
                yield _row(name, _hunt_all(copy, by_name[name]))


def _hunt_all(copy: Path, mutation: Mutation) -> Catch:
    """The first layer's that notices; what was spent in vain counts."""
    simulated = spent = 0.0
    for layer in layers_of(mutation):
        catch = hunt(copy, mutation, layer)
        simulated += catch.simulated_seconds
        spent += catch.cpu_seconds
        if catch.checker is not None:
            break
    return replace(catch, simulated_seconds=simulated, cpu_seconds=spent)


def _row(name: str, catch: Catch) -> str:
    minutes, spent = catch.simulated_seconds / 60, catch.cpu_seconds
    aim = AIMS.get(name)
    where = "" if catch.checker is None else f"{catch.layer}, {catch.seed}"
    if aim is not None:
        where = f"{where} (*{aim}*)".strip()
    checker = catch.checker or "**nothing**"
    return f"| {name} | {checker} | {where} | {minutes:.1f} min | {spent:.1f} s |"


def write(lines: list[str]) -> None:
    """Put the table into the page."""
    page = ROOT / "docs" / "simulator.md"
    before, _, rest = page.read_text().partition(_BEGIN)
    _, _, after = rest.partition(_END)
    page.write_text("\n".join([before + _BEGIN, *lines, _END]) + after)


def main(words: list[str]) -> int:
    """Print one line of a table for each mutation."""
    is_written = "--write" in words
    words = [word for word in words if word != "--write"]
    areas = PLANTED
    if words:
        names = tuple(m.name for m in all_mutations() if all(w in m.name for w in words))
        areas = {" ".join(words): names}
    lines = []
    for line in table(areas):
        print(line, flush=True)
        lines.append(line)
    if is_written:
        write(lines)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
