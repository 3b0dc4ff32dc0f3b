"""Scenarios of what is committed, by whom, and who may know of it."""

from tests.scenarios.cluster import Cluster, Envelope, at, hearing
from tidemark.partitions.raft.group import Limits
from tidemark.partitions.raft.messages import AppendRequest, AppendResponse, VoteResponse
from tidemark.partitions.raft.replica import NOWHERE
from tidemark.protocol.types import Epoch, NodeId, Offset


def test_figure_8_an_entry_of_an_older_epoch_is_not_committed_by_counting() -> None:
    """X of epoch 0 lies on three of five, and is overwritten all the same."""
    cluster = Cluster(5, limits=Limits(append_bytes_max=1))
    cluster.elect(1)
    cluster[1].append(b"X")
    cluster[1].persist()
    cluster.deliver(*cluster.take(AppendRequest, to=2))
    cluster[2].persist()
    cluster.take()
    cluster.crash(1)
    cluster.win(5, {3, 4, 5})  # epoch 1, on itself alone
    cluster.take()
    cluster.crash(5, keep=1)
    cluster.restart(1)
    cluster.take()
    cluster.win(1, {1, 2, 3})
    leader = cluster[1].group
    assert leader.epoch == 2
    for _ in range(3):
        cluster.deliver(*cluster.take(AppendRequest, to=2))
        cluster[2].persist()
        cluster.deliver(*cluster.take(AppendResponse, source=2))
    for _ in range(3):  # where they part; X; and no further
        cluster.deliver(*cluster.take(AppendRequest, to=3))
        cluster[3].persist()
        if cluster[3].log == b"X":
            break
        cluster.deliver(*cluster.take(AppendResponse))
    cluster.deliver(*cluster.take(AppendResponse))
    assert [n.log for n in cluster.nodes.values() if n.id in (1, 2, 3)] == [b"X"] * 3
    assert [p.match.offset for p in leader.progress() if p.node in (2, 3)] == [1, 1]
    assert leader.high_watermark == 0
    cluster.crash(1)
    cluster.restart(5)
    cluster.take()
    cluster.win(5, {3, 4, 5})
    cluster.settle()
    assert cluster[3].log == b""


def test_an_older_entry_is_committed_with_the_first_of_the_own_epoch() -> None:
    cluster = Cluster(3)
    cluster.elect(1)
    cluster[1].append(b"X")
    cluster.deliver(*cluster.take(AppendRequest, to=2))
    cluster[2].persist()
    cluster.take()
    cluster.crash(1)
    cluster.elect(2)
    assert cluster[2].committed == b"X"


def test_a_new_leader_serves_only_once_its_own_epoch_is_committed() -> None:
    """Redpanda#5090: before, it does not know what is committed, and its answers go back."""
    cluster = Cluster(3)
    cluster.elect(1)
    cluster.produce(1, b"abc")
    cluster.nodes[3].do(lambda g: g.leader_lost())
    cluster.crash(1)
    cluster.win(2, {2, 3})
    assert cluster[2].group.is_leader
    assert not cluster[2].group.is_serving
    assert cluster[2].servings == []
    cluster.settle()
    assert cluster[2].servings == [True]
    assert cluster[2].group.high_watermark == 3


def test_a_leader_does_not_count_what_it_has_not_synced_itself() -> None:
    """It sends before it has synced. If both lose power but the follower's disk: it is there."""
    cluster = Cluster(3)
    cluster.elect(1)
    cluster[1].append(b"X")
    cluster.take(AppendRequest, to=3)
    cluster.deliver(*cluster.take(AppendRequest, to=2))
    cluster[2].persist()
    cluster.deliver(*cluster.take(AppendResponse))
    assert cluster[1].group.high_watermark == 0
    cluster[1].persist()
    assert cluster[1].group.high_watermark == 1


def test_followers_alone_are_a_majority() -> None:
    cluster = Cluster(3)
    cluster.elect(1)
    cluster[1].append(b"X")
    for follower in (2, 3):
        cluster.deliver(*cluster.take(AppendRequest, to=follower))
        cluster[follower].persist()
    cluster.deliver(*cluster.take(AppendResponse))
    assert cluster[1].disk.pending
    assert cluster[1].group.high_watermark == 1


def test_a_follower_acknowledges_only_what_it_has_synced() -> None:
    cluster = Cluster(3)
    cluster.elect(1)
    cluster[1].append(b"X")
    (request,) = cluster.take(AppendRequest, to=2)
    cluster.take()
    cluster.deliver(request)
    assert not cluster.take(AppendResponse)
    cluster.deliver(request)  # doubled: it has the entry, but still not durably
    assert not cluster.take(AppendResponse)
    cluster[2].persist()
    assert cluster.take(AppendResponse)


def test_half_is_no_majority() -> None:
    cluster = Cluster(4)
    cluster.elect(1)
    cluster[1].append(b"X")
    cluster[1].persist()
    cluster.deliver(*cluster.take(AppendRequest, to=2))
    cluster[2].persist()
    cluster.deliver(*cluster.take(AppendResponse))
    assert cluster[1].group.high_watermark == 0


def test_an_acknowledgement_of_an_older_epoch_does_not_count() -> None:
    """With three replicas it is hard to show: with five, it commits what two have."""
    cluster = Cluster(5)
    cluster.elect(1)
    cluster[1].append(b"X")
    for follower in (2, 3):
        cluster.deliver(*cluster.take(AppendRequest, to=follower))
        cluster[follower].persist()
    late = cluster.take(AppendResponse)
    cluster[1].do(lambda g: g.step_down())
    cluster.messages.clear()
    cluster.win(1, {1, 4, 5})
    cluster[1].persist()
    before = cluster[1].group.progress()
    cluster.deliver(*late)
    assert cluster[1].group.progress() == before
    assert cluster[1].group.high_watermark == 0


def test_an_acknowledgement_of_what_was_cut_since_keeps_nobody_from_catching_up() -> None:
    """Three leaders in a row, each heard by 2 alone: what 2 said to the first comes to the third.

    1. 1 leads, and 2 acknowledges its first entry; the answer is late.
    2. 3 leads with the votes of 4 and 5, and has 2 cut that entry.
    3. 1 leads again, with the same votes; the answer arrives.

    A leader that believed it would begin there with 2, be refused, and begin there again, for ever.
    """
    cluster = Cluster(5)
    cluster.win(1, {1, 4, 5})
    cluster.deliver(*cluster.take(AppendRequest, to=2))
    cluster[2].persist()
    late = cluster.take(AppendResponse)
    cluster.messages.clear()
    cluster[1].do(lambda g: g.step_down())
    cluster.win(3, {3, 4, 5})
    cluster.deliver(*cluster.take(AppendRequest, to=2))
    cluster[2].persist()
    answer = late[0].message
    assert isinstance(answer, AppendResponse)
    assert answer.match is not None
    assert not cluster[2].group.shape.contains(answer.match)
    cluster.messages.clear()
    cluster.win(1, {1, 4, 5})
    cluster.deliver(*late)
    assert cluster[1].group.progress()[0].match == NOWHERE
    cluster.settle()
    assert cluster[2].group.shape.rows == cluster[1].group.shape.rows


def test_an_acknowledgement_from_outside_the_voters_does_not_count() -> None:
    cluster = Cluster(4, voters=[1, 2, 3])
    cluster.elect(1)
    cluster[1].do(lambda g: g.add_learner(NodeId(4)))
    cluster.settle()
    cluster[1].append(b"X")
    cluster[1].persist()
    cluster.deliver(*cluster.take(AppendRequest, to=4))
    cluster[4].persist()
    cluster.deliver(*cluster.take(AppendResponse))
    assert cluster[1].group.progress()[-1].match == at(0, 1)
    assert cluster[1].group.high_watermark == 0


def test_a_follower_commits_no_further_than_it_has_compared() -> None:
    """Its tail is another leader's: the leader's high watermark is not that of this tail."""
    cluster = Cluster(3, limits=Limits(append_bytes_max=1))
    cluster.elect(1)
    cluster[1].append(b"abc")  # on itself alone
    cluster[1].persist()
    cluster.take()
    cluster.partition({1}, {2, 3})
    cluster.elect(2, only={2, 3})
    cluster.produce(2, b"xyz", only={2, 3})
    cluster.heal()
    epoch, committed = cluster[2].group.epoch, cluster[2].group.committed
    cluster[1].do(lambda g: g.heard_leader(NodeId(2), epoch, committed))
    assert cluster[1].group.high_watermark == 0
    request = AppendRequest(epoch, at(0, 0), (), committed)
    cluster.deliver(Envelope(2, 1, request))
    assert cluster[1].log == b"abc"
    assert cluster[1].group.high_watermark == 0
    cluster.reconnect()
    cluster.settle()
    assert cluster[1].committed == b"xyz"


def test_a_watermark_beyond_the_log_is_not_believed() -> None:
    """Of an older epoch, so that it is not above the log's last position."""
    cluster = Cluster(3)
    cluster.elect(1)
    cluster.elect(1)
    cluster.produce(1, b"abc")
    before = cluster[2].group.committed
    for lie in (at(0, 999), at(1, 999)):
        cluster[2].do(hearing(1, Epoch(1), lie))
        assert cluster[2].group.committed == before


def test_a_heartbeat_commits_what_is_of_the_leaders_epoch() -> None:
    cluster = Cluster(3)
    cluster.elect(1)
    cluster[1].append(b"abc")
    cluster.settle()
    assert cluster[2].committed == b""
    cluster.beat()
    assert cluster[2].committed == b"abc"


def test_what_a_deposed_leader_appended_is_not_committed_by_its_followers_watermark() -> None:
    """KAFKA-20634: an append waits at 3; as a follower it passes 3, with other records."""
    cluster = Cluster(3)
    cluster.elect(1)
    cluster[1].append(b"abc")
    cluster[1].persist()
    waits_for = cluster[1].group.shape.last
    cluster.take()
    cluster.partition({1}, {2, 3})
    cluster.elect(2, only={2, 3})
    cluster.produce(2, b"wxyz", only={2, 3})
    cluster.heal()
    cluster.reconnect()
    cluster.settle()
    cluster.beat()
    assert cluster[1].group.high_watermark == 4
    assert not cluster[1].group.shape.contains(waits_for)
    assert cluster[1].servings == [True, False]


def test_truncation_is_not_to_a_remembered_high_watermark() -> None:
    """KIP-101, first case: the follower has it, but does not know yet that it is committed."""
    cluster = Cluster(3)
    cluster.elect(1)
    cluster.produce(1, b"m")
    cluster[1].append(b"n")
    cluster.settle(only={1, 2})
    assert cluster[1].group.high_watermark == 2
    assert cluster[2].group.high_watermark == 1
    cluster.crash(2)
    cluster.restart(2)
    cluster.crash(1)
    cluster.elect(2)
    assert cluster[2].committed == b"mn"


def test_two_replicas_that_lose_power_end_with_one_log() -> None:
    """KIP-101, second case: the shorter one comes back first, and writes."""
    cluster = Cluster(3)
    cluster.elect(1)
    cluster.produce(1, b"a")
    cluster[1].append(b"b")
    cluster[1].persist()
    cluster.take()
    cluster.crash(1)
    cluster.elect(2)
    cluster.produce(2, b"c")
    cluster.restart(1)
    cluster.settle()
    cluster.beat()
    assert [node.committed for node in cluster.nodes.values()] == [b"ac"] * 3


def test_a_majority_that_is_gone_commits_nothing_and_nothing_is_cut() -> None:
    """KIP-966, "last replica standing": one is left, then it loses power too."""
    cluster = Cluster(3)
    cluster.elect(1)
    cluster.produce(1, b"abc")
    cluster.crash(2)
    cluster.crash(3)
    cluster[1].append(b"d")
    cluster.settle()
    assert cluster[1].group.high_watermark == 3
    cluster.crash(1)
    cluster.restart(1)
    cluster[1].do(lambda g: g.campaign())
    cluster.settle()
    assert not cluster[1].group.is_leader
    assert cluster[1].log.startswith(b"abc")


def test_what_so_many_replicas_hold_is_known() -> None:
    cluster = Cluster(3)
    cluster.elect(1)
    cluster[1].append(b"X")
    cluster[1].persist()
    cluster.deliver(*cluster.take(AppendRequest, to=2))
    cluster[2].persist()
    cluster.deliver(*cluster.take(AppendResponse))
    held = [cluster[1].group.held_by(count) for count in (1, 2, 3)]
    assert held == [at(0, 1), at(0, 1), at(0, 0)]


def test_a_single_voter_commits_in_the_call_if_its_writes_are_durable() -> None:
    cluster = Cluster(1)
    cluster.elect(1)
    group = cluster[1].group
    group.appended(Offset(5), is_durable=True)
    assert group.high_watermark == 5


def test_durable_writes_wait_for_what_precedes_them() -> None:
    """The page cache holds them at once, but their epoch's start is not durable yet."""
    cluster = Cluster(1)
    cluster[1].do(lambda g: g.campaign())
    cluster[1].persist()
    group = cluster[1].group
    group.appended(Offset(5), is_durable=True)
    assert group.high_watermark == 0
    (token,) = cluster[1].disk.pending
    group.persisted(token)
    assert group.high_watermark == 5
    assert group.is_serving


def test_the_watermark_that_clients_see_does_not_go_back_over_leaders() -> None:
    cluster = Cluster(3)
    cluster.elect(1)
    seen = 0
    for leader, data in [(1, b"ab"), (2, b"c"), (3, b"def"), (1, b"g")]:
        cluster.elect(leader)
        assert cluster[leader].group.high_watermark >= seen
        cluster.produce(leader, data)
        seen = cluster[leader].group.high_watermark
    assert seen == 7


def test_votes_are_answered_only_when_durable_while_appends_are_under_way() -> None:
    cluster = Cluster(3)
    cluster.elect(1)
    cluster[1].append(b"X")
    cluster.deliver(*cluster.take(AppendRequest, to=2))
    cluster.take()
    cluster[2].do(lambda g: g.leader_lost())
    cluster[3].do(lambda g: g.leader_lost())
    cluster[2].do(lambda g: g.campaign())
    cluster.deliver(*cluster.messages)
    assert not [
        e for e in cluster.messages if isinstance(e.message, VoteResponse) and e.message.ballot
    ]
    assert cluster[3].group.epoch == Epoch(0)


def test_news_of_what_is_committed_that_overtakes_the_entries_is_kept() -> None:
    cluster = Cluster(3)
    cluster.elect(1)
    cluster[1].append(b"X")
    late = cluster.take(AppendRequest, to=3)
    cluster.settle(only=(1, 2))
    leader = cluster[1].group
    assert leader.high_watermark == 1
    cluster[3].do(hearing(1, leader.epoch, leader.committed))
    assert cluster[3].group.high_watermark == 0
    cluster.deliver(*late)
    assert cluster[3].group.high_watermark == 1, "the leader has nothing more to say"
