"""Which seed of the simulator notices that a rule is broken, and what it costs to find it.

Seed after seed of the broken tree is run until a checker fires, or the CPU seconds are spent: of
the fast layer first, where that has the rule, and then of the full one; of the layer in which
replicas move, or that of transactions, where the rule is about those; of what any seed rarely
meets (`AIMS`), only seeds that were drawn for it. A seed that fails in the whole tree too says
nothing, and is passed over.
"""

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from tests.mutations import Mutation
from tests.mutations.planted import AIMS, LAYERS, PLANTED
from tests.mutations.runner import mutated

CPU_SECONDS = 20.0
_SEED_SECONDS_MAX = 100
"""Of CPU, for the last seed: a run that takes longer does not end, as far as anybody can tell."""
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
_HUNT = """
import json, resource, sys, time
from tidemark.testing.simulator.drawing import draw_knobs
from tidemark.testing.simulator.knobs import Layer
from tidemark.testing.simulator.run import SECONDS, simulate
seed, seeds_end, budget = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
layer, aim, seconds_max = Layer(sys.argv[4]), sys.argv[5], int(sys.argv[6])
resource.setrlimit(resource.RLIMIT_CPU, (seconds_max, seconds_max + 1))
started, found, simulated = time.process_time(), None, 0.0
while found is None and seed < seeds_end and time.process_time() - started < budget:
    if not aim or draw_knobs(seed, seconds=SECONDS[layer], layer=layer).aim == aim:
        verdict = simulate(seed, layer=layer)
        found = verdict.invariant
        simulated += verdict.at
    print(json.dumps([found, seed, simulated, time.process_time() - started]), flush=True)
    seed += 1
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
    if mutation.name in LAYERS:
        return LAYERS[mutation.name]
    if mutation.name in PLANTED["Leaving, and coming back"]:
        return ("replicas",)
    if any(mutation.name in PLANTED[area] for area in _OF_TRANSACTIONS):
        return ("transactions",)
    if mutation.file.endswith("raft/observer.py"):
        return ("full",)
    if mutation.file.startswith(_OF_THE_CORE):
        return ("core",) if mutation.name in AIMS else ("core", "full")
    return ("full",)


def hunt(copy: Path, mutation: Mutation, cpu_seconds: float = CPU_SECONDS) -> Catch:
    """In each of its layers, until one notices; what was spent in vain counts.

    Raises `ValueError` if the mutation's text is no longer in the tree.
    """
    simulated = spent = 0.0
    for layer in layers_of(mutation):
        catch = _hunt_in(copy, mutation, layer, cpu_seconds)
        simulated += catch.simulated_seconds
        spent += catch.cpu_seconds
        if catch.checker is not None:
            break
    return replace(catch, simulated_seconds=simulated, cpu_seconds=spent)


def notices(copy: Path, mutation: Mutation, layer: str, seed: int) -> bool:
    """Whether one seed fails with the mutation, and does not without it.

    Raises `ValueError` if the mutation's text is no longer in the tree.
    """
    path = copy / mutation.file
    whole = path.read_text()
    path.write_text(mutated(whole, mutation))
    try:
        catch = _run_seeds(copy, seed, seed + 1, CPU_SECONDS, layer, "")
    finally:
        path.write_text(whole)
    if catch.checker is None:
        return False
    return _run_seeds(copy, seed, seed + 1, CPU_SECONDS, layer, "").checker is None


def _hunt_in(copy: Path, mutation: Mutation, layer: str, cpu_seconds: float) -> Catch:
    """Run seeds of the tree with the mutation, until one fails that does not without it."""
    path = copy / mutation.file
    whole = path.read_text()
    broken = mutated(whole, mutation)
    aim = AIMS.get(mutation.name, "")
    seed, simulated, spent = 0, 0.0, 0.0
    while True:
        path.write_text(broken)
        try:
            catch = _run_seeds(copy, seed, 1_000_000, cpu_seconds - spent, layer, aim)
        finally:
            path.write_text(whole)
        simulated += catch.simulated_seconds
        spent += catch.cpu_seconds
        seed = catch.seed + 1
        is_ours = (
            catch.checker is not None
            and _run_seeds(copy, catch.seed, seed, cpu_seconds, layer, aim).checker is None
        )
        if is_ours or spent >= cpu_seconds:
            return replace(
                catch,
                checker=catch.checker if is_ours else None,
                simulated_seconds=simulated,
                cpu_seconds=spent,
            )


def _run_seeds(
    copy: Path, first: int, seeds_end: int, cpu_seconds: float, layer: str, aim: str
) -> Catch:
    """By processor time alone: how long it takes by the clock depends on who else is there."""
    environment = os.environ | {"PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    seconds_max = int(cpu_seconds) + _SEED_SECONDS_MAX
    numbers = [str(first), str(seeds_end), str(cpu_seconds)]
    done = subprocess.run(
        [sys.executable, "-c", _HUNT, *numbers, layer, aim, str(seconds_max)],
        cwd=copy,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    lines = done.stdout.splitlines()
    checker, seed, simulated, spent = json.loads(lines[-1]) if lines else (None, first - 1, 0, 0)
    if done.returncode == -signal.SIGXCPU:
        checker, seed, spent = "a seed does not end", seed + 1, seconds_max
    else:
        done.check_returncode()
    return Catch(
        checker=checker, seed=seed, layer=layer, simulated_seconds=simulated, cpu_seconds=spent
    )
