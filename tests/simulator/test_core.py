"""The fast layer: the consensus core alone keeps its promises, and is noticed where it does not."""

from math import inf
from pathlib import Path
from typing import Any

import pytest

from tidemark.partitions.raft.follower import Follower
from tidemark.partitions.raft.group import Group
from tidemark.partitions.raft.leader import Leader
from tidemark.partitions.raft.messages import Ballot
from tidemark.partitions.raft.replica import Replica
from tidemark.partitions.replication.moves import Moves
from tidemark.protocol.types import Position
from tidemark.testing.simulator import run
from tidemark.testing.simulator.core import process
from tidemark.testing.simulator.drawing import draw_knobs
from tidemark.testing.simulator.faults import Fault
from tidemark.testing.simulator.knobs import Knobs, Layer
from tidemark.testing.simulator.run import Verdict, simulate
from tidemark.testing.simulator.scenarios import Scenario, read_scenario

KNOBS = Knobs(layer=Layer.CORE, seconds=6.0, groups=1, send_interval=0.05, fault_interval=0)
SECONDS = 20.0
CUTTING_SEED = 37
"""One in which entries are cut that are being synced."""
CALM_SEED = 0
"""One in which whoever leads is among those that are healed in the end."""


@pytest.mark.parametrize("seed", range(100))
def test_a_short_run_keeps_every_promise(seed: int) -> None:
    verdict = simulate(seed, seconds=SECONDS, layer=Layer.CORE)
    assert verdict.passed, f"seed {seed}: {verdict.what}"


def calm(**faults: object) -> Verdict:
    return simulate(CALM_SEED, knobs=KNOBS, script=[Fault(**faults)] if faults else [])  # type: ignore[arg-type]  # handed through


def test_without_faults_everything_is_committed_and_nobody_else_campaigns() -> None:
    verdict = calm()
    assert verdict.passed, verdict.what
    counts = verdict.coverage.counts
    assert counts["leader"] == 2  # one, and who is told to lead in the end
    assert counts["batches"] > 50
    assert counts["leaders out of sight"] == 1


def test_a_run_is_the_same_again_and_from_its_file(tmp_path: Path) -> None:
    drawn = simulate(5, seconds=SECONDS, layer=Layer.CORE)
    assert simulate(5, seconds=SECONDS, layer=Layer.CORE).digest == drawn.digest
    path = Scenario.of(drawn).write(tmp_path / "run.json")
    again = read_scenario(path).run()
    assert (again.at, again.tape, again.events) == (drawn.at, drawn.tape, drawn.events)


def test_what_is_under_way_is_not_drawn_to_be_sent_again_for_ever() -> None:
    for seed in range(300):
        knobs = draw_knobs(seed, seconds=1, layer=Layer.CORE)
        assert knobs.window_bytes <= 64 * knobs.append_bytes_max


def test_a_leader_that_dies_is_replaced() -> None:
    leaders = [calm(at=2.0, kind="power", node=node, seconds=30.0) for node in (1, 2, 3)]
    assert all(verdict.passed for verdict in leaders)
    assert max(verdict.coverage.counts["leader"] for verdict in leaders) >= 2


def test_a_wish_for_another_leader_comes_true() -> None:
    moved = [calm(at=2.0, kind="move leader", amount=share, seconds=1.0) for share in (0.1, 0.9)]
    assert all(verdict.passed for verdict in moved)
    assert sum(verdict.coverage.counts["moves done"] for verdict in moved) >= 1


def test_a_leader_that_commits_alone_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Leader, "_commit", lambda self, group: group.commit_to(group.shape.last))
    assert calm().invariant == "a majority has on disk what is committed"


def test_a_follower_that_takes_in_nothing_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Follower, "append", lambda self, group, source, request: None)
    assert calm().invariant == "a healed core does its work"


def test_a_replica_that_does_not_ask_before_it_stands_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each that has lost its leader from sight begins an epoch, and others hear of that."""
    monkeypatch.setattr(Group, "campaign", lambda self: self.stand(Ballot.REAL))
    assert calm().invariant == "who comes back disturbs nobody"


def test_a_sync_that_was_for_what_is_cut_makes_nothing_durable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def forget_durable_beyond(self: Replica, to: Position) -> None:
        self.durable = min(self.durable, to)  # and not what is on its way

    assert simulate(CUTTING_SEED, layer=Layer.CORE).coverage.marks["token_taken_back"]
    monkeypatch.setattr(Replica, "_forget_durable_beyond", forget_durable_beyond)
    verdict = simulate(CUTTING_SEED, layer=Layer.CORE)
    assert verdict.invariant == "what a core takes for durable is in its log"


def test_writes_that_are_held_for_long_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Moves, "_hand_over_when_quiet", lambda self, move, now: None)
    monkeypatch.setattr(Moves, "_give_up_attempt", lambda self, move, now: None)
    monkeypatch.setattr(run, "EVENTS_MAX", 30_000)  # it asks again and again; see that soon
    # One of them is the leader's own broker.
    wishes = (calm(at=2.0, kind="move leader", amount=n / 3, seconds=3.0) for n in range(3))
    assert any(each.invariant in ("writes are not held for long", "bounded") for each in wishes)


def test_a_holder_that_stood_still_is_judged_by_the_time_it_was_awake(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def hold_for_ever(self: Moves, move: Any, now: float) -> None:  # Any: it is the moves' own
        if move.due != inf:
            move.due = inf
            move.replica.pause_writes()

    monkeypatch.setattr(Moves, "_look", hold_for_ever)
    wish = Fault(at=2.0, kind="move leader", amount=0.9, seconds=3.0)
    still = [Fault(at=2.2, kind="pause", node=node, seconds=2.0) for node in (1, 2, 3)]
    scripts = [wish], [wish, *still]
    held = [simulate(CALM_SEED, knobs=KNOBS, script=script) for script in scripts]
    assert {verdict.invariant for verdict in held} == {"writes are not held for long"}
    assert 1.9 < held[1].at - held[0].at < 2.1


DAMAGED_SEED = 1
"""One in which journals are damaged again and again."""


def test_replicas_with_damaged_journals_are_in_doubt_and_get_over_it() -> None:
    verdict = simulate(DAMAGED_SEED, seconds=100.0, layer=Layer.CORE)
    assert verdict.passed, verdict.what
    marks = verdict.coverage.marks
    assert marks["follower_in_doubt"]
    assert marks["doubt_ended"]


def test_a_replica_that_does_not_know_what_it_has_forgotten_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Sure(Group):
        __slots__ = ()

        def __init__(self, **found: Any) -> None:  # Any: handed through
            super().__init__(**(found | {"is_clean": True, "in_doubt": False}))

    monkeypatch.setattr(process, "Group", Sure)
    verdict = simulate(DAMAGED_SEED, seconds=100.0, layer=Layer.CORE)
    assert verdict.invariant == "a doubt ends with a durable vote"
