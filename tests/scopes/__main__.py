"""`python -m tests.scopes [--mutations [PHRASE ...]]`: the scopes, and what they notice."""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence

from tests.mutations import Mutation, all_mutations
from tests.mutations.runner import copy_of_the_tree, mutated
from tests.scopes.explore import Result, explore
from tests.scopes.scopes import LARGE, SMALL

_ROOM = "partitions/raft/"
_WALL_SECONDS_MAX = 1800


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.scopes", description=__doc__)
    parser.add_argument("--states", type=int, default=300_000, help="of each scope, at most")
    parser.add_argument("--mutations", nargs="*", metavar="PHRASE", help="break the core's rules")
    parser.add_argument("--json", action="store_true", help="only the first scope that breaks")
    options = parser.parse_args(arguments)
    if options.mutations is not None:
        return _hunt(options.mutations, options.states)
    if options.json:
        print(json.dumps(_first_broken(options.states)))
        return 0
    return _report(options.states)


def _report(states_max: int) -> int:
    print("| scope | states | steps | replica's states | depth | all of them | CPU seconds |")
    print("|---|---|---|---|---|---|---|")
    is_broken = False
    for result in _results(states_max):
        whole = "yes" if result.is_complete else "no"
        print(
            f"| {result.scope.name} | {result.states} | {result.steps} | {result.replica_states} "
            f"| {result.depth} | {whole} | {result.cpu_seconds:.1f} |",
            flush=True,
        )
        if result.broken:
            is_broken = True
            print(f"\n{result.broken}:\n" + "\n".join(f"  {step}" for step in result.story) + "\n")
    return 1 if is_broken else 0


def _results(states_max: int) -> Iterator[Result]:
    for scope in (*SMALL, *LARGE):
        yield explore(scope, states_max=states_max)


def _first_broken(states_max: int) -> tuple[str, str, int, float]:
    """The rule, the scope, the length of the story, and the CPU seconds until then."""
    seconds = 0.0
    for result in _results(states_max):
        seconds += result.cpu_seconds
        if result.broken:
            return result.broken, result.scope.name, len(result.story), seconds
    return "", "", 0, seconds


def _hunt(phrases: Sequence[str], states_max: int) -> int:
    print("| rule of the core | scope that notices | what breaks | steps | CPU seconds |")
    print("|---|---|---|---|---|")
    mutations = [m for m in all_mutations() if m.file.startswith(_ROOM)]
    with copy_of_the_tree() as copy:
        for mutation in mutations:
            if phrases and not any(phrase in mutation.name for phrase in phrases):
                continue
            path = copy / mutation.file
            whole = path.read_text()
            try:
                path.write_text(mutated(whole, mutation))
            except ValueError as error:
                print(f"| {error} | | | | |", flush=True)  # the table is stale
                continue
            print(_hunted(str(copy), mutation, states_max), flush=True)
            path.write_text(whole)
    return 0


def _hunted(copy: str, mutation: Mutation, states_max: int) -> str:
    environment = os.environ | {"PYTHONPATH": f"{copy}/src:{copy}", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "tests.scopes", "--json", "--states", str(states_max)]
    done = subprocess.run(
        command,
        cwd=copy,
        env=environment,
        stdout=subprocess.PIPE,
        check=True,
        timeout=_WALL_SECONDS_MAX,
    )
    rule, scope, steps, seconds = json.loads(done.stdout)
    rule = rule.partition(":")[0].splitlines()[0] if rule else "nothing"
    return f"| {mutation.name} | {scope or 'none'} | {rule} | {steps} | {seconds:.1f} |"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
