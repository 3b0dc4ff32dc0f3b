"""`python -m tests.mutations.simulator [WORD ...]`: which seed notices that a rule is broken.

The tests that `python -m tests.mutations` runs were written for their rules. This asks how strong
the simulator is, which knows of none of them: it runs seed after seed of the broken tree until a
checker fires, or `CPU_SECONDS` are spent. A seed that fails in the whole tree too says nothing,
and is passed over. Without words, only the `CLASSICS` are tried.
"""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.mutations import Mutation, all_mutations
from tests.mutations.runner import copy_of_the_tree, mutated

CPU_SECONDS = 25.0
WALL_SECONDS_MAX = 300
CLASSICS = (
    "only an entry of the own epoch is committed by counting",
    "an acknowledgement of an older epoch does not count",
    "a vote is durable before it is given",
    "a follower commits no further than it has compared",
    "followers follow the producers",
    "a follower acknowledges only what is durable",
    "votes go only to logs that are as far",
    "entries that are held are not cut",
    "a truncation takes the old tokens back",
    "a refusal never moves next below match",
    "a leader without a live majority steps down",
    "a pre-vote comes first",
    "a new leader serves only once its own epoch is committed",
    "a replica votes once in an epoch",
    "half is no majority",
)
_HUNT = """
import json, sys, time
from tidemark.testing.simulator.run import simulate
seed, seeds_end, budget = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
started, found = time.process_time(), None
while found is None and seed < seeds_end and time.process_time() - started < budget:
    verdict = simulate(seed)
    found = verdict.invariant
    seed += 1
print(json.dumps([found, seed - 1, time.process_time() - started]))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Catch:
    """The end of a hunt. `checker` is None if nothing fired."""

    checker: str | None
    seed: int
    cpu_seconds: float


def hunt(copy: Path, mutation: Mutation) -> Catch:
    """Run seeds of the tree with the mutation, until one fails that does not without it."""
    path = copy / mutation.file
    whole = path.read_text()
    seed, spent = 0, 0.0
    while True:
        path.write_text(mutated(whole, mutation))
        try:
            catch = _run_seeds(copy, seed, 1_000_000, CPU_SECONDS - spent)
        finally:
            path.write_text(whole)
        spent += catch.cpu_seconds
        seed = catch.seed + 1
        is_ours = (
            catch.checker is not None and _run_seeds(copy, catch.seed, seed, 60).checker is None
        )
        if is_ours or spent >= CPU_SECONDS:
            checker = catch.checker if is_ours else None
            return Catch(checker=checker, seed=catch.seed, cpu_seconds=spent)


def _run_seeds(copy: Path, first: int, seeds_end: int, cpu_seconds: float) -> Catch:
    environment = os.environ | {"PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", _HUNT, str(first), str(seeds_end), str(cpu_seconds)]
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
        return Catch(checker="a seed does not end", seed=first, cpu_seconds=CPU_SECONDS)
    checker, seed, spent = json.loads(done.stdout)
    return Catch(checker=checker, seed=seed, cpu_seconds=spent)


def main(words: list[str]) -> int:
    """Print one line of a table for each mutation."""
    by_name = {mutation.name: mutation for mutation in all_mutations()}
    names = CLASSICS if not words else [name for name in by_name if all(w in name for w in words)]
    print("| rule | checker | seed | CPU seconds |\n|---|---|---|---|")
    with copy_of_the_tree() as copy:
        for name in names:
            catch = hunt(copy, by_name[name])
            checker = catch.checker or f"not in {CPU_SECONDS:.0f} s"
            print(f"| {name} | {checker} | {catch.seed} | {catch.cpu_seconds:.1f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
