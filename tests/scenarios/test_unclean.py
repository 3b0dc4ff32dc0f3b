"""Scenarios of replicas that have lost what they acknowledged: `flush=os`, and the power went."""

from tests.scenarios.cluster import Cluster, Envelope
from tidemark.partitions.raft.candidate import Candidate, PreCandidate
from tidemark.partitions.raft.leader import Leader
from tidemark.partitions.raft.messages import AppendRequest, AppendResponse
from tidemark.protocol.types import NodeId


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


def test_a_replica_that_crashed_again_and_its_leader_come_to_agree() -> None:
    """The leader counts it anew at every return; it must not take itself for clean before that."""
    cluster = Cluster(3)
    cluster.elect(1)
    cluster.produce(1, b"abc")
    cluster.crash(3)
    cluster.crash(2, lose=1)
    node = cluster.restart(2, is_clean=False)
    while not node.group.is_clean:
        envelopes = cluster.take()
        assert envelopes
        cluster.deliver(*envelopes)
        node.persist()
    cluster.take()  # that it is clean, is not heard
    cluster[1].append(b"d")
    cluster[1].persist()
    cluster.take()
    cluster[1].do(lambda g: g.peer_reset(NodeId(2)))
    cluster.deliver(*cluster.take(AppendRequest, to=2))
    cluster.settle()
    assert node.group.is_clean
    cluster.produce(1, b"e")
    assert cluster[1].committed == b"abcde"


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


def _says_unclean(envelope: Envelope) -> bool:
    return isinstance(envelope.message, AppendResponse) and not envelope.message.is_clean
