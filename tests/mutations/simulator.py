"""`python -m tests.mutations.simulator [WORD ...]`: which seed notices that a rule is broken.

The tests that `python -m tests.mutations` runs were written for their rules. This asks how strong
the simulator is, which knows of none of them: it runs seed after seed of the broken tree until a
checker fires, or `CPU_SECONDS` are spent: of the fast layer first, where that has the rule, and
then of the full one; and of the layer in which replicas move, or that of transactions, where the
rule is about those. A seed that fails in the whole tree too says nothing, and is passed over.
Without words, the `PLANTED` are tried; with `--write`, the table in `docs/simulator.md` is made
anew.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from tests.mutations import Mutation, all_mutations
from tests.mutations.runner import ROOT, copy_of_the_tree, mutated

CPU_SECONDS = 20.0
WALL_SECONDS_MAX = 600
PLANTED = {
    "Votes": (
        "a replica votes once in an epoch",
        "a vote is durable before it is given",
        "votes go only to logs that are as far",
        "a pre-vote comes first",
        "a yes to the pre-vote is no vote",
        "a leader without a live majority steps down",
    ),
    "What is committed": (
        "only an entry of the own epoch is committed by counting",
        "half is no majority",
        "a leader counts itself only for what it holds durably",
        "a follower acknowledges only what is durable",
        "an acknowledgement of an older epoch does not count",
        "a heartbeat commits only what is of the leader's epoch",
        "a new leader serves only once its own epoch is committed",
        "a truncation takes the old tokens back",
    ),
    "Replication": (
        "an append is compared before it is taken",
        "entries that are held are not cut",
        "a part of a run that is held is not cut",
        "a refusal never moves next below match",
        "a leader finds the common point by the follower's epochs",
        "a request of an older epoch is refused",
        "a late reset does not cut what came after it",
        "replication that stands still is begun again",
    ),
    "Membership": (
        "a change waits for an entry of the own epoch",
        "one change at a time",
        "a joint configuration needs both majorities to commit",
        "a joint configuration needs both majorities to elect",
        "a configuration goes with its entry",
        "who has no vote does not campaign",
    ),
    "Damaged journals": (
        "to have all that a leader has does not end a doubt",
        "who is in doubt does not count",
        "a leader that is in doubt does not count itself",
        "whose doubt has ended counts as having voted in that epoch",
        "a log that nobody appends to gets an epoch for those in doubt",
    ),
    "Leaving, and coming back": (
        "who comes back does not lead with the old part of the log",
        "an empty replica elects nobody whose log ends where it left the group",
        "who comes back is in the epoch that it left in",
        "who comes back says that it has lost what a leader may know of it",
        "who has gone beyond where it left asks for no more than others",
        "a crash while a replica is given up keeps its epoch",
    ),
    "Moves of leaders": (
        "a successor is told only once it has everything",
        "a hand-over to a dead successor ends",
        "a hand-over of an older epoch is not heeded",
        "a migration's votes do not mind that a leader is heard",
        "a move goes on when something happens to its group",
    ),
    "Observers": (
        "an observer gets only what is committed",
        "a parent that is behind resets nobody",
        "an answer to an older pull is not taken",
    ),
    "Producers": (
        "followers follow the producers",
        "a cut takes back what it said of producers",
        "a gap in a producer's sequence is refused",
        "five batches a producer are remembered",
        "a reset carries what is known of producers",
    ),
    "Transactions": (
        "one change of an id at a time",
        "a decision is answered once it is durable",
        "markers wait for the decision",
        "the end is written once all have their marker",
        "a new coordinator sends the markers again",
        "a marker that was refused is sent again",
        "a fence raises the epoch",
        "an end raises the epoch for a client that bumps",
        "an older epoch is fenced",
        "a former coordinator ends nothing",
        "a late marker ends no later transaction",
    ),
    "Transactions at partitions": (
        "a coordinator is asked before the first batch",
        "nothing is verified once the transaction is decided",
        "a leader is told what is not in the transaction",
        "a marker makes answers from before it worth nothing",
        "a new epoch is asked about though another has a transaction open",
        "a coordinator writes into no transaction of a fenced producer",
        "what is open is not stable",
        "what was decided is stable only once that is committed",
        "readers are told of all that were aborted where they read",
        "an abort that the log has lost did not happen",
        "a snapshot tells what is open",
        "a replay finds what is open",
    ),
    "Groups": (
        "a commit is answered once it is durable",
        "a write that failed changes no commit",
        "what is stored after the resignation answers nobody",
        "a commit of another generation is refused",
        "groups hear of markers",
        "an offset in a transaction counts only once that is committed",
        "an aborted transaction's offsets are dropped",
        "an offset of a transaction on its way to the log is unstable",
        "a committed transaction supersedes those whose records lie before its own",
        "offsets that are undecided are read back as that",
    ),
    "Compaction": (
        "an undecided transaction ends what is compacted",
        "a record that was aborted replaces nothing",
        "a commit stays while one of its records is there",
        "an abort stays",
        "a gap ends with its leader epoch",
        "a new segment is on the disk before it counts",
        "its name is on the disk before the old ones go",
        "a swap of a log that was cut does not come about",
    ),
    "Journal, segments, `state.db`": (
        "votes are in the journal",
        "batches of flush=commit are in the journal",
        "files are cut only once the journal says so",
        "no checkpoint while a log is not what the journal says",
        "what the journal calls synced was synced",
        "no journal file is written over before its checkpoint",
        "a torn tail is no damage",
        "a truncation takes the batches back",
        "a truncation takes the epochs back",
        "what redo has written is synced",
        "recovery checks the CRC of what may not have been synced",
        "what was in the page cache only is unclean when that was lost",
        "a log that lost its end with the page cache is unclean",
    ),
}
"""Names of mutations, by area."""
_OF_TRANSACTIONS = ("Transactions", "Transactions at partitions", "Groups", "Compaction")
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
from tidemark.testing.simulator.knobs import Layer
from tidemark.testing.simulator.run import simulate
seed, seeds_end, budget = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
layer = Layer(sys.argv[4])
started, found, simulated = time.process_time(), None, 0.0
while found is None and seed < seeds_end and time.process_time() - started < budget:
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
    return ("core", "full") if mutation.file.startswith(_OF_THE_CORE) else ("full",)


def hunt(copy: Path, mutation: Mutation, layer: str) -> Catch:
    """Run seeds of the tree with the mutation, until one fails that does not without it."""
    path = copy / mutation.file
    whole = path.read_text()
    seed, simulated, spent = 0, 0.0, 0.0
    while True:
        path.write_text(mutated(whole, mutation))
        try:
            catch = _run_seeds(copy, seed, 1_000_000, CPU_SECONDS - spent, layer)
        finally:
            path.write_text(whole)
        simulated += catch.simulated_seconds
        spent += catch.cpu_seconds
        seed = catch.seed + 1
        is_ours = (
            catch.checker is not None
            and _run_seeds(copy, catch.seed, seed, 60, layer).checker is None
        )
        if is_ours or spent >= CPU_SECONDS:
            return Catch(
                checker=catch.checker if is_ours else None,
                seed=catch.seed,
                layer=layer,
                simulated_seconds=simulated,
                cpu_seconds=spent,
            )


def _run_seeds(copy: Path, first: int, seeds_end: int, cpu_seconds: float, layer: str) -> Catch:
    environment = os.environ | {"PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", _HUNT, str(first), str(seeds_end), str(cpu_seconds), layer]
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
    where = "" if catch.checker is None else f"{catch.layer}, {catch.seed}"
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
