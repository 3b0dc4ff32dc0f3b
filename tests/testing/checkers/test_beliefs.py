"""The judges of what cores believe fire when they should, and only then."""

from collections.abc import Callable
from functools import partial

import pytest

from tests.testing.checkers.values import at
from tidemark.partitions.raft.entries import Configuration, EpochStart
from tidemark.partitions.raft.epochs import LogShape
from tidemark.protocol.types import Epoch, NodeId, Offset, Position
from tidemark.testing.checkers import beliefs
from tidemark.testing.checkers.committed import CommittedLog
from tidemark.testing.checkers.durable import DurableLogs
from tidemark.testing.checkers.lineage import Lineage
from tidemark.testing.checkers.violation import Violation

A, B, C = NodeId(1), NodeId(2), NodeId(3)
THREE = Configuration((A, B, C))


def log(end: int, *starts: Position) -> Lineage:
    return Lineage(starts, Offset(end))


def fires(check: Callable[[], None], invariant: str) -> None:
    with pytest.raises(Violation) as caught:
        check()
    assert caught.value.invariant == invariant


def test_what_is_durable_is_on_the_disk() -> None:
    disk = log(7, at(1, 0), at(3, 5))
    beliefs.check_durable("g", A, at(3, 7), disk)
    beliefs.check_durable("g", A, at(1, 5), disk)
    fires(lambda: beliefs.check_durable("g", A, at(1, 6), disk), "what a core takes for durable is")


def test_what_is_durable_is_in_the_log() -> None:
    starts = (at(1, 0), at(3, 5))
    rows = [EpochStart(each.epoch, each.offset, A, THREE) for each in starts]
    own = LogShape(rows, start_offset=Offset(0), end_offset=Offset(7), config=THREE)
    beliefs.check_in_log("g", A, at(3, 7), own)
    beliefs.check_in_log("g", A, at(-2, 0), own)
    for cut in (at(2, 5), at(1, 6), at(3, 8)):
        fires(
            partial(beliefs.check_in_log, "g", A, cut, own),
            "what a core takes for durable is in its log",
        )


def test_below_a_logs_start_nothing_is_known() -> None:
    beliefs.check_match("g", A, B, at(1, 3), log(9, at(2, 4)))
    fires(
        lambda: beliefs.check_match("g", A, B, at(2, 10), log(9, at(2, 4))),
        "a follower holds what its leader believes",
    )


def test_next_is_at_or_behind_match() -> None:
    beliefs.check_next("g", A, B, at(1, 3), at(1, 3))
    fires(lambda: beliefs.check_next("g", A, B, at(1, 3), at(1, 2)), "next is not below match")


def _disks(**ends: Lineage) -> DurableLogs:
    logs = DurableLogs("g")
    for node, lineage in zip((A, B, C), ends.values(), strict=True):
        logs.restarts(node, lineage)
    return logs


def test_figure_8_is_seen_before_anything_is_lost() -> None:
    """The first has copied an entry of epoch 1 to the second, as leader of epoch 3; the third
    leads epoch 2 alone, and would win with the second's vote."""
    disks = _disks(a=log(1, at(1, 0), at(3, 1)), b=log(1, at(1, 0)), c=log(0, at(1, 0), at(2, 0)))
    fires(lambda: disks.check_safe(A, THREE, at(1, 1)), "no election may lose what is committed")


def test_an_entry_of_the_leaders_own_epoch_is_safe_with_a_majority() -> None:
    disks = _disks(
        a=log(1, at(1, 0), at(3, 1)),
        b=log(1, at(1, 0), at(3, 1)),
        c=log(0, at(1, 0), at(2, 0)),
    )
    disks.check_safe(A, THREE, at(3, 1))


def test_who_lacks_it_may_be_elected_by_the_voters_that_its_own_log_has() -> None:
    """The second and the third have not heard that the first votes alone by now."""
    disks = _disks(a=log(0, at(1, 0), at(2, 0)), b=log(0, at(1, 0)), c=log(0, at(1, 0)))
    disks.opens(Epoch(1), THREE)
    disks.opens(Epoch(2), Configuration((A,)))
    fires(lambda: disks.check_safe(A, THREE, at(2, 0)), "no election may lose what is committed")


def test_who_is_told_to_lead_has_everything() -> None:
    disks = _disks(a=log(2, at(1, 0)), b=log(2, at(1, 0)), c=log(1, at(1, 0)))
    disks.check_told_to_lead(A, B, at(1, 2))
    fires(lambda: disks.check_told_to_lead(A, C, at(1, 2)), "who is told to lead has everything")


def test_nobody_who_votes_no_more_can_be_elected_by_the_others() -> None:
    joint = at(2, 0)
    disks = _disks(a=log(0, at(1, 0), joint, at(3, 0)), b=log(0, at(1, 0), joint), c=log(0))
    disks.opens(Epoch(1), THREE)
    disks.opens(Epoch(2), Configuration((A,), (A, B, C)))
    disks.opens(Epoch(3), Configuration((A,)))
    disks.check_safe(A, THREE, at(3, 0))


def test_a_vote_for_a_log_that_lacks_what_the_voter_knows_is_wrong() -> None:
    committed = CommittedLog("g")
    committed.advances(A, in_epoch=Epoch(1), committed=at(1, 0), starts=[at(1, 0)], batches=())
    full, empty = log(0, at(1, 0)), log(0)
    committed.check_vote(B, full, C, full, Epoch(2))
    committed.check_vote(B, empty, C, empty, Epoch(2))
    fires(
        lambda: committed.check_vote(B, full, C, empty, Epoch(2)),
        "a vote is for a log with all that is committed",
    )


def test_who_has_only_an_older_part_of_what_was_committed_later_may_vote_for_another_log() -> None:
    """Epoch 4 has committed an entry of epoch 1 with one of its own. Whoever has the former and not
    the latter has not helped, and follows the log of epoch 3, which has neither."""
    committed = CommittedLog("g")
    starts = [at(1, 0), at(4, 0)]
    committed.advances(A, in_epoch=Epoch(4), committed=at(4, 0), starts=starts, batches=())
    older, other = log(0, at(1, 0), at(2, 0)), log(0, at(3, 0))
    committed.check_vote(B, older, C, other, Epoch(5))
    fires(
        lambda: committed.check_vote(B, log(0, *starts), C, other, Epoch(5)),
        "a vote is for a log with all that is committed",
    )
