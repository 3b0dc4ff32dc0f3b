"""Scenarios of replicas that have lost what they acknowledged: `flush=os`, and the power went."""

from collections.abc import Callable

from tests.scenarios.cluster import Cluster, Envelope, Node, at
from tidemark.partitions.raft.candidate import Candidate, PreCandidate
from tidemark.partitions.raft.group import Limits
from tidemark.partitions.raft.leader import Leader
from tidemark.partitions.raft.messages import AppendRequest, AppendResponse
from tidemark.protocol.types import NodeId, Offset


def _with_loss_on_two() -> Cluster:
    """`abc` is committed by 1 and 2; 3 was away; then 2 loses `bc` with its power."""
    cluster = Cluster(3)
    cluster.elect(1)
    cluster.produce(1, b"a")
    cluster.partition({1, 2}, {3})
    cluster.produce(1, b"bc", only={1, 2})
    cluster.crash(2, lose=2)
    return cluster


def test_a_replica_that_lost_records_elects_nobody_who_lacks_them() -> None:
    cluster = _with_loss_on_two()
    cluster.crash(1)
    cluster.heal()
    cluster.restart(2, is_clean=False)
    cluster.messages.clear()
    for candidate in (2, 3, 2, 3):
        cluster[candidate].do(lambda g: g.campaign())
        cluster.settle()
        assert isinstance(cluster[candidate].group.role, PreCandidate | Candidate)
    cluster.restart(1)
    cluster.elect(1)
    cluster.settle()
    cluster.beat()
    assert [node.committed for node in cluster.nodes.values()] == [b"abc"] * 3


def test_where_no_clean_majority_is_left_all_voters_together_elect_the_longest() -> None:
    cluster = _with_loss_on_two()
    cluster.heal()
    cluster.crash(1, lose=1)
    cluster.restart(1, is_clean=False)
    cluster.restart(2, is_clean=False)
    cluster.invariants = type(cluster.invariants)()  # what was committed is lost, and all know
    cluster.messages.clear()
    cluster[2].do(lambda g: g.campaign())
    cluster.settle()
    assert not cluster[2].group.is_leader  # its log is not the longest
    cluster[1].do(lambda g: g.campaign())
    cluster.settle()
    leader = cluster[1].group.role
    assert isinstance(leader, Leader)
    assert leader.may_have_lost
    cluster.settle()
    assert [node.log for node in cluster.nodes.values()] == [b"ab"] * 3
    assert all(node.group.is_clean for node in cluster.nodes.values())


def test_a_replica_counts_again_once_it_has_all_that_its_leader_had() -> None:
    cluster = _with_loss_on_two()
    node = cluster.restart(2, is_clean=False)
    cluster.partition({1, 2}, {3})
    cluster[1].append(b"d")
    cluster[1].persist()
    while cluster[2].log != b"abcd":
        envelopes = cluster.take()
        assert envelopes
        cluster.deliver(*envelopes)
    assert (node.group.is_clean, cluster[1].committed) == (False, b"abc")
    cluster.settle()
    assert (node.group.is_clean, cluster[1].committed) == (True, b"abcd")


def test_an_acknowledgement_from_before_the_loss_is_not_counted_after_it() -> None:
    cluster = Cluster(3)
    cluster.elect(1)
    cluster[1].append(b"abc")
    cluster[1].persist()
    cluster.deliver(*cluster.take(AppendRequest, to=2))
    cluster[2].persist()
    late = cluster.take(AppendResponse, source=2)
    cluster.take()
    cluster[1].append(b"d")
    cluster[1].persist()
    cluster.take()
    cluster.crash(2, lose=2)
    cluster.restart(2, is_clean=False)
    cluster.deliver(*cluster.take(AppendRequest, to=2))
    cluster[2].persist()
    cluster.deliver(*cluster.take(AppendResponse, source=2))
    cluster.take()
    cluster.deliver(*late)
    assert cluster[1].group.high_watermark == 0


def _deliver_until(cluster: Cluster, node: Node, is_reached: Callable[[], bool]) -> None:
    """Message by message, each durable before the next."""
    for _ in range(50):
        if is_reached():
            return
        cluster.deliver(cluster.messages.pop(0))
        node.persist()
    raise AssertionError("it is not reached")


def _clean_and_unheard() -> Cluster:
    """2 has all of `abcd` again and is clean; its leader has not heard of `cd`, and has more."""
    cluster = Cluster(3, limits=Limits(append_bytes_max=1))
    cluster.elect(1)
    cluster.produce(1, b"abcd")
    cluster.crash(3)
    cluster.crash(2, lose=3)
    node = cluster.restart(2, is_clean=False)
    _deliver_until(cluster, node, lambda: node.group.is_clean)
    cluster.take()
    cluster[1].append(b"e")
    cluster[1].persist()
    cluster.take()
    return cluster


def test_a_replica_whose_word_that_it_is_clean_was_lost_stays_clean() -> None:
    """It has lost nothing since: were its leader gone now, it would be needed to elect another."""
    cluster = _clean_and_unheard()
    cluster[1].do(lambda g: g.peer_reset(NodeId(2)))
    cluster.deliver(*cluster.take(AppendRequest, to=2))
    assert cluster[2].group.is_clean
    cluster[2].persist()
    answers = cluster.take(AppendResponse, source=2)
    cluster.crash(1)
    cluster.restart(3)
    cluster.messages.clear()
    cluster.elect(2)
    assert answers
    assert cluster[2].committed == b"abcd"


def test_its_leader_counts_it_again_all_the_same() -> None:
    cluster = _clean_and_unheard()
    cluster[1].do(lambda g: g.peer_reset(NodeId(2)))
    cluster.settle()
    cluster.produce(1, b"f")
    assert cluster[2].group.is_clean
    assert cluster[1].committed == b"abcdef"


def test_what_it_was_to_hold_is_told_again_where_it_was_lost() -> None:
    """Nothing is appended that could tell it, and it says first in which life it is."""
    cluster = Cluster(3)
    cluster.elect(1)
    cluster.produce(1, b"abc")
    cluster.crash(2)
    node = cluster.restart(2, is_clean=False)
    cluster.deliver(*cluster.take(AppendRequest, to=2))
    cluster.deliver(*cluster.take(AppendResponse, source=2))
    (lost,) = cluster.take(AppendRequest, to=2)
    assert isinstance(lost.message, AppendRequest)
    assert lost.message.clean_at is not None
    cluster[1].do(lambda g: g.peer_reset(NodeId(2)))
    cluster.settle()
    assert node.group.is_clean


def test_a_replica_that_crashed_again_is_clean_once_it_has_all_that_its_leader_has_by_now() -> None:
    cluster = _clean_and_unheard()
    cluster.crash(2)
    node = cluster.restart(2, is_clean=False)
    _deliver_until(cluster, node, lambda: node.group.is_clean)
    assert node.log == b"abcde"


def test_what_it_acknowledged_while_it_became_clean_is_not_forgotten_when_it_crashes_again() -> (
    None
):
    """Until it says in which life it is, nobody knows whether it lost more than the first time."""
    cluster = Cluster(3, limits=Limits(append_bytes_max=1))
    cluster.elect(1)
    cluster.produce(1, b"abc")
    cluster.crash(3)
    cluster.crash(2, lose=2)
    node = cluster.restart(2, is_clean=False)
    _deliver_until(cluster, node, lambda: node.log == b"ab")
    cluster.deliver(*cluster.take(AppendResponse))
    cluster[1].append(b"d")
    cluster[1].persist()
    cluster.deliver(*cluster.take(AppendRequest, to=2))
    assert (node.log, node.group.is_clean) == (b"abcd", False)
    node.persist()
    cluster.deliver(*cluster.take(AppendResponse, source=2))
    assert cluster[1].committed == b"abcd"  # with 2, which has not said that it is clean
    cluster.take()
    cluster.crash(2, lose=1)
    node = cluster.restart(2, is_clean=False)
    cluster.deliver(*cluster.take(AppendRequest, to=2))
    node.persist()
    assert (node.log, node.group.is_clean) == (b"abc", False)


def test_a_leader_finds_out_that_a_replica_which_lacks_nothing_was_unclean() -> None:
    cluster = Cluster(3)
    cluster.elect(1)
    cluster.produce(1, b"abc")
    cluster.crash(2)
    node = cluster.restart(2, is_clean=False)
    cluster.settle()
    assert node.group.is_clean


def test_a_late_word_from_before_it_was_clean_does_not_make_a_replica_unclean_again() -> None:
    """It would not elect anybody, though it holds all that is committed, were its leader gone."""
    cluster = _with_loss_on_two()
    cluster.heal()
    node = cluster.restart(2, is_clean=False)
    late: list[Envelope] = []
    while not node.group.is_clean:
        envelopes = cluster.take()
        assert envelopes
        cluster.deliver(*envelopes)
        node.persist()
        late += filter(_says_unclean, cluster.messages)
    cluster.settle()
    cluster.partition({1, 2}, {3})
    cluster.produce(1, b"d", only={1, 2})
    cluster[1].append(b"e")
    cluster[1].persist()
    cluster.take()  # 2 never hears of it
    for answer in late:  # refusals, and successes
        cluster.deliver(answer)
        cluster.deliver(*cluster.take(AppendRequest, to=2))
        assert node.group.is_clean
    cluster.crash(1)
    cluster.heal()
    cluster.elect(2)
    assert cluster[2].committed == b"abcd"


def test_a_replica_that_came_back_empty_in_the_same_life_is_counted_anew() -> None:
    """Its broker gave it up and took it again, without a start: it is unclean, and was clean."""
    cluster = Cluster(3)
    cluster.elect(1)
    cluster.crash(2)
    life = cluster.restart(2).group.life
    cluster.produce(1, b"abc")
    cluster.leave(2)
    node = cluster.restart(2, is_clean=False, life=life)
    cluster.settle()
    assert (node.log, node.group.is_clean) == (b"abc", True)


def test_a_replica_that_has_all_with_a_reset_is_told_that_it_is_clean() -> None:
    """Nothing follows the reset, and so nothing else would tell it."""
    cluster = _with_loss_on_two()
    cluster.heal()
    cluster.reconnect()
    cluster.settle()
    cluster[1].disk.trim(Offset(3))
    cluster[1].do(lambda g: g.trim(Offset(3)))
    node = cluster.restart(2, is_clean=False)
    cluster.settle()
    cluster.beat()
    cluster.settle()
    assert node.group.shape.start == at(0, 3)
    assert node.group.is_clean


def test_who_has_forgotten_what_its_last_process_acknowledged_is_unclean() -> None:
    """An older copy of its files was put back: it says that it is clean, and knows no better."""
    cluster = Cluster(3, limits=Limits(append_bytes_max=1))
    cluster.elect(1)
    cluster.produce(1, b"a")
    older = cluster[2].disk.durable.copy()
    cluster.partition({1, 2}, {3})
    cluster.produce(1, b"bc", only={1, 2})
    cluster.crash(2, back_to=older)
    node = cluster.restart(2)
    _deliver_until(cluster, node, lambda: node.log == b"ab")
    assert not node.group.is_clean
    cluster.crash(1)
    cluster.messages.clear()
    cluster.heal()
    for candidate in (2, 3, 2):
        cluster[candidate].do(lambda g: g.leader_lost())
        cluster[candidate].do(lambda g: g.campaign())
        cluster.settle()
        assert not cluster[candidate].group.is_leader  # it would cut what is committed
    cluster.restart(1)
    cluster.elect(1)
    cluster.settle()
    cluster.beat()
    assert (node.committed, node.group.is_clean) == (b"abc", True)


def test_who_is_sent_again_what_an_older_copy_lacks_is_not_asked_for_ever() -> None:
    cluster = Cluster(3)
    cluster.elect(1)
    older = cluster[2].disk.durable.copy()
    cluster.produce(1, b"abc")
    cluster.crash(2, back_to=older)
    cluster.restart(2)
    cluster.settle()  # which fails where it does not end
    assert cluster[2].log == b"abc"


def _says_unclean(envelope: Envelope) -> bool:
    return isinstance(envelope.message, AppendResponse) and not envelope.message.is_clean
