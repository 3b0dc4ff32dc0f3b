"""All states of the small scopes, and that what is looked at there can break."""

from collections.abc import Callable

import pytest

from tests.scopes.explore import Scope, explore
from tests.scopes.local import Lineage
from tests.scopes.scopes import LARGE, SMALL
from tidemark.partitions.raft import voting
from tidemark.partitions.raft.epochs import LogShape
from tidemark.partitions.raft.follower import Follower
from tidemark.partitions.raft.group import Group
from tidemark.partitions.raft.leader import Leader
from tidemark.partitions.raft.messages import AppendResponse, VoteRequest, VoteResponse
from tidemark.partitions.raft.progress import Progress
from tidemark.partitions.raft.quorum import held_by_majority
from tidemark.partitions.raft.replica import Replica
from tidemark.protocol.types import Epoch, NodeId, Offset, Position

Plant = Callable[[pytest.MonkeyPatch], None]


@pytest.mark.parametrize("scope", SMALL, ids=lambda scope: scope.name)
def test_every_rule_holds_in_every_state_of_a_small_scope(scope: Scope) -> None:
    result = explore(scope)
    assert not result.broken, "\n".join((result.broken, *result.story))
    assert result.is_complete
    assert result.states > 1000


@pytest.mark.parametrize("scope", LARGE, ids=lambda scope: scope.name)
def test_every_rule_holds_where_a_large_scope_begins(scope: Scope) -> None:
    result = explore(scope, states_max=1500)
    assert not result.broken, "\n".join((result.broken, *result.story))


def test_no_scope_is_there_twice() -> None:
    assert len({scope.name for scope in (*SMALL, *LARGE)}) == len(SMALL) + len(LARGE)


def test_what_is_found_does_not_depend_on_anything_but_the_scope() -> None:
    first, again = (explore(SMALL[0]) for _ in range(2))
    assert (first.states, first.steps, first.depth) == (again.states, again.steps, again.depth)


def test_a_limit_is_kept_and_told() -> None:
    result = explore(SMALL[1], states_max=500)
    assert 500 <= result.states < 520
    assert not result.is_complete


# Broken rules, each found in as few steps as it takes


def plant_figure_8(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a majority holds is committed, whichever epoch it is of."""

    def commit(self: Leader, group: Group) -> None:
        held = held_by_majority(group, self._progress)
        if held > group.committed:
            group.commit_to(held)

    monkeypatch.setattr(Leader, "_commit", commit)


def plant_votes_for_anybody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whose log is shorter gets the vote too."""

    def answer(group: Group, source: NodeId, request: VoteRequest) -> None:
        if request.epoch > group.epoch:
            group.adopt(request.epoch)
        granted = request.epoch == group.epoch and group.voted_for in (None, source)
        if granted and group.voted_for is None:
            group.set_hard_state(group.epoch, source)
            group.follow(None)
        group.answer(source, VoteResponse(group.epoch, request.ballot, granted))

    monkeypatch.setattr(voting, "_answer_binding", answer)


def plant_votes_that_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """What must be durable first is said at once."""

    def answer(
        self: Replica, to: NodeId, message: VoteResponse, *, holds: Position | None = None
    ) -> None:
        self.send(to, message)

    monkeypatch.setattr(Replica, "answer", answer)


def plant_commits_beyond_what_was_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """A heartbeat's word counts for whatever lies there."""

    def hear(self: Follower, group: Group, committed: Position) -> None:
        group.commit_to(min(committed, group.shape.last))

    monkeypatch.setattr(Follower, "hear_committed", hear)


def plant_going_back_below_what_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """An old refusal is believed, though more has been acknowledged since."""

    def refused(self: Progress, _: AppendResponse, conflict: Position, shape: LogShape) -> None:
        self._forget_in_flight()
        self.next = conflict if shape.contains(conflict) else shape.floor(conflict.epoch)
        self.is_probing = self.must_probe = True

    monkeypatch.setattr(Progress, "refused", refused)


@pytest.mark.parametrize(
    ("plant", "scope", "rule", "steps_max"),
    [
        (plant_figure_8, Scope(name="", elections=4), "a leader has all that is committed", 8),
        (
            plant_votes_for_anybody,
            Scope(name="", elections=2),
            "a leader has all that is committed",
            4,
        ),
        (
            plant_votes_that_are_forgotten,
            Scope(name="", campaigns=1, syncs_at_once=False),
            "a vote is durable before it is given",
            5,
        ),
        (
            plant_commits_beyond_what_was_compared,
            Scope(name="", elections=2, appends=1, beats=1),
            "what is committed never changes",
            9,
        ),
        (
            plant_going_back_below_what_is_known,
            Scope(name="", elections=2, duplicates=1),
            "what is sent next begins behind what is known to be there",
            10,
        ),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_a_broken_rule_is_found(
    monkeypatch: pytest.MonkeyPatch, plant: Plant, scope: Scope, rule: str, steps_max: int
) -> None:
    plant(monkeypatch)
    result = explore(scope, states_max=60_000)
    assert result.broken.startswith(rule)
    assert len(result.story) <= steps_max


# What judges is judged


def log(*rows: tuple[int, int], end: int) -> Lineage:
    return Lineage(tuple(Position(Epoch(e), Offset(o)) for e, o in rows), Offset(end))


def at(epoch: int, offset: int) -> Position:
    return Position(Epoch(epoch), Offset(offset))


def test_a_log_holds_what_lies_in_its_epochs() -> None:
    mine = log((0, 0), (2, 3), end=5)
    assert mine.last == at(2, 5)
    held = [at(e, o) for e in (-1, 0, 1, 2) for o in range(7) if mine.contains(at(e, o))]
    assert held == [at(-1, 0), *(at(0, o) for o in range(4)), at(2, 3), at(2, 4), at(2, 5)]


def test_logs_match_that_are_the_same_as_far_as_they_share_an_epoch() -> None:
    mine = log((0, 0), (2, 3), end=5)
    assert mine.matches(log((0, 0), (2, 3), end=4))
    assert mine.matches(log((0, 0), (1, 2), end=4))
    assert mine.matches(log((1, 0), end=4))
    assert not mine.matches(log((0, 0), (1, 2), (2, 3), end=5))
    assert not mine.matches(log((0, 0), (2, 2), end=5))


def test_logs_agree_of_which_one_is_a_part_of_the_other() -> None:
    mine = log((0, 0), (2, 3), end=5)
    assert mine.agrees(log((0, 0), end=2))
    assert mine.agrees(log((0, 0), (2, 3), (4, 5), end=5))
    assert not mine.agrees(log((0, 0), end=4))
    assert not mine.agrees(log((1, 0), end=1))
