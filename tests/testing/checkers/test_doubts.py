"""A doubt ends with something newer, and with a durable vote."""

import pytest

from tests.testing.checkers.values import ANN, BEN, CAT, at, breaks
from tidemark.partitions.raft.entries import Configuration
from tidemark.partitions.raft.messages import HardState
from tidemark.protocol.types import Epoch, Offset, Position
from tidemark.testing.checkers.doubts import Doubts
from tidemark.testing.checkers.durable import DurableLogs
from tidemark.testing.checkers.elections import Elections
from tidemark.testing.checkers.lineage import Lineage


def log(*starts: Position, end: int) -> Lineage:
    return Lineage(starts, Offset(end))


@pytest.fixture
def elections() -> Elections:
    return Elections("g")


@pytest.fixture
def doubts(elections: Elections) -> Doubts:
    """Of Ann, whose disk has lost something when epoch 1 went up to 5 and epoch 2 up to 7."""
    doubts = Doubts("g", elections)
    doubts.loses_newest(
        ANN, [log(at(1, 0), at(2, 5), end=6), log(at(1, 0), at(2, 5), end=7), log(at(1, 0), end=4)]
    )
    return doubts


def test_a_doubt_ends_with_something_newer(doubts: Doubts, elections: Elections) -> None:
    doubts.commits(at(2, 8))
    elections.durable(ANN, HardState(Epoch(2), BEN))
    doubts.becomes_sure(ANN)
    assert ANN not in doubts


def test_a_new_epoch_is_newer(doubts: Doubts, elections: Elections) -> None:
    doubts.commits(at(3, 6))
    elections.durable(ANN, HardState(Epoch(4), CAT))
    doubts.becomes_sure(ANN)


@pytest.mark.parametrize("position", [at(1, 5), at(2, 7)])
def test_one_that_is_sure_though_nothing_newer_is_committed(
    doubts: Doubts, elections: Elections, position: Position
) -> None:
    doubts.commits(position)
    elections.durable(ANN, HardState(Epoch(2), BEN))
    with breaks("a doubt ends with something newer"):
        doubts.becomes_sure(ANN)


def test_one_that_is_sure_and_has_its_vote_still(doubts: Doubts, elections: Elections) -> None:
    elections.durable(ANN, HardState(Epoch(2), BEN))
    doubts.commits(at(3, 7))
    elections.durable(ANN, HardState(Epoch(3), None))
    with breaks("a doubt ends with a durable vote"):
        doubts.becomes_sure(ANN)


def test_who_never_was_in_doubt_is_sure(doubts: Doubts) -> None:
    doubts.becomes_sure(BEN)
    assert list(doubts) == [ANN]


def test_who_has_given_up_what_it_held_is_in_no_doubt(doubts: Doubts) -> None:
    doubts.forgets(ANN)
    doubts.becomes_sure(ANN)


def test_a_damaged_leader_does_not_count_itself_but_where_all_have_it() -> None:
    logs, config = DurableLogs("g"), Configuration((ANN, BEN, CAT))
    for node in (ANN, BEN):
        logs.of(node).begin(at(3, 0))
    logs.check_committed(BEN, config, at(3, 0), damaged={ANN})
    with breaks("a majority has on disk what is committed"):
        logs.check_committed(ANN, config, at(3, 0), damaged={ANN})
    logs.of(CAT).begin(at(3, 0))
    logs.check_committed(ANN, config, at(3, 0), damaged={ANN})
