"""Each invariant of a group fires when it is broken, and not before."""

from tests.testing.checkers.values import ANN, BEN, CAT, at, batch, breaks
from tidemark.partitions.raft.entries import Configuration
from tidemark.partitions.raft.messages import HardState
from tidemark.protocol.records.header import BatchHeader
from tidemark.protocol.types import Epoch, NodeId, Offset, Position
from tidemark.testing.checkers import serving
from tidemark.testing.checkers.committed import CommittedLog
from tidemark.testing.checkers.durable import DurableLogs
from tidemark.testing.checkers.elections import Elections
from tidemark.testing.checkers.lineage import Lineage
from tidemark.testing.checkers.violation import bounded


def state(epoch: int, voted_for: NodeId | None = None) -> HardState:
    return HardState(Epoch(epoch), voted_for)


def advance(
    log: CommittedLog,
    node: NodeId,
    to: Position,
    *batches: BatchHeader,
    starts: tuple[Position, ...] = (at(0, 0),),
    in_epoch: int | None = None,
) -> None:
    epoch = to.epoch if in_epoch is None else Epoch(in_epoch)
    log.advances(node, in_epoch=epoch, committed=to, starts=starts, batches=batches)


# Elections


def test_two_nodes_that_lead_one_epoch() -> None:
    elections = Elections("g")
    elections.leads(ANN, Epoch(1))
    elections.leads(ANN, Epoch(1))
    elections.leads(BEN, Epoch(2))
    with breaks("one leader an epoch"):
        elections.leads(CAT, Epoch(1))


def test_a_node_whose_epoch_goes_back() -> None:
    elections = Elections("g")
    elections.runs_at(ANN, Epoch(2))
    elections.runs_at(BEN, Epoch(1))
    with breaks("epochs never go back"):
        elections.runs_at(ANN, Epoch(1))


def test_a_disk_whose_epoch_goes_back() -> None:
    elections = Elections("g")
    elections.durable(ANN, state(2))
    with breaks("durable epochs never go back"):
        elections.durable(ANN, state(1))


def test_a_node_that_votes_twice() -> None:
    elections = Elections("g")
    elections.durable(ANN, state(1, BEN))
    elections.durable(ANN, state(1, BEN))
    with breaks("one vote an epoch"):
        elections.durable(ANN, state(1, CAT))


def test_a_vote_that_is_said_before_it_is_durable() -> None:
    elections = Elections("g")
    with breaks("a vote is durable before it is said"):
        elections.says_vote(ANN, Epoch(1), BEN)
    elections.durable(ANN, state(1, BEN))
    elections.says_vote(ANN, Epoch(1), BEN)
    with breaks("a vote is durable before it is said"):
        elections.says_vote(ANN, Epoch(1), CAT)


def test_a_vote_may_be_said_once_a_later_epoch_is_durable_but_only_to_one() -> None:
    elections = Elections("g")
    elections.durable(ANN, state(2))
    elections.says_vote(ANN, Epoch(1), BEN)
    with breaks("a vote is durable before it is said"):
        elections.says_vote(ANN, Epoch(1), CAT)


def test_an_epoch_that_is_said_before_it_is_durable() -> None:
    elections = Elections("g")
    elections.durable(ANN, state(1))
    elections.says_epoch(ANN, Epoch(1))
    with breaks("an epoch is durable before it is said"):
        elections.says_epoch(ANN, Epoch(2))


def test_a_node_that_comes_back_without_its_vote() -> None:
    elections = Elections("g")
    elections.runs_at(ANN, Epoch(5))
    elections.durable(ANN, state(4, BEN))
    elections.restarts(ANN, state(4, BEN))
    elections.runs_at(ANN, Epoch(4))
    with breaks("a vote survives"):
        elections.restarts(ANN, state(4))
    with breaks("durable epochs never go back"):
        elections.restarts(ANN, state(3))


# The committed log


def test_a_committed_log_grows_and_every_replica_has_the_same() -> None:
    log = CommittedLog("g")
    first, second = batch(0, 2, epoch=0), batch(2, 1, epoch=1)
    starts = (at(0, 0), at(1, 2))
    advance(log, ANN, at(0, 2), first)
    advance(log, ANN, at(1, 3), second, starts=starts)
    advance(log, BEN, at(1, 3), first, second, starts=starts)
    assert log.last == at(1, 3)
    assert log.end_offset == 3


def test_committed_that_goes_back() -> None:
    log = CommittedLog("g")
    advance(log, ANN, at(0, 2), batch(0, 2, epoch=0))
    with breaks("committed never goes back"):
        advance(log, ANN, at(0, 1))
    log.restarts(ANN)
    advance(log, ANN, at(0, 0))


def test_a_committed_batch_with_other_bytes() -> None:
    log = CommittedLog("g")
    advance(log, ANN, at(0, 2), batch(0, 2, epoch=0, crc=1))
    with breaks("committed entries never change"):
        advance(log, BEN, at(0, 2), batch(0, 2, epoch=0, crc=2))


def test_a_committed_epoch_that_starts_elsewhere() -> None:
    log = CommittedLog("g")
    advance(log, ANN, at(1, 2), batch(0, 2, epoch=0), starts=(at(0, 0), at(1, 2)))
    with breaks("committed entries never change"):
        advance(log, BEN, at(1, 1), starts=(at(0, 0), at(1, 1)))


def test_a_committed_log_with_a_gap() -> None:
    with breaks("committed entries follow each other"):
        advance(CommittedLog("g"), ANN, at(0, 3), batch(1, 2, epoch=0))


def test_committed_beyond_what_the_log_holds() -> None:
    with breaks("what is committed is in the log"):
        advance(CommittedLog("g"), ANN, at(0, 3), batch(0, 2, epoch=0))


def test_a_producers_batch_that_is_in_twice() -> None:
    log = CommittedLog("g")
    advance(log, ANN, at(0, 2), batch(0, 2, epoch=0, sequence=0))
    with breaks("a batch is in once"):
        advance(log, ANN, at(0, 4), batch(2, 2, epoch=0, sequence=0))


def test_a_read_of_what_is_not_committed() -> None:
    log = CommittedLog("g")
    advance(log, ANN, at(0, 2), batch(0, 2, epoch=0, crc=1))
    log.check_read([batch(0, 2, epoch=0, crc=1)])
    with breaks("only what is committed is read"):
        log.check_read([batch(2, 2, epoch=0)])
    with breaks("only what is committed is read"):
        log.check_read([batch(0, 2, epoch=0, crc=2)])


def test_a_leader_without_what_was_committed_before_its_epoch() -> None:
    log = CommittedLog("g")
    advance(log, ANN, at(1, 2), batch(0, 2, epoch=1), starts=(at(1, 0),))
    without = Lineage([at(0, 0)], Offset(9))
    log.check_leader(BEN, Epoch(2), Lineage([at(1, 0)], Offset(2)))
    log.check_leader(BEN, Epoch(1), without)  # It has woken up late.
    with breaks("a leader holds what is committed"):
        log.check_leader(BEN, Epoch(2), without)


def test_a_cut_into_what_is_committed() -> None:
    log = CommittedLog("g")
    advance(log, ANN, at(0, 2), batch(0, 2, epoch=0))
    log.check_cut(BEN, Epoch(0), Lineage([at(0, 0)], Offset(3)), at(0, 2))
    others = Lineage([at(0, 0), at(1, 1)], Offset(3))
    log.check_cut(BEN, Epoch(1), others, at(0, 1))
    with breaks("no committed entry is cut off"):
        log.check_cut(BEN, Epoch(0), Lineage([at(0, 0)], Offset(3)), at(0, 1))


def test_a_cut_by_one_that_does_not_know_of_the_epoch_in_which_it_was_committed() -> None:
    log, starts = CommittedLog("g"), (at(0, 0), at(1, 2), at(3, 2))
    advance(log, ANN, at(0, 2), batch(0, 2, epoch=0), starts=starts)
    advance(log, ANN, at(3, 2), starts=starts)
    late = Lineage([at(0, 0), at(1, 2)], Offset(2))
    log.check_cut(BEN, Epoch(2), late, at(0, 2))  # The leader of epoch 2 has never had epoch 1.
    with breaks("no committed entry is cut off"):
        log.check_cut(BEN, Epoch(2), late, at(0, 1))
    with breaks("no committed entry is cut off"):
        log.check_cut(BEN, Epoch(3), late, at(0, 2))


# What is on disks


def test_a_commit_that_only_a_minority_has_on_disk() -> None:
    logs, config = DurableLogs("g"), Configuration((ANN, BEN, CAT))
    for node in (ANN, BEN):
        logs.of(node).begin(at(0, 0))
    logs.of(ANN).extend(at(0, 5))
    logs.check_committed(ANN, config, at(0, 0))
    with breaks("a majority has on disk what is committed"):
        logs.check_committed(ANN, config, at(0, 5))


def test_a_commit_needs_a_majority_on_both_sides_of_a_joint_configuration() -> None:
    logs, config = DurableLogs("g"), Configuration((ANN, BEN), (CAT,))
    for node in (ANN, BEN):
        logs.of(node).begin(at(0, 0))
    with breaks("a majority has on disk what is committed"):
        logs.check_committed(ANN, config, at(0, 0))
    logs.of(CAT).begin(at(0, 0))
    logs.check_committed(ANN, config, at(0, 0))


def test_an_acknowledgement_of_what_is_not_on_disk() -> None:
    logs = DurableLogs("g")
    logs.of(ANN).begin(at(0, 0))
    logs.says_match(ANN, at(0, 0))
    with breaks("an entry is durable before it is acknowledged"):
        logs.says_match(ANN, at(0, 1))


def test_what_lies_below_a_reset_may_have_been_acknowledged() -> None:
    logs = DurableLogs("g")
    logs.of(ANN).reset([at(5, 166)], at(5, 166))
    logs.says_match(ANN, at(4, 54))
    with breaks("an entry is durable before it is acknowledged"):
        logs.says_match(ANN, at(5, 167))


def test_a_node_that_comes_back_without_what_was_on_its_disk() -> None:
    logs = DurableLogs("g")
    logs.of(ANN).begin(at(0, 0))
    logs.of(ANN).extend(at(0, 5))
    logs.restarts(ANN, Lineage([at(0, 0)], Offset(6)))
    with breaks("what was durable survives"):
        logs.restarts(ANN, Lineage([at(0, 0)], Offset(5)))


# Serving, and bounds


def test_a_leader_that_serves_too_early() -> None:
    serving.check_serves("g", ANN, Epoch(2), at(2, 5))
    with breaks("serves after its own epoch's commit"):
        serving.check_serves("g", ANN, Epoch(2), at(1, 5))


def test_a_high_watermark_beyond_the_log() -> None:
    serving.check_watermark("g", ANN, Offset(5), Offset(5))
    with breaks("the high watermark is in the log"):
        serving.check_watermark("g", ANN, Offset(6), Offset(5))


def test_an_observer_that_is_ahead() -> None:
    serving.check_observer("g", ANN, at(1, 5), at(1, 5))
    with breaks("an observer holds only what is committed"):
        serving.check_observer("g", ANN, at(1, 6), at(1, 5))


def test_a_queue_that_grows_without_an_end() -> None:
    bounded(10, 10, "messages", "1 to 2")
    with breaks("bounded"):
        bounded(11, 10, "messages", "1 to 2")


# The judges' own epoch table


def test_a_lineage_says_which_positions_a_log_holds() -> None:
    log = Lineage([at(1, 0), at(3, 5), at(4, 5)], Offset(8))
    held = [at(-1, 0), at(1, 0), at(1, 5), at(3, 5), at(4, 5), at(4, 8)]
    not_held = [at(1, 6), at(2, 3), at(3, 6), at(4, 4), at(4, 9), at(5, 8)]
    assert all(map(log.contains, held))
    assert not any(map(log.contains, not_held))


def test_a_cut_lineage_loses_later_epochs_and_keeps_those_that_start_at_the_cut() -> None:
    log = Lineage([at(1, 0), at(3, 5), at(4, 5)], Offset(8))
    log.truncate(at(3, 5))
    assert (log.starts, log.end_offset) == ([at(1, 0), at(3, 5)], 5)
    log.truncate(at(1, 2))
    assert log.last == at(1, 2)


def test_lineages_share_what_is_before_they_part() -> None:
    ours = Lineage([at(1, 0), at(2, 5), at(4, 7)], Offset(9))
    theirs = Lineage([at(1, 0), at(2, 5), at(3, 6)], Offset(8))
    assert ours.shared(theirs) == theirs.shared(ours) == at(2, 6)
    assert ours.shared(Lineage()) == at(-1, 0)


def test_a_reset_lineage_begins_at_the_leaders_start() -> None:
    log = Lineage([at(1, 0), at(3, 5)], Offset(8))
    log.reset([at(1, 0), at(2, 20), at(5, 40)], at(2, 30))
    assert (log.starts, log.end_offset) == ([at(1, 0), at(2, 20)], 30)
